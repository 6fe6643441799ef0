"""Opens the database of a URL: the settings under which SQLite and PostgreSQL keep what was committed.

SQLite: write-ahead log, gathered into the file when a ledger that may write closes, ``synchronous=FULL``, foreign keys,
and ``BEGIN IMMEDIATE`` for transactions that write, so that two writers queue up at the start instead of failing in the
middle. PostgreSQL: connections are tested before use,
times are UTC, and neither a lock nor a silent network can hang a study for ever.
"""

import json
import os
import re
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

from sqlalchemy import Connection, Engine, QueuePool, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from search_space.json_text import read_json_text
from studies.errors import DamagedError, StorageError, StorageUrlError
from trial_runner.files import expanded, is_pipe_or_device

_DRIVERS = {
    "sqlite": "sqlite+pysqlite",
    "sqlite+pysqlite": "sqlite+pysqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}
_NO_TEXT = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
_HIDDEN = "***"
_EXAMPLES = "sqlite:///deltaspace.db or postgresql://user@host/database"


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageAddress:
    """A storage URL that was understood.

    Attributes:
        url: For SQLAlchemy, with the driver named.
        shown: The URL as the user wrote it, without its password.
        file: The database file, absolute; None for a server.
    """

    url: URL
    shown: str
    file: Path | None

    @property
    def home(self) -> Path | None:
        """The folder of the database file; None for a server."""
        return None if self.file is None else self.file.parent

    @classmethod
    def parse(cls, text: str) -> "StorageAddress":
        """Return the address in a URL such as ``sqlite:///deltaspace.db`` or ``postgresql://user@host/database``.

        Blanks and line ends around it do not count.

        Raises:
            StorageUrlError: If it is no URL, its scheme is unknown, or it names no file or database.
        """
        text = text.strip()
        if bad := _NO_TEXT.search(text):
            raise StorageUrlError(
                f"a storage URL must be UTF-8 text without controls; got {bad[0]!r} at character {bad.start() + 1}."
            )
        try:
            url = make_url(text)
        except (ArgumentError, ValueError):
            # The text is not shown: it may hold a password.
            raise StorageUrlError(
                f"a storage must be a URL such as {_EXAMPLES}, or a database file that exists; got something else."
            ) from None
        if url.drivername not in _DRIVERS:
            raise StorageUrlError(f"a storage URL must begin like {_EXAMPLES}; got scheme '{url.drivername}'.")
        if "@" in (url.host or ""):
            raise StorageUrlError(f"a '@' in the password of a storage URL must be written %40; see {_EXAMPLES}.")
        shown = _without_secrets(url)
        url = url.set(drivername=_DRIVERS[url.drivername])
        if url.get_backend_name() == "sqlite":
            return cls(url=url, shown=shown, file=_file_of(url, shown))
        if not url.database:
            raise StorageUrlError(f"a PostgreSQL URL must name a database (postgresql://host/NAME); got {shown}.")
        return cls(url=url, shown=shown, file=None)


def _without_secrets(url: URL) -> str:
    """The URL without a password, wherever it stands."""
    hidden = dict.fromkeys((key for key in url.query if "passw" in key.lower()), _HIDDEN)
    return url.update_query_dict(hidden).render_as_string(hide_password=True).replace(quote_plus(_HIDDEN), _HIDDEN)


def _file_of(url: URL, shown: str) -> Path:
    """The absolute path of an SQLite database."""
    if url.query or url.host:
        raise StorageUrlError(
            f"an SQLite URL holds a path and nothing else; got {shown}. "
            "Write three slashes before a relative path, four before an absolute one."
        )
    if not url.database or url.database == ":memory:":
        raise StorageUrlError(f"an SQLite storage must be a file, such as sqlite:///deltaspace.db; got {shown}.")
    return expanded(url.database).absolute()


WRITES = "deltaspace_writes"
"""Execution option of connections that begin their transactions with the intent to write."""

BUSY_TIMEOUT_SECONDS = 5.0
_LOCK_RETRY_SECONDS = 0.02
_GATHER_TIMEOUT_MILLISECONDS = 1_000
_SERVER_SETTINGS = "-c timezone=UTC -c lock_timeout=10s -c idle_in_transaction_session_timeout=60s"
_SERVER_READ_ONLY = "-c default_transaction_read_only=on"


class Access(StrEnum):
    """What is allowed: to create the database, to write an existing one, or only to read it."""

    CREATE = "rwc"
    WRITE = "rw"
    READ = "ro"


def open_engine(address: StorageAddress, access: Access) -> Engine:
    """The engine of a storage. Connects only when used.

    Raises:
        StorageError: If the file (unless it may be created), its folder, or the PostgreSQL driver is missing.
    """
    if address.file is not None:
        return _open_sqlite(address, access)
    return _open_postgres(address, access)


def _open_sqlite(address: StorageAddress, access: Access) -> Engine:
    """An engine over one file."""
    file = address.file
    if file is None or not file.parent.is_dir():
        raise StorageUrlError(f"the folder of {address.shown} must exist; got {file and file.parent}. Create it first.")
    if access is not Access.CREATE and not file.exists():
        raise StorageUrlError(f"no database at {address.shown}; launch a study first.")
    if is_pipe_or_device(file):  # SQLite would wait for ever
        raise StorageUrlError(f"an SQLite storage must be a regular file; {address.shown} is none. Choose another.")
    same = _SameFile(address, file)
    engine = create_engine(
        address.url,
        creator=lambda: same.connected(access),
        poolclass=QueuePool,
        json_serializer=_to_json,
        json_deserializer=_from_json,
    )
    event.listen(engine, "begin", lambda connection: _begin_sqlite(connection, same))
    if access is not Access.READ:
        event.listen(engine, "close", lambda connection, _: _gather_log(connection))
    return engine


class _SameFile:
    """The file of an engine: what its first connection has opened is what all others must find at its path.

    A file that was deleted stays open and takes what is written, which nobody would find again; one that was put in its
    place is another's. Neither is opened, made anew, or written.
    """

    def __init__(self, address: StorageAddress, file: Path) -> None:
        self._address = address
        self._file = file
        self._identity: tuple[int, int] | None = None

    def connected(self, access: Access) -> sqlite3.Connection:
        """A new connection.

        Raises:
            StorageError: As `check`.
        """
        self.check()
        connection = _connect_sqlite(self._file, access)
        if self._identity is None:
            self._identity = _identity(self._file)
        return connection

    def check(self) -> None:
        """See that the file is where it was.

        Raises:
            StorageError: If the path names another file than that of the first connection, or none.
        """
        now = _identity(self._file)
        if self._identity in (None, now):
            return
        happened = "deleted" if now is None else "replaced by another file"
        raise StorageError(
            f"{self._address.shown} must stay where it is while it is used; it was {happened}. "
            "Nothing more was written: put the file back and launch again."
        )


def _connect_sqlite(file: Path, access: Access) -> sqlite3.Connection:
    """A connection in which the driver begins no transactions of its own."""
    if access is Access.CREATE:
        # SQLite itself lets nobody but the owner write a file that it makes, whatever the umask says
        with suppress(OSError):
            os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    if access is not Access.READ:
        return _prepared(file, f"mode={access.value}", _prepare_writing)
    try:
        return _prepared(file, "mode=ro", _prepare_reading)
    except sqlite3.OperationalError:
        # A write-ahead log needs two more files. In a folder that cannot be written they are missing
        # unless a writer is there; without a writer, the file cannot change.
        if file.with_name(f"{file.name}-wal").exists():
            raise
        return _prepared(file, "mode=ro&immutable=1", _prepare_reading)


def _prepared(file: Path, options: str, prepare: Callable[[sqlite3.Connection], None]) -> sqlite3.Connection:
    """A connection with its settings; closed if it refuses them.

    Raises:
        DamagedError: If SQLite names something that is no text.
    """
    connection = sqlite3.connect(
        f"{file.as_uri()}?{options}",
        uri=True,
        timeout=BUSY_TIMEOUT_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        prepare(connection)
    except BaseException as error:
        connection.close()
        if isinstance(error, UnicodeDecodeError):
            raise DamagedError.of("UTF-8", error) from error
        raise
    return connection


def _prepare_reading(connection: sqlite3.Connection) -> None:
    """Settings of a connection that reads; the last line fails if the file cannot be read."""
    connection.execute("PRAGMA query_only = ON")
    connection.execute("SELECT count(*) FROM sqlite_master").fetchone()


def _prepare_writing(connection: sqlite3.Connection) -> None:
    """Settings of a connection that writes."""
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = FULL")
    _use_write_ahead_log(connection)


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Switch the file to WAL. SQLite does not wait for a lock here, so this does."""
    deadline = time.monotonic() + BUSY_TIMEOUT_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(_LOCK_RETRY_SECONDS)
        else:
            return


def _gather_log(connection: sqlite3.Connection) -> None:
    """Bring what stands in the write-ahead log into the file, so that a copy of the file alone is whole.

    SQLite does so when the last connection to a file closes; a dashboard that is open is one more. Where somebody reads
    or writes for longer than the wait, the log stays: nothing is lost by that.
    """
    with suppress(sqlite3.Error):
        connection.execute(f"PRAGMA busy_timeout = {_GATHER_TIMEOUT_MILLISECONDS}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


def _identity(file: Path) -> tuple[int, int] | None:
    """Which file a path names: its device and inode; None if there is none."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _begin_sqlite(connection: Connection, same: _SameFile) -> None:
    """Begin a transaction; one that writes takes the lock at once.

    Raises:
        StorageError: If the path names another file than the connection, or none.
    """
    same.check()
    writes = connection.get_execution_options().get(WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _open_postgres(address: StorageAddress, access: Access) -> Engine:
    """An engine over a server."""
    options = [str(address.url.query.get("options", "")), _SERVER_SETTINGS]
    if access is Access.READ:
        options.append(_SERVER_READ_ONLY)
    arguments: dict[str, Any] = {"connect_timeout": 10, "keepalives_idle": 30, "tcp_user_timeout": 30_000}
    arguments["application_name"] = "deltaspace"
    arguments = {name: value for name, value in arguments.items() if name not in address.url.query}
    arguments["options"] = " ".join(options).strip()
    try:
        return create_engine(
            address.url.difference_update_query(["options"]),
            connect_args=arguments,
            pool_pre_ping=True,
            json_serializer=_to_json,
            json_deserializer=_from_json,
        )
    except ImportError:
        raise StorageError(
            f"{address.shown} needs the PostgreSQL driver; psycopg is not installed. "
            "Run: pip install 'deltaspace[postgres]'"
        ) from None


def _to_json(value: object) -> str:
    """Compact JSON; refuses NaN and infinity, which are no JSON."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _from_json(text: str | bytes | float) -> object:
    """What a JSON text of a database holds.

    Raises:
        DamagedError: If it is none.
    """
    try:
        found: object = read_json_text(text.decode() if isinstance(text, bytes) else str(text))
    except ValueError as error:
        raise DamagedError.of("JSON", error) from error
    return found
