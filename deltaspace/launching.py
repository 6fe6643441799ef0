"""What works on a storage or trains: launching, opening, listing, training."""

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from search_space.configuration import Configuration
from studies.queries.summaries import study_summaries, summaries_table
from studies.queries.table import Table
from studies.specification import Specification, specification_of
from studies.storage import storage_url
from studies.store.ledger import Ledger
from studies.study import Observer, Study, observed

if TYPE_CHECKING:
    from studies.exports.training import TrainingResult
    from trial_runner.requests import Reading


def launch(
    study: Specification | Mapping[str, object] | Path | str,
    *,
    storage: str | None = None,
    overrides: Mapping[str, object] | None = None,
    progress: Observer | bool = True,
) -> Study:
    """Launch a study, or continue it, until it is finished, its time budget is used up, or it is interrupted.

    Example:
        >>> study = deltaspace.launch("docstrings", overrides={"trials": 8, "training.steps": 40})
        >>> study.leaderboard(top=5)

    Args:
        study: A study file, the name of a shipped example (docstrings, sst2, …), what a study file would hold as a
            mapping, or a `Specification`. One that is in the storage is continued.
        storage: URL of the database; None is ``$DELTASPACE_STORAGE``, else ``sqlite:///deltaspace.db``.
        overrides: Key path of the study file, such as ``training.steps``, to another value.
        progress: Called about twice a second with how far the study is; True shows a bar, False nothing.

    Raises:
        SpecificationError: If the study is not valid; one line per problem.
        StudyChangedError: If a study of its name was begun with other values.
        StudiesError: If it cannot be launched for another reason.
        RunnerError: If the backbone or the task cannot be had.
    """
    from studies.launching import launch as launched

    specification, url = specification_of(study, overrides), storage_url(storage)
    with observed(progress, view) as observer:
        launched(specification, storage_url=url, observer=observer)
    return open_study(specification.name, url)


def open_study(name: str, storage: str | None = None) -> Study:
    """The study of a name: its leaderboard, its trials, and what can be done with them.

    Example:
        >>> deltaspace.open_study("docstrings").best.score
        0.834

    Args:
        name: Of the study.
        storage: As of `launch`.

    Raises:
        UnknownStudyError: If there is none; names those that exist.
        StorageError: If the storage cannot be opened.
    """
    return Study.open(name, storage_url(storage), view=view)


def studies(storage: str | None = None) -> Table:
    """The studies of a storage, one row each, oldest first.

    Example:
        >>> deltaspace.studies().column("name")
        ('docstrings', 'docstrings-confirm')

    Args:
        storage: As of `launch`.

    Raises:
        StorageError: If the storage cannot be opened.
    """
    with Ledger.open(storage_url(storage), create=False, read_only=True) as ledger:
        return summaries_table(study_summaries(ledger))


def train(
    what: str | Path | Configuration,
    task: Specification | Mapping[str, object] | Path | str,
    folder: str | Path,
    *,
    learning_rate: float | None = None,
    overrides: Mapping[str, object] | None = None,
    progress: "Callable[[Reading], None] | None" = None,
) -> "TrainingResult":
    """Train one configuration without a search, and export it to a new folder. No storage is touched.

    Example:
        >>> deltaspace.train("mam_adapter", "docstrings", "mam", overrides={"training.steps": 100}).export.score

    Args:
        what: A published method, which is resized to the budget; a point of fixed size such as ``lora_qv:r=8``; a JSON
            file, such as the ``delta.json`` of an export; or a configuration.
        task: A study as of `launch`: its task, training, budget and backbone are taken.
        folder: Must not exist.
        learning_rate: Peak rate of the deltas; None takes that of the export, else the middle of the study's range.
        overrides: As of `launch`. With a ``budget``, nothing larger is trained.
        progress: Called with every measurement.

    Raises:
        SearchSpaceError: If there is no such method, or the configuration is not valid or beyond the budget.
        StudiesError: If the training fails.
        RunnerError: If the backbone or the task cannot be had, or the folder is there already.
    """
    from search_space.backbones import shape_of
    from studies.exports.training import Chosen, chosen_configuration
    from studies.exports.training import train as trained
    from trial_runner.backbones import config_of

    given = dict(overrides or {})
    specification = specification_of(task, {"pruning.first_rung_steps": "auto", **given})
    if isinstance(what, Configuration):
        chosen = Chosen(configuration=what, method=None, learning_rates={})
    else:
        shape = shape_of(config_of(specification.backbone))
        chosen = chosen_configuration(str(what), specification, shape, is_budget_binding="budget" in given)
    tell = progress or (lambda reading: None)
    return trained(specification, chosen, Path(folder), learning_rate=learning_rate, tell=tell)


def view() -> AbstractContextManager[Observer]:
    """A bar in a notebook, a live table on a terminal, a line now and then elsewhere."""
    from dashboards.terminal.live import progress_view

    return progress_view(sys.stderr)
