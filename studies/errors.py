"""Errors of the studies package.

::

    StudiesError
    ├── InvalidRequestError   a request that cannot be met: a name or a file that is taken, an input that is missing
    ├── SpecificationError    a study file that cannot be read or is not valid (one line per problem)
    ├── UnknownStudyError     no study of that name in the storage
    ├── UnknownTrialError     no trial of that number in the study
    ├── StudyChangedError     a study file, or data, other than those that the study was created with
    ├── StorageError          a database that cannot be reached, opened or written
    │   ├── DamagedError        a database with an impossible value
    │   ├── StorageUrlError     an invalid URL, or no database at the URL
    │   └── SchemaVersionError  a database whose tables are of another version
    ├── FencedError           another keeper has taken the study over; nothing was written
    ├── QueryError            a query that is not read-only, or that the database refuses
    ├── ConfirmationError     a study whose winners cannot be confirmed
    └── LaunchError           a study that cannot be launched
        └── StudyHeldError      a study that another launch runs
"""

from typing import Self


def message_line(said: object, otherwise: str = "", *, place: int = 0) -> str:
    """Return the first or the last line of an error message, without its full stop."""
    lines = [line.strip() for line in str(said).splitlines() if line.strip()] or [otherwise]
    return lines[place].rstrip(".")


class StudiesError(Exception):
    """Base class of the errors of the package; their texts are for users."""

    __str__ = Exception.__str__  # of a KeyError it would be a quotation


class InvalidRequestError(StudiesError, ValueError):
    """A request that cannot be met: a name or a file that is taken, an input that is missing, conflicting options."""


class SpecificationError(StudiesError, ValueError):
    """A study file that cannot be read or is not valid."""


class UnknownStudyError(StudiesError, KeyError):
    """No study of that name in the storage."""


class UnknownTrialError(StudiesError, KeyError):
    """No trial of that number in the study."""


class StudyChangedError(StudiesError, ValueError):
    """A study file, or data, other than those that the study was created with."""


class StorageError(StudiesError):
    """A database that cannot be reached, opened or written."""


_SHOWN = 200
"""Most characters of a damaged value in a message: it can be of any length."""


class DamagedError(StorageError):
    """A database with an impossible value."""

    @classmethod
    def of(cls, kind: str, error: Exception) -> Self:
        """Return the error of a value that is not of the required kind."""
        said = " ".join(str(error).split())
        shown = said if len(said) <= _SHOWN else f"{said[:_SHOWN]}…"
        return cls(f"the database must hold {kind} there; it is damaged ({shown}). Restore it from a copy.")


class StorageUrlError(StorageError, ValueError):
    """A storage URL that is invalid, or at which there is no database."""


class SchemaVersionError(StorageError):
    """A database whose tables are of another version."""


class FencedError(StudiesError):
    """Another keeper has taken the study over; nothing was written."""


class QueryError(StudiesError, ValueError):
    """A query that is not read-only, or that the database refuses."""


class ConfirmationError(StudiesError, ValueError):
    """A study whose winners cannot be confirmed."""


class LaunchError(StudiesError):
    """A study that cannot be launched."""


class StudyHeldError(LaunchError):
    """A study that another launch runs."""
