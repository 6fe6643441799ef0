"""Every error that is meant for a user. Four roots, one per package; the text of an error says what to do.

::

    SearchSpaceError    what can be tried: methods, configurations, budgets, families of backbones
    RunnerError         running trials: backbones, tasks, exports
    StudiesError        studies: files, storages, queries, launches
    DashboardError      dashboards: what cannot be served or written

Some are also what Python would raise: `UnknownStudyError`, `UnknownTrialError` and `UnknownMethodError` are a
``KeyError``; those of what was asked for and cannot be, such as `SpecificationError` and `WishError`, are a
``ValueError``.

Example:
    >>> try:
    ...     study = deltaspace.open_study("docstrings")
    ... except deltaspace.errors.UnknownStudyError:
    ...     study = deltaspace.launch("docstrings")
"""

from dashboards.errors import DashboardError, DashboardWishError
from search_space.errors import (
    BudgetError,
    CodecError,
    InvalidEditError,
    RegistryError,
    SearchSpaceError,
    SettingError,
    UnknownMethodError,
    UnsupportedBackboneError,
)
from studies.errors import (
    ConfirmationError,
    DamagedError,
    FencedError,
    LaunchError,
    QueryError,
    SchemaVersionError,
    SpecificationError,
    StorageError,
    StorageUrlError,
    StudiesError,
    StudyChangedError,
    StudyHeldError,
    UnknownStudyError,
    UnknownTrialError,
    WishError,
)
from trial_runner.errors import (
    AttachError,
    BackboneError,
    BrokenPromiseError,
    ExportError,
    ExportWishError,
    RequestError,
    RunnerError,
    SnapshotError,
    TaskError,
)

__all__ = [
    "AttachError",
    "BackboneError",
    "BrokenPromiseError",
    "BudgetError",
    "CodecError",
    "ConfirmationError",
    "DamagedError",
    "DashboardError",
    "DashboardWishError",
    "ExportError",
    "ExportWishError",
    "FencedError",
    "InvalidEditError",
    "LaunchError",
    "QueryError",
    "RegistryError",
    "RequestError",
    "RunnerError",
    "SchemaVersionError",
    "SearchSpaceError",
    "SettingError",
    "SnapshotError",
    "SpecificationError",
    "StorageError",
    "StorageUrlError",
    "StudiesError",
    "StudyChangedError",
    "StudyHeldError",
    "TaskError",
    "UnknownMethodError",
    "UnknownStudyError",
    "UnknownTrialError",
    "UnsupportedBackboneError",
    "WishError",
]
