"""Process that runs one SQL query and ends: at its limits of time and memory the system ends it.

It runs as a file in Python's isolated mode and imports nothing of the project, so that it starts quickly. SQLite keeps
its temporary tables in memory, so nothing is written to a disk. Messages are marshalled, after their length.
"""

import marshal
import math
import os
import resource
import signal
import sqlite3
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing, suppress
from datetime import UTC, date, datetime
from itertools import islice
from typing import IO, Any, cast

BUSY_TIMEOUT_SECONDS = 5.0
_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE})
_PRAGMAS = frozenset({"table_info", "table_xinfo", "table_list", "index_list", "index_info", "foreign_key_list"})
_LONGEST_VALUE_BYTES = 100_000_000
_SMALLEST_BYTES = 32
_BATCH_BYTES = 1_000_000
_MOST_DIGITS = 300
_OWN_MEMORY_BYTES = 1 << 29
_QUERY_CANCELED = "57014"
_GRACE_SECONDS = 2.0
"""Time for a server to stop a statement at its time limit; a server that does not is left."""
_TEMPORARY_KILOBYTES = 1_048_576
_LIMIT_FILES = (
    f"SELECT set_config(name, '{_TEMPORARY_KILOBYTES}', false) FROM pg_settings "
    f"WHERE name = 'temp_file_limit' AND setting::bigint NOT BETWEEN 0 AND {_TEMPORARY_KILOBYTES}"
)
_POWERFUL = (
    "SELECT session_user FROM pg_roles WHERE pg_has_role(session_user, oid, 'MEMBER') AND rolname IN "
    "('pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program', 'pg_signal_backend') LIMIT 1"
)


class QueryFailure(Exception):  # noqa: N818 - an outcome, not an error of this process
    """Failure of a query: its kind, and the message of the database."""


def send(stream: IO[bytes], message: Any) -> None:
    """Write a message."""
    data = marshal.dumps(message)
    stream.write(len(data).to_bytes(8))
    stream.write(data)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Read a message.

    Raises:
        EOFError: If the other process has ended.
    """
    return marshal.loads(stream.read(int.from_bytes(stream.read(8))))


def connect(uri: str, prepare: Callable[[sqlite3.Connection], None]) -> sqlite3.Connection:
    """Return an SQLite connection with its settings, whose driver begins no transactions; close it if they fail."""
    connection = sqlite3.connect(
        uri, uri=True, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def connect_reading(uri: str, file: str) -> sqlite3.Connection:
    """Return an SQLite connection that only reads."""
    try:
        return connect(f"{uri}?mode=ro", _prepare_reading)
    except sqlite3.OperationalError:
        # A write-ahead log needs two more files. In a folder that cannot be written they are missing
        # unless a writer is there; without a writer, the file cannot change.
        if os.path.exists(f"{file}-wal"):  # noqa: PTH110 - pathlib loads slowly
            raise
        return connect(f"{uri}?mode=ro&immutable=1", _prepare_reading)


def _prepare_reading(connection: sqlite3.Connection) -> None:
    """Set up a reading connection; the last statement fails if the file is unreadable."""
    connection.execute("PRAGMA query_only = ON")
    connection.execute("SELECT count(*) FROM sqlite_master").fetchone()


def _authorize(action: int, first: str | None, *_: str | None) -> int:
    """Answer SQLite's question whether a statement may do something."""
    reads = action in _ALLOWED or (action == sqlite3.SQLITE_PRAGMA and (first or "").lower() in _PRAGMAS)
    return sqlite3.SQLITE_OK if reads else sqlite3.SQLITE_DENY


def main() -> None:
    """Answer the request on stdin: batches of rows, then the columns or a failure; end when stdin is closed."""
    if sys.argv[1:]:  # the path of imports, for the driver of a server
        sys.path[:] = sys.argv[1:]
        with suppress(ImportError):
            import psycopg  # noqa: F401
    with suppress(EOFError):
        request, links = receive(sys.stdin.buffer), list[Any]()
        threading.Thread(target=_end_with_parent, args=(links,), daemon=True).start()
        most = resource.getrlimit(resource.RLIMIT_AS)[1]
        memory = request["memory_bytes"] + _OWN_MEMORY_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (memory if most < 0 else min(memory, most), most))
        answer: tuple[Any, ...]
        try:
            answer = ("done", *(_query_sqlite if "file" in request else _query_postgres)(request, links))
        except MemoryError:
            answer = ("memory", "")
        except QueryFailure as failure:
            answer = failure.args
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            answer = ("refused", str(error))
        send(sys.stdout.buffer, answer)
    os._exit(0)


