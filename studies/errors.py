"""Errors of the studies package.

::

    StudiesError
    ├── WishError             what was asked for cannot be: a name or a file that is taken, an input that is none
    ├── SpecificationError    a study file cannot be read or is not valid (every problem, one a line)
    ├── UnknownStudyError     no study of that name in the storage
    ├── UnknownTrialError     no trial of that number in the study
    ├── StudyChangedError     the study file differs from the one the study was begun with
    ├── StorageError          the database cannot be reached, opened or written
    │   ├── DamagedError        it holds what nobody can have written
    │   ├── StorageUrlError     its address is none, or nothing is there
    │   └── SchemaVersionError  its tables are of another version
    ├── FencedError           another keeper has taken the study over; nothing was written
    ├── QueryError            a query that is not read-only or that the database refuses
    ├── ConfirmationError     the winners of a study cannot be confirmed
    └── LaunchError           a study cannot be launched
        └── StudyHeldError      another launch runs it
"""

from typing import Self


def said_line(said: object, otherwise: str = "", *, place: int = 0) -> str:
    """One of the lines in which something said what is wrong, the first or the last, without its full stop."""
    lines = [line.strip() for line in str(said).splitlines() if line.strip()] or [otherwise]
    return lines[place].rstrip(".")


class StudiesError(Exception):
    """Root of all errors of the package; its text is for the user."""

    __str__ = Exception.__str__  # of a KeyError it would be a quotation


class WishError(StudiesError, ValueError):
    """What was asked for cannot be: a name or a file that is taken, an input that is none, options at odds."""


class SpecificationError(StudiesError, ValueError):
    """A study file that cannot be read or is not valid."""


class UnknownStudyError(StudiesError, KeyError):
    """No study of that name in the storage."""


class UnknownTrialError(StudiesError, KeyError):
    """No trial of that number in the study."""


class StudyChangedError(StudiesError, ValueError):
    """A study file that differs from the one the study was begun with."""


class StorageError(StudiesError):
    """A database that cannot be reached, opened or written."""


_SHOWN = 200
"""Characters of what is wrong: a damaged value can be of any length."""


class DamagedError(StorageError):
    """A database with a value that nobody can have written."""

    @classmethod
    def of(cls, kind: str, error: Exception) -> Self:
        """Where a value must be of a kind and is not."""
        said = " ".join(str(error).split())
        shown = said if len(said) <= _SHOWN else f"{said[:_SHOWN]}…"
        return cls(f"the database must hold {kind} there; it is damaged ({shown}). Restore it from a copy.")


class StorageUrlError(StorageError, ValueError):
    """A text that is no address of a database, or the address of none."""


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
