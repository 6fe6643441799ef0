"""What the drivers say when something goes wrong, in one line for the user."""

import sqlite3

from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError

from studies.errors import StorageError
from studies.store.address import StorageAddress

# Administrator shutdown, crash shutdown, cannot connect now (starting up, shutting down).
_SHUTDOWN_STATES = frozenset({"57P01", "57P02", "57P03"})

_LOCK_NOT_AVAILABLE = "55P03"


def is_dropped(error: DBAPIError) -> bool:
    """Whether the connection to a server was lost or refused, so that trying again may help."""
    if error.connection_invalidated:
        return True
    if isinstance(error.orig, sqlite3.Error) or not isinstance(error, OperationalError):
        return False
    state: str | None = getattr(error.orig, "sqlstate", None)
    return state is None or state.startswith("08") or state in _SHUTDOWN_STATES


def is_locked(error: DBAPIError) -> bool:
    """Whether somebody else holds what is needed, and may let go of it."""
    if isinstance(error.orig, sqlite3.Error):
        return "locked" in str(error.orig)
    return getattr(error.orig, "sqlstate", None) == _LOCK_NOT_AVAILABLE


def explained(error: DBAPIError, address: StorageAddress) -> StorageError:
    """The error to raise in place of a driver's."""
    message = first_line(error)
    if isinstance(error, IntegrityError):
        return StorageError(f"{address.shown} refuses the record ({message}). Nothing was written.")
    if address.file is not None:
        return _explained_sqlite(message, address)
    if is_locked(error):
        return StorageError(f"{address.shown} is locked by another process. Stop that process, or try again.")
    if is_dropped(error):
        return StorageError(f"cannot reach {address.shown}: {message}. Is the server running, and the URL right?")
    return StorageError(f"{address.shown} cannot be used: {message}.")


def first_line(error: DBAPIError) -> str:
    """What the driver said, on one line and without a full stop."""
    lines = [line.strip() for line in str(error.orig).splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(error.orig).__name__


def _explained_sqlite(message: str, address: StorageAddress) -> StorageError:
    """The same for a file."""
    shown, file = address.shown, address.file
    if "locked" in message:
        return StorageError(f"{shown} is locked by another process. Stop that process, or try again.")
    if "not a database" in message:
        return StorageError(f"{shown} must be an SQLite database; {file} is another kind of file. Choose another name.")
    if "malformed" in message:
        return StorageError(f"{shown} is damaged ({message}). Restore {file} from a copy.")
    if "readonly" in message or "read-only" in message:
        return StorageError(f"{shown} must be writable; {file} or its folder is read-only. Choose another storage.")
    if "unable to open" in message:
        return StorageError(
            f"{shown} cannot be opened; {file} or its folder is not accessible. Choose another storage."
        )
    return StorageError(f"{shown} cannot be used: {message}.")