def _end_with_parent(links: list[Any]) -> None:
    """Wait for the end of stdin, cancel the query on its server, and end this process."""
    os.read(0, 1)
    with suppress(Exception):
        for link in links:
            link.cancel()
    os._exit(1)


def _kill_after(seconds: float | None) -> None:
    """Have the system kill this process after a time, even during a long step of a database."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, 0 if seconds is None else seconds)


def _query_sqlite(request: dict[str, Any], _: list[Any]) -> tuple[list[str], bool]:
    """Query a file, opened read-only with reading authorized alone."""
    _kill_after(request["seconds"])
    try:
        connection = connect_reading(request["uri"], request["file"])
    except UnicodeDecodeError as error:
        raise QueryFailure("damaged", str(error)) from error
    except sqlite3.Error as error:
        raise QueryFailure("storage", str(error)) from error
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(request["size_bytes"], _LONGEST_VALUE_BYTES))
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute(f"PRAGMA hard_heap_limit = {request['memory_bytes']}")
    connection.set_authorizer(_authorize)
    cursor = connection.execute(request["sql"])
    if cursor.description is None:
        raise QueryFailure("no table", "")
    return [column[0] for column in cursor.description], _send_rows(cursor, request)


def _query_postgres(request: dict[str, Any], links: list[Any]) -> tuple[list[str], bool]:
    """Query a server in a read-only transaction that is never committed, row by row."""
    import psycopg
    from psycopg.types.string import TextLoader

    seconds, sql = request["seconds"], request["sql"].encode()
    try:
        link = psycopg.connect(**request["server"], autocommit=True)
    except psycopg.Error as error:
        raise QueryFailure("storage", str(error)) from error
    links.append(link)
    _kill_after(seconds + _GRACE_SECONDS)
    try:
        if request["refuses_superuser"] and (powerful := link.execute(_POWERFUL).fetchone()):
            raise QueryFailure("superuser", powerful[0])
        with suppress(psycopg.errors.InsufficientPrivilege):
            link.execute(_LIMIT_FILES)
        link.execute(f"BEGIN READ ONLY; SET LOCAL statement_timeout = {math.ceil(1000 * seconds)}".encode())
        cursor = link.cursor()
        for kind in ("json", "jsonb"):
            cursor.adapters.register_loader(kind, TextLoader)
        # a stream accepts one statement alone, and % is no placeholder; FETCH would gather all rows on the server first
        with closing(cast("Generator[Any]", cursor.stream(sql))) as found:
            is_cut = _send_rows(found, request)
        if cursor.description is None and request["has_rows"]:  # there was no row
            cursor.execute(b"DECLARE asked CURSOR FOR " + sql)
            cursor.execute("FETCH 0 FROM asked")
        return [column.name for column in cursor.description or ()], is_cut
    except psycopg.Error as error:
        if error.sqlstate is None and "memory" in str(error):
            raise MemoryError from error
        raise QueryFailure("time" if error.sqlstate == _QUERY_CANCELED else "refused", str(error)) from error


def _send_rows(found: Iterable[Sequence[Any]], request: dict[str, Any]) -> bool:
    """Send rows in batches and return whether there are more than requested.

    Raises:
        QueryFailure: If all values together are larger than the limit.
    """
    batch, size, sent, most = list[tuple[object, ...]](), 0, 0, request["rows"]
    rows = enumerate(found) if most is None else islice(enumerate(found), most + 1)
    is_cut = False
    for number, row in rows:
        if is_cut := number == most:
            break
        plain = tuple(map(_plain, row))
        size += sum(max(len(one) if isinstance(one, str) else 0, _SMALLEST_BYTES) for one in plain) or _SMALLEST_BYTES
        if sent + size > request["size_bytes"]:
            raise QueryFailure("size", "")
        batch.append(plain)
        if size > _BATCH_BYTES:
            send(sys.stdout.buffer, ("rows", batch))
            batch, size, sent = [], 0, sent + size
    send(sys.stdout.buffer, ("rows", batch))
    return is_cut


def _plain(value: Any) -> object:
    """Return a JSON-able value."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    if isinstance(value, date):
        return value.isoformat()
    return _number(value) if type(value).__name__ == "Decimal" else str(value)


def _number(value: Any) -> object:
    """Return a decimal number as an integer or a float, or as text if it is beyond every float."""
    if value.is_infinite() or value.adjusted() >= _MOST_DIGITS:
        return str(value)
    return int(value) if value == value.to_integral_value() else float(value)


if __name__ == "__main__":
    main()
