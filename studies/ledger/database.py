"""Transactions: all or nothing, tried again when a server's connection drops, explained when they fail.

Whoever only looks does not wait for long: it is told what is wrong and may try again. A keeper has a fleet behind it,
which would end with it, so it waits for a database that is locked or away, and says so.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError, SQLAlchemyError

from studies.errors import DamagedError, StorageError, said_line
from studies.ledger.engine import WRITES, StorageAddress

_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 1.0
_NAP_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """What a keeper brings to a database that cannot be used for a while.

    Attributes:
        seconds: A try that fails after so long is the last.
        tell: Told what is waited for, at every try that fails; and the empty text when the waiting is over.
        is_over: Whether nobody wants to wait any longer.
    """

    seconds: float
    tell: Callable[[str], None] = lambda text: None
    is_over: Callable[[], bool] = lambda: False

    def pauses(self) -> Iterator[None]:
        """Waits a moment at every turn, and ends when it is time to give up."""
        until, pause = time.monotonic() + self.seconds, _FIRST_PAUSE_SECONDS
        while time.monotonic() < until and self._nap(pause):
            yield
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _nap(self, seconds: float) -> bool:
        """Wait; False if it was given up."""
        until = time.monotonic() + seconds
        while not self.is_over():
            if (left := until - time.monotonic()) <= 0:
                return True
            time.sleep(min(left, _NAP_SECONDS))
        return False


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
    message = said_line(error.orig, type(error.orig).__name__)
    if isinstance(error, IntegrityError):
        return StorageError(f"{address.shown} refuses the record ({message}). Nothing was written.")
    if address.file is not None:
        return _explained_sqlite(message, address)
    if is_locked(error):
        return StorageError(f"{address.shown} is locked by another process. Stop that process, or try again.")
    if is_dropped(error):
        return StorageError(f"cannot reach {address.shown}: {message}. Is the server running, and the URL right?")
    return StorageError(f"{address.shown} cannot be used: {message}.")


def _explained_sqlite(message: str, address: StorageAddress) -> StorageError:
    """The same for a file."""
    file = address.file
    said = {
        "locked": "is locked by another process. Stop that process, or try again.",
        "not a database": f"must be an SQLite database; {file} is another kind of file. Choose another name.",
        "malformed": f"is damaged ({message}). Restore {file} from a copy.",
        "readonly": f"must be writable; {file} or its folder is read-only. Choose another storage.",
        "read-only": f"must be writable; {file} or its folder is read-only. Choose another storage.",
        "unable to open": f"cannot be opened; {file} or its folder is not accessible. Choose another storage.",
    }
    found = next((text for sign, text in said.items() if sign in message), f"cannot be used: {message}.")
    return StorageError(f"{address.shown} {found}")


_LOCKS = Path("/proc/locks")
_SESSIONS = text(
    "SELECT DISTINCT a.pid, a.application_name, host(a.client_addr) AS host, a.state, "
    "extract(epoch FROM now() - a.xact_start) AS seconds "
    "FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid JOIN pg_class AS c ON c.oid = l.relation "
    "WHERE c.relname = 'studies' AND l.granted AND l.pid <> pg_backend_pid() AND a.datname = current_database() "
    "AND l.mode NOT IN ('AccessShareLock') ORDER BY a.pid"
)


def holders(engine: Engine, address: StorageAddress) -> str:
    """A phrase that names them, such as ``process 4711 (sqlite3)``; empty if nobody can be named."""
    if address.file is not None:
        return _who_locks(address.file)
    with suppress(SQLAlchemyError), engine.connect() as connection:
        return _sessions(connection)
    return ""


def _sessions(connection: Connection) -> str:
    """Sessions of PostgreSQL that hold rows of the studies."""
    found = []
    for row in connection.execute(_SESSIONS):
        name, where = row.application_name or "a program", row.host or "this machine"
        age = "" if row.seconds is None else f", {row.state} since {max(0, round(row.seconds))} s"
        found.append(f"{name} on {where} (session {row.pid}{age})")
    return ", ".join(found)


def _who_locks(file: Path) -> str:
    """Processes of this machine that have locked an SQLite database or the index of its log; Linux tells."""
    inodes, pids = set(), []
    for path in (file, file.with_name(f"{file.name}-shm")):
        with suppress(OSError):
            inodes.add(path.stat().st_ino)
    with suppress(OSError, ValueError, IndexError):
        for line in _LOCKS.read_text().splitlines():
            fields = line.split()
            if "WRITE" in fields and int(fields[5].rpartition(":")[2]) in inodes:
                pids.append(int(fields[4]))
    return ", ".join(f"process {pid}{_name(pid)}" for pid in dict.fromkeys(pids) if pid > 0)


def _name(pid: int) -> str:
    with suppress(OSError):
        return f" ({Path(f'/proc/{pid}/comm').read_text().strip()})"
    return ""


T = TypeVar("T")

# Together about 16 s: a server that restarts is back by then.
RETRY_PAUSES_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
_GIVEN_UP = object()


_ADDRESS = "deltaspace_address"


def home_of(connection: Connection) -> Path | None:
    """The folder of the database file; None of a server."""
    return address_of(connection).home


def address_of(connection: Connection) -> StorageAddress:
    """Where a connection of a `Database` leads."""
    found: StorageAddress = connection.get_execution_options()[_ADDRESS]
    return found


class Database:
    """A database that is open."""

    def __init__(self, engine: Engine, address: StorageAddress, patience: Patience | None = None) -> None:
        """Take an engine over.

        Args:
            patience: For a database that is locked or away; None tries again only when a connection dropped.
        """
        self.address = address
        self._patience = patience
        engine = engine.execution_options(**{_ADDRESS: address})
        self._engine = engine
        self._reader = engine.execution_options(**({} if address.file else {"isolation_level": "REPEATABLE READ"}))
        self._writer = engine.execution_options(**{WRITES: True})

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    @contextmanager
    def once(self, *, writes: bool) -> Iterator[Connection]:
        """A transaction that is not tried again.

        Raises:
            StorageError: In place of every error of the driver.
        """
        try:
            with (self._writer if writes else self._reader).begin() as connection:
                yield connection
        except DBAPIError as error:
            raise explained(error, self.address) from error
        except UnicodeDecodeError as error:
            raise DamagedError.of("UTF-8", error) from error

    def read(self, work: Callable[[Connection], T]) -> T:
        """The result of ``work`` on one consistent state of the database.

        Raises:
            StorageError: If the database cannot be read.
        """
        return self._try(self._reader, lambda connection, _: work(connection))

    def look(self, work: Callable[[Connection], T]) -> T:
        """The first look at it: as `read`, and not tried again without patience."""
        if self._patience is not None:
            return self.read(work)
        with self.once(writes=False) as connection:
            return work(connection)

    def write(self, work: Callable[[Connection, T | None], T]) -> T:
        """The result of ``work``, committed.

        When the connection drops while a commit is on its way, nobody can tell whether it arrived. ``work`` then runs
        again and is handed the result of the run in doubt (else None), so that it recognises its own writes.

        Raises:
            StorageError: If the database cannot be written, also after trying again.
        """
        return self._try(self._writer, work)

    def _try(self, engine: Engine, work: Callable[[Connection, T | None], T]) -> T:
        """Run a transaction; again after a pause when the connection dropped, or while there is patience."""
        in_doubt: T | None = None
        pauses, has_waited = self._pauses(), False
        while True:
            done: list[T] = []
            try:
                with engine.begin() as connection:
                    done.append(work(connection, in_doubt))
            except DBAPIError as error:
                if not self._may_pass(error) or next(pauses, _GIVEN_UP) is _GIVEN_UP:
                    raise explained(error, self.address) from error
                in_doubt, has_waited = done[0] if done else in_doubt, True
            except UnicodeDecodeError as error:
                raise DamagedError.of("UTF-8", error) from error
            else:
                if has_waited and self._patience is not None:
                    self._patience.tell("")
                return done[0]

    def _may_pass(self, error: DBAPIError) -> bool:
        """Whether trying again may help; says what is waited for."""
        if self._patience is None:
            return is_dropped(error)
        if not (is_dropped(error) or is_locked(error)):
            return False
        by = holders(self._engine, self.address) if is_locked(error) else ""
        shown, seconds = self.address.shown, self._patience.seconds
        happened = f"is locked by {by or 'another process'}" if is_locked(error) else "cannot be reached"
        self._patience.tell(f"{shown} {happened}; waiting for it, {seconds:g} s at most")
        return True

    def _pauses(self) -> Iterator[None]:
        """Waits at every turn, and ends when it is time to give up."""
        if self._patience is not None:
            yield from self._patience.pauses()
            return
        for pause in RETRY_PAUSES_SECONDS:
            time.sleep(pause)
            yield


def superuser(link: Connection) -> str | None:
    """Name of the role, if it may do anything on the server; None of an ordinary one, or of a file."""
    if link.dialect.name != "postgresql":
        return None
    role = text("SELECT rolname FROM pg_roles WHERE rolname = current_user AND rolsuper")
    return link.execute(role).scalar_one_or_none()
