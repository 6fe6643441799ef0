"""Engines: SQLite and PostgreSQL with settings under which committed data lasts.

SQLite: write-ahead log, merged into the file when a writing ledger closes, ``synchronous=FULL``, foreign keys. Writing
transactions begin with ``BEGIN IMMEDIATE``, so that two writers queue at the start instead of failing in the middle.
PostgreSQL: connections are tested before use, times are UTC, and neither a lock nor a silent network hangs a study.
"""

import json
import os
import re
import sqlite3
import time
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
from studies.ledger.sql_process import BUSY_TIMEOUT_SECONDS, connect, connect_reading
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
    """Parsed storage URL.

    Attributes:
        url: URL for SQLAlchemy, with its driver.
        shown: URL as written by the user, without its password.
        file: Absolute path of the database file; None for a server.
    """

    url: URL
    shown: str
    file: Path | None

    @property
    def home(self) -> Path | None:
        """Folder of the database file; None for a server."""
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
            # the text may contain a password
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
    """Return the URL without passwords."""
    hidden = dict.fromkeys((key for key in url.query if "passw" in key.lower()), _HIDDEN)
    return url.update_query_dict(hidden).render_as_string(hide_password=True).replace(quote_plus(_HIDDEN), _HIDDEN)


def _file_of(url: URL, shown: str) -> Path:
    """Return the absolute path of an SQLite database."""
    if url.query or url.host:
        raise StorageUrlError(
            f"an SQLite URL holds a path and nothing else; got {shown}. "
            "Write three slashes before a relative path, four before an absolute one."
        )
    if not url.database or url.database == ":memory:":
        raise StorageUrlError(f"an SQLite storage must be a file, such as sqlite:///deltaspace.db; got {shown}.")
    return expanded(url.database).absolute()


WRITES = "deltaspace_writes"
"""Execution option of connections whose transactions write."""

_LOCK_RETRY_SECONDS = 0.02
_GATHER_TIMEOUT_MILLISECONDS = 1_000
SERVER_SETTINGS = "-c timezone=UTC -c lock_timeout=10s -c idle_in_transaction_session_timeout=60s"
_SERVER_READ_ONLY = "-c default_transaction_read_only=on"


class Access(StrEnum):
    """Permitted access: creating the database, writing an existing one, or reading it."""

    CREATE = "rwc"
    WRITE = "rw"
    READ = "ro"


def open_engine(address: StorageAddress, access: Access) -> Engine:
    """Return the engine of a storage, which connects when used.

    Raises:
        StorageError: If the file (unless it may be created), its folder, or the PostgreSQL driver is missing.
    """
    if address.file is not None:
        return _open_sqlite(address, access)
    return _open_postgres(address, access)


def checked_file(address: StorageAddress, access: Access) -> Path:
    """Return the file of an SQLite storage.

    Raises:
        StorageUrlError: If the file (unless it may be created) or its folder is missing, or it is no regular file.
    """
    file = address.file
    if file is None or not file.parent.is_dir():
        raise StorageUrlError(f"the folder of {address.shown} must exist; got {file and file.parent}. Create it first.")
    if access is not Access.CREATE and not file.exists():
        raise StorageUrlError(f"no database at {address.shown}; launch a study first.")
    if is_pipe_or_device(file):  # SQLite would block
        raise StorageUrlError(f"an SQLite storage must be a regular file; got {address.shown}. Choose another one.")
    return file


