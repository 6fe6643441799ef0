"""What works on a storage: launching a study, opening one, listing all."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from studies.analysis.summaries import study_summaries, summaries_table
from studies.analysis.visible import announce
from studies.ledger.ledger import Ledger
from studies.observer import Observer as TrialObserver
from studies.runtime.progress import Observer, observed
from studies.storage import storage_url
from studies.study import Study
from studies.study_file import Specification, specification_of

if TYPE_CHECKING:
    import pandas


def launch(
    study: Specification | Mapping[str, object] | Path | str,
    *,
    storage: str | None = None,
    overrides: Mapping[str, object] | None = None,
    progress: Observer | bool = True,
    take_over: bool = False,
    observers: Sequence[TrialObserver] = (),
) -> Study:
    """Launch a study, or continue it, until it is finished, its time budget is used up, or it is interrupted.

    How it ended is the last of the study's `events`.

    Example:
        >>> study = deltaspace.launch("docstrings", overrides={"trials": 8, "training.steps": 40})
        >>> study.leaderboard(top=5)

    Args:
        study: A study file, the name of a shipped example (docstrings, sst2, …), what a study file would hold as a
            mapping, or a `Specification`. One that is in the storage is continued.
        storage: URL of the database; None is ``$DELTASPACE_STORAGE``, else ``sqlite:///deltaspace.db``.
        overrides: Key path of the study file, such as ``training.steps``, to another value.
        progress: Called about twice a second with how far the study is; True shows a bar, False nothing. Unless it is
            False, what is worth knowing before any work begins is written to stderr.
        observers: Told of every trial and reading of this launch: trackers, or your own `Observer`; one that raises is
            told nothing more, which is written to stderr.
        take_over: Whether another launch that runs the study is to stop; else this one is refused.

    Raises:
        SpecificationError: If the study is not valid; one line per problem.
        StudyChangedError: If a study of its name was begun with other values.
        StudyHeldError: If another launch runs it.
        StudiesError: If it cannot be launched for another reason.
        RunnerError: If the backbone or the task cannot be had.
    """
    from studies.launch.launch import launch as launched

    specification, url = specification_of(study, overrides), storage_url(storage)
    with observed(progress, view) as observer:
        tell = None if progress is False else announce
        result = launched(
            specification, storage_url=url, observer=observer, announce=tell, take_over=take_over, observers=observers
        )
    announce(result.complaints)
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


def studies(storage: str | None = None) -> "pandas.DataFrame":
    """The studies of a storage, one row each, oldest first; the best trial of each as its leaderboard has it.

    Example:
        >>> deltaspace.studies()["name"].tolist()
        ['docstrings', 'docstrings-confirm']

    Args:
        storage: As of `launch`.

    Raises:
        StorageError: If the storage cannot be opened.
    """
    with Ledger.open(storage_url(storage), read_only=True) as ledger:
        return summaries_table(study_summaries(ledger))


def view() -> AbstractContextManager[Observer]:
    """A bar in a notebook, a live table on a terminal, a line now and then elsewhere."""
    from dashboards.terminal.observers import progress_view

    return progress_view(sys.stderr)
