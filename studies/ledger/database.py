"""Transactions: atomic, retried when a server's connection drops, with storage_error errors.

Readers do not wait for long: they receive an error and may try again. A keeper would end its fleet with it, so it waits
for a locked or unreachable database, and reports the wait.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError

from studies.errors import DamagedError, StorageError, message_line
from studies.ledger.engine import WRITES, StorageAddress

_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 1.0
_NAP_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Patience of a keeper with a database that is unavailable for a while.

    Attributes:
        seconds: Seconds after which a failed try is the last.
        tell: Function that receives the reason of the wait at every failed try, and an empty text at its end.
        is_over: Function that returns whether to give up.
    """

    seconds: float
    tell: Callable[[str], None] = lambda text: None
    is_over: Callable[[], bool] = lambda: False

    def pauses(self) -> Iterator[None]:
        """Pause at every iteration, until it is time to give up."""
        until, pause = time.monotonic() + self.seconds, _FIRST_PAUSE_SECONDS
        while time.monotonic() < until:
            awake_at = time.monotonic() + pause
            while (left := awake_at - time.monotonic()) > 0:
                if self.is_over():
                    return
                time.sleep(min(left, _NAP_SECONDS))
            yield
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


NO_PATIENCE = Patience(seconds=0.0)
"""Patience of a caller that does not wait: the first try is the last."""

# Administrator shutdown, crash shutdown, cannot connect now (starting up, shutting down).
_SHUTDOWN_STATES = frozenset({"57P01", "57P02", "57P03"})

_LOCK_NOT_AVAILABLE = "55P03"


def is_dropped(error: DBAPIError) -> bool:
    """Return whether a server's connection was lost or refused, so that a retry may help."""
    if error.connection_invalidated:
        return True
    if isinstance(error.orig, sqlite3.Error) or not isinstance(error, OperationalError):
        return False
    state: str | None = getattr(error.orig, "sqlstate", None)
    return state is None or state.startswith("08") or state in _SHUTDOWN_STATES


def is_locked(error: DBAPIError) -> bool:
    """Return whether another process holds a lock that it may release."""
    if isinstance(error.orig, sqlite3.Error):
        return "locked" in str(error.orig)
    return getattr(error.orig, "sqlstate", None) == _LOCK_NOT_AVAILABLE


def storage_error(error: DBAPIError, address: StorageAddress) -> StorageError:
    """Return the error to raise in place of a driver's."""
    message = message_line(error.orig, type(error.orig).__name__)
    if isinstance(error, IntegrityError):
        return StorageError(f"{address.shown} refuses the record ({message}). Nothing was written.")
    if address.file is not None or is_dropped(error):
        return connection_error(message, address)
    if is_locked(error):
        return StorageError(f"{address.shown} is locked by another process. Stop that process, or try again.")
    return StorageError(f"{address.shown} cannot be used: {message}.")


def connection_error(message: str, address: StorageAddress) -> StorageError:
    """Return the error of an SQLite file that cannot be used, or of a server that cannot be reached."""
    file = address.file
    if file is None:
        return StorageError(f"cannot reach {address.shown}: {message}. Is the server running, and the URL right?")
    messages = {
        "locked": "is locked by another process. Stop that process, or try again.",
        "not a database": f"must be an SQLite database; {file} is another kind of file. Choose another name.",
        "malformed": f"is damaged ({message}). Restore {file} from a copy.",
        "readonly": f"must be writable; {file} or its folder is read-only. Choose another storage.",
        "read-only": f"must be writable; {file} or its folder is read-only. Choose another storage.",
        "unable to open": f"cannot be opened; {file} or its folder is not accessible. Choose another storage.",
    }
    explanation = next((text for sign, text in messages.items() if sign in message), f"cannot be used: {message}.")
    return StorageError(f"{address.shown} {explanation}")


T = TypeVar("T")

# Together about 16 s: a server that restarts is back by then.
RETRY_PAUSES_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
_GIVEN_UP = object()


_ADDRESS = "deltaspace_address"


def home_of(connection: Connection) -> Path | None:
    """Return the folder of the database file; None for a server."""
    return address_of(connection).home


