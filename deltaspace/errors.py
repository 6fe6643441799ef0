"""Errors for users. There are four base classes, one per package; the text of an error states the remedy.

::

    SearchSpaceError    search space: methods, configurations, budgets, families of backbones
    RunnerError         trials: backbones, tasks, exports
    StudiesError        studies: files, storages, queries, launches
    DashboardError      dashboards and reports

Some are also built-in errors: `UnknownStudyError`, `UnknownTrialError` and `UnknownMethodError` are a ``KeyError``;
those of invalid requests, such as `SpecificationError` and `WishError`, are a ``ValueError``.

Example:
    >>> try:
    ...     study = deltaspace.open_study("docstrings")
    ... except deltaspace.errors.UnknownStudyError:
    ...     study = deltaspace.launch("docstrings")
"""

from dashboards.errors import DashboardError as DashboardError
from dashboards.errors import DashboardWishError as DashboardWishError
from search_space.errors import BudgetError as BudgetError
from search_space.errors import CodecError as CodecError
from search_space.errors import InvalidEditError as InvalidEditError
from search_space.errors import RegistryError as RegistryError
from search_space.errors import SearchSpaceError as SearchSpaceError
from search_space.errors import SettingError as SettingError
from search_space.errors import UnknownMethodError as UnknownMethodError
from search_space.errors import UnsupportedBackboneError as UnsupportedBackboneError
from studies.errors import ConfirmationError as ConfirmationError
from studies.errors import DamagedError as DamagedError
from studies.errors import FencedError as FencedError
from studies.errors import LaunchError as LaunchError
from studies.errors import QueryError as QueryError
from studies.errors import SchemaVersionError as SchemaVersionError
from studies.errors import SpecificationError as SpecificationError
from studies.errors import StorageError as StorageError
from studies.errors import StorageUrlError as StorageUrlError
from studies.errors import StudiesError as StudiesError
from studies.errors import StudyChangedError as StudyChangedError
from studies.errors import StudyHeldError as StudyHeldError
from studies.errors import UnknownStudyError as UnknownStudyError
from studies.errors import UnknownTrialError as UnknownTrialError
from studies.errors import WishError as WishError
from trial_runner.errors import AttachError as AttachError
from trial_runner.errors import BackboneError as BackboneError
from trial_runner.errors import BrokenPromiseError as BrokenPromiseError
from trial_runner.errors import ExportError as ExportError
from trial_runner.errors import ExportWishError as ExportWishError
from trial_runner.errors import RequestError as RequestError
from trial_runner.errors import RunnerError as RunnerError
from trial_runner.errors import SnapshotError as SnapshotError
from trial_runner.errors import TaskError as TaskError

__all__ = sorted(name for name in globals() if name.endswith("Error"))
