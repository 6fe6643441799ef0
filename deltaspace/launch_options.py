"""Functions on a storage: launch a study, open one, list all."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from studies.analysis.summaries import study_summaries, summaries_table
from studies.analysis.visible import announce
from studies.ledger.ledger import Ledger
from studies.observer import Observer
from studies.runtime.progress import ProgressCallback, observed
from studies.storage import storage_url
from studies.study import Study
from studies.study_file import Specification

if TYPE_CHECKING:
    import pandas


def launch(
    study: Specification | Mapping[str, object] | Path | str,
    *,
    storage: str | None = None,
    overrides: Mapping[str, object] | None = None,
    progress: ProgressCallback | bool = True,
    take_over: bool = False,
    observers: Sequence[Observer] = (),
) -> Study:
    """Launch a study, or continue it, until it is finished, its time budget is used up, or it is interrupted.

    The last of the study's `events` states how it ended.

    Example:
        >>> study = deltaspace.launch("docstrings", overrides={"trials": 8, "training.steps": 40})
        >>> study.leaderboard(top=5)

    Args:
        study: Study file, name of a study in the storage or of a shipped example (docstrings, sst2, …), mapping with
            the keys of a study file, or `Specification`. A study that is in the storage is continued.
        storage: URL of the database; None is ``$DELTASPACE_STORAGE``, else ``sqlite:///deltaspace.db``.
        overrides: Values by key path of the study file, such as ``training.steps``.
        progress: Function called about twice a second with the progress; True shows a bar, False nothing. Unless it is
            False, warnings are written to stderr before any work begins.
        observers: Observers of every trial and reading of this launch: trackers, or your own `Observer`. One that
            raises is not called again, which is written to stderr.
        take_over: Whether to stop another launch that runs the study; else this one is refused.

    Raises:
        SpecificationError: If the study is not valid; one line per problem.
        StudyChangedError: If a study of its name was begun with other values.
        StudyHeldError: If another launch runs it.
        StudiesError: If it cannot be launched for another reason.
        RunnerError: If the backbone or the task cannot be loaded.
    """
    from studies.launch.launch import launch as launched
    from studies.launch.study_creation import requested

    url = storage_url(storage)
    specification = requested(study, overrides, url)
    with observed(progress, view) as observer:
        tell = None if progress is False else announce
        result = launched(
            specification, storage_url=url, observer=observer, announce=tell, take_over=take_over, observers=observers
        )
    announce(result.observer_errors)
    return open_study(specification.name, url)


def open_study(name: str, storage: str | None = None) -> Study:
    """Return the study of a name.

    Example:
        >>> deltaspace.open_study("docstrings").best.score
        0.834

    Args:
        name: Name of the study.
        storage: URL of the database, as in `launch`.

    Raises:
        UnknownStudyError: If there is none; the message names those that exist.
        StorageError: If the storage cannot be opened.
    """
    return Study.open(name, storage_url(storage), view=view)


def studies(storage: str | None = None) -> "pandas.DataFrame":
    """Return the studies of a storage, one row each, oldest first, with the best trial of their leaderboards.

    Example:
        >>> deltaspace.studies()["name"].tolist()
        ['docstrings', 'docstrings-confirm']

    Args:
        storage: URL of the database, as in `launch`.

    Raises:
        StorageError: If the storage cannot be opened.
    """
    with Ledger.open(storage_url(storage), read_only=True) as ledger:
        return summaries_table(study_summaries(ledger))


def view() -> AbstractContextManager[ProgressCallback]:
    """Return a bar in a notebook, a live table on a terminal, lines at intervals elsewhere."""
    from dashboards.terminal.observers import progress_view

    return progress_view(sys.stderr)