def address_of(connection: Connection) -> StorageAddress:
    """Return the address of a `Database`'s connection."""
    address: StorageAddress = connection.get_execution_options()[_ADDRESS]
    return address


class Database:
    """Open database."""

    def __init__(self, engine: Engine, address: StorageAddress, patience: Patience | None = None) -> None:
        """Use an engine.

        Args:
            address: Address of the storage.
            patience: Patience with a locked or unreachable database; None to retry dropped connections alone.
        """
        self.address = address
        self._patience = patience
        engine = engine.execution_options(**{_ADDRESS: address})
        self._engine = engine
        self._reader = engine.execution_options(**({} if address.file else {"isolation_level": "REPEATABLE READ"}))
        self._writer = engine.execution_options(**{WRITES: True})

    def with_patience(self, patience: Patience) -> "Database":
        """Return this open database with patience."""
        return Database(self._engine, self.address, patience)

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    @contextmanager
    def once(self, *, writes: bool) -> Iterator[Connection]:
        """Run a transaction without retries.

        Raises:
            StorageError: Replacement of every error of the driver.
        """
        try:
            with (self._writer if writes else self._reader).begin() as connection:
                yield connection
        except DBAPIError as error:
            raise storage_error(error, self.address) from error
        except UnicodeDecodeError as error:
            raise DamagedError.of("UTF-8", error) from error

    def read(self, work: Callable[[Connection], T]) -> T:
        """Return the result of ``work`` on one consistent state of the database.

        Raises:
            StorageError: If the database cannot be read.
        """
        return self._try(self._reader, lambda connection, _: work(connection))

    def look(self, work: Callable[[Connection], T]) -> T:
        """Return the result of the first read, which is not retried without patience."""
        if self._patience is not None:
            return self.read(work)
        with self.once(writes=False) as connection:
            return work(connection)

    def write(self, work: Callable[[Connection, T | None], T]) -> T:
        """Return the result of ``work`` after its commit.

        If the connection drops during a commit, its outcome is unknown. ``work`` then runs again and receives the
        result of that run (else None), so that it recognizes its own writes.

        Raises:
            StorageError: If the database cannot be written after all retries.
        """
        return self._try(self._writer, work)

    def _try(self, engine: Engine, work: Callable[[Connection, T | None], T]) -> T:
        """Run a transaction, with retries when the connection dropped or while there is patience."""
        in_doubt: T | None = None
        pauses, has_waited = self._pauses(), False
        while True:
            done: list[T] = []
            try:
                with engine.begin() as connection:
                    done.append(work(connection, in_doubt))
            except DBAPIError as error:
                if not self._is_retryable(error) or next(pauses, _GIVEN_UP) is _GIVEN_UP:
                    raise storage_error(error, self.address) from error
                in_doubt, has_waited = done[0] if done else in_doubt, True
            except UnicodeDecodeError as error:
                raise DamagedError.of("UTF-8", error) from error
            else:
                if has_waited and self._patience is not None:
                    self._patience.tell("")
                return done[0]

    def _is_retryable(self, error: DBAPIError) -> bool:
        """Return whether a retry may help, and report the wait."""
        if self._patience is None:
            return is_dropped(error)
        if not (is_dropped(error) or is_locked(error)):
            return False
        shown, seconds = self.address.shown, self._patience.seconds
        happened = "is locked by another process" if is_locked(error) else "cannot be reached"
        self._patience.tell(f"{shown} {happened}; waiting for it, {seconds:g} s at most")
        return True

    def _pauses(self) -> Iterator[None]:
        """Pause at every iteration, until it is time to give up."""
        if self._patience is not None:
            yield from self._patience.pauses()
            return
        for pause in RETRY_PAUSES_SECONDS:
            time.sleep(pause)
            yield


def superuser(link: Connection) -> str | None:
    """Return the name of the role if it is a superuser of the server; None otherwise."""
    if link.dialect.name != "postgresql":
        return None
    role = text("SELECT rolname FROM pg_roles WHERE rolname = current_user AND rolsuper")
    return link.execute(role).scalar_one_or_none()
