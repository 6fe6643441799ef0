"""Errors for users. There are four base classes, one per package; the text of an error states the remedy.

::

    SearchSpaceError    search space: methods, configurations, budgets, families of backbones
    RunnerError         trials: backbones, tasks, exports
    StudiesError        studies: files, storages, queries, launches
    DashboardError      dashboards and reports

Some are also built-in errors: `UnknownStudyError`, `UnknownTrialError` and `UnknownMethodError` are a ``KeyError``;
those of invalid requests, such as `SpecificationError` and `InvalidRequestError`, are a ``ValueError``.

Example:
    >>> try:
    ...     study = deltaspace.open_study("docstrings")
    ... except deltaspace.errors.UnknownStudyError:
    ...     study = deltaspace.launch("docstrings")
"""

from dashboards.errors import *  # noqa: F403
from search_space.errors import *  # noqa: F403
from studies.errors import *  # noqa: F403
from trial_runner.errors import *  # noqa: F403

__all__ = sorted(name for name in globals() if name.endswith("Error"))