def _open_sqlite(address: StorageAddress, access: Access) -> Engine:
    """Return an engine for a file."""
    file = checked_file(address, access)
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
    """Identity of an engine's file: later connections must find the file of the first one at its path.

    A deleted file stays open, and everything written to it would be lost; a file in its place belongs to someone else.
    So neither is opened, created or written.
    """

    def __init__(self, address: StorageAddress, file: Path) -> None:
        self._address = address
        self._file = file
        self._identity: tuple[int, int] | None = None

    def connected(self, access: Access) -> sqlite3.Connection:
        """Return a new connection.

        Raises:
            StorageError: Error of `check`.
        """
        self.check()
        connection = _connect_sqlite(self._file, access)
        if self._identity is None:
            self._identity = _identity(self._file)
        return connection

    def check(self) -> None:
        """Raise an error if the file was deleted or replaced.

        Raises:
            StorageError: If the path leads to another file than that of the first connection, or to none.
        """
        now = _identity(self._file)
        if self._identity in (None, now):
            return
        happened = "deleted" if now is None else "replaced by another file"
        raise StorageError(
            f"{self._address.shown} was {happened} while in use. "
            "Nothing more was written. Restore the file and launch again."
        )


def _connect_sqlite(file: Path, access: Access) -> sqlite3.Connection:
    """Return a connection whose driver begins no transactions."""
    if access is Access.CREATE:
        # SQLite creates files for their owner alone, whatever the umask is
        with suppress(OSError):
            os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    if access is Access.READ:
        return connect_reading(file.as_uri(), str(file))
    return connect(f"{file.as_uri()}?mode={access.value}", _prepare_writing)


def _prepare_writing(connection: sqlite3.Connection) -> None:
    """Set up a writing connection."""
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = FULL")
    _use_write_ahead_log(connection)


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Switch the file to WAL, waiting for locks, which SQLite does not do here."""
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
    """Merge the write-ahead log into the file, so that a copy of the file alone is complete.

    SQLite does so when the last connection closes, but an open dashboard is another one. If a reader or writer takes
    longer than the timeout, the log stays, and nothing is lost.
    """
    with suppress(sqlite3.Error):
        connection.execute(f"PRAGMA busy_timeout = {_GATHER_TIMEOUT_MILLISECONDS}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


def _identity(file: Path) -> tuple[int, int] | None:
    """Return device and inode of a file; None if it is missing."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _begin_sqlite(connection: Connection, same: _SameFile) -> None:
    """Begin a transaction; a writing one takes the lock at once.

    Raises:
        StorageError: If the path leads to another file than the connection, or to none.
    """
    same.check()
    writes = connection.get_execution_options().get(WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def server_arguments(address: StorageAddress, access: Access) -> dict[str, Any]:
    """Return the arguments of a server's driver besides the URL's; the URL's own ``options`` come first."""
    options = [str(address.url.query.get("options", "")), SERVER_SETTINGS]
    if access is Access.READ:
        options.append(_SERVER_READ_ONLY)
    arguments: dict[str, Any] = {"connect_timeout": 10, "keepalives_idle": 30, "tcp_user_timeout": 30_000}
    arguments["application_name"] = "deltaspace"
    arguments = {name: value for name, value in arguments.items() if name not in address.url.query}
    arguments["options"] = " ".join(options).strip()
    return arguments


def missing_driver(address: StorageAddress) -> StorageError:
    """Return the error of a server whose driver is not installed."""
    return StorageError(
        f"{address.shown} needs the PostgreSQL driver; psycopg is not installed. "
        "Run: pip install 'deltaspace[postgres]'"
    )


def _open_postgres(address: StorageAddress, access: Access) -> Engine:
    """Return an engine for a server."""
    try:
        return create_engine(
            address.url.difference_update_query(["options"]),
            connect_args=server_arguments(address, access),
            pool_pre_ping=True,
            json_serializer=_to_json,
            json_deserializer=_from_json,
        )
    except ImportError:
        raise missing_driver(address) from None


def _to_json(value: object) -> str:
    """Return compact JSON; NaN and infinity are refused."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _from_json(text: str | bytes | float) -> object:
    """Return the value of a JSON text of a database.

    Raises:
        DamagedError: If the text is not JSON.
    """
    try:
        value: object = read_json_text(text.decode() if isinstance(text, bytes) else str(text))
    except ValueError as error:
        raise DamagedError.of("JSON", error) from error
    return value
