"""Errors of the trial runner.

::

    RunnerError
    ├── TrialRequestError     a request, plan or learning rate out of range
    ├── BackboneError         a backbone cannot be found, read or used
    ├── TaskError             a task's data cannot be found, read or used
    ├── AttachError           deltas cannot be attached, or their count is not the formula's
    ├── EditPropertyError     an edit on a backbone is not what every edit must be
    ├── SnapshotError         a snapshot is damaged or belongs elsewhere
    └── ExportError           a trained delta cannot be written, or what was written cannot be loaded
        └── ExportRequestError  what was asked for cannot be: a place that is taken, a format that lacks an edit
"""

from collections.abc import Iterator
from contextlib import contextmanager

from search_space.errors import SearchSpaceError


class RunnerError(Exception):
    """Root of all errors of the package; its text is one line for the user."""


class TrialRequestError(RunnerError, ValueError):
    """A request, plan or learning rate that is out of range."""


class BackboneError(RunnerError, ValueError):
    """A backbone that cannot be found, read or used."""


class TaskError(RunnerError, ValueError):
    """A task whose data cannot be found, read or used."""


class AttachError(RunnerError):
    """Deltas that cannot be attached, or whose count is not the formula's."""


class EditPropertyError(RunnerError):
    """An edit that breaks a property of edits on a backbone; a bug, or a backbone that cannot be used so."""


class SnapshotError(RunnerError):
    """A snapshot that is damaged or belongs to another trial."""


class ExportError(RunnerError):
    """A trained delta that cannot be written, or an export that cannot be loaded."""


class ExportRequestError(ExportError, ValueError):
    """A place that is taken, a format that lacks an edit, a folder that is no export, another backbone."""


MODEL_FAULTS = (RunnerError, SearchSpaceError, RuntimeError, ValueError, TypeError, AttributeError, LookupError)
"""Errors of models that cannot be used as others are."""


@contextmanager
def panics_as_errors() -> Iterator[None]:
    """Turn the panic of a tokenizer into an error: its library raises no ``Exception``.

    Raises:
        BackboneError: If a tokenizer panicked.
    """
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise BackboneError(f"a backbone must have a tokenizer that reads all texts; it says: {error}.") from error
