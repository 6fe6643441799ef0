"""SQL queries over a read-only connection, in a process of their own with limits of time, memory and rows."""

import math
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from functools import cache
from importlib.util import find_spec
from typing import IO, Any, cast

from studies.errors import DamagedError, QueryError, StudiesError, message_line
from studies.ledger import sql_process
from studies.ledger.database import connection_error
from studies.ledger.engine import Access, StorageAddress, checked_file, missing_driver, server_arguments
from studies.ledger.tables import METADATA
from studies.ledger.views import VIEWS

_COMMENT = re.compile(r"\s+|--[^\n]*(?:\n|$)|/\*.*?\*/|\(", re.DOTALL)
_READING = ("select", "with", "values", "explain")
_READING_SQLITE = (*_READING, "pragma")
_READING_POSTGRES = (*_READING, "table", "show")
_ROWS_OF_POSTGRES = ("select", "with", "values", "table")
_SECONDS_TO_END = 2.0
LONGEST_ON_A_SERVER_SECONDS = 3600.0
"""Timeout of a query on a server without a limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a query.

    Attributes:
        rows: Largest number of rows; None for all.
        seconds: Largest duration, above 0; None for no limit, on a server one hour.
        size_bytes: Largest size of all returned values, and with SQLite of each intermediate value.
        memory_bytes: Largest memory of SQLite, temporary tables included; the process may take half a gigabyte more.
        refuses_superuser: Whether to refuse a role of a server that may read the server's files or end sessions.

    Raises:
        QueryError: If one is out of range.
    """

    rows: int | None = None
    seconds: float | None = None
    size_bytes: int = 400_000_000
    memory_bytes: int = 1 << 30
    refuses_superuser: bool = False

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.rows is not None and not self.rows >= 0:
            raise QueryError(f"the row limit must be at least 0; got {self.rows}.")
        if self.seconds is not None and not (self.seconds > 0 and math.isfinite(self.seconds)):
            raise QueryError(f"the timeout must be above 0 seconds; got {self.seconds}.")


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult:
    """Result of a query.

    Attributes:
        columns: Names, as in the query; one may occur twice.
        rows: Text, numbers, booleans, times in UTC, None; one value per column.
        is_cut: Whether there are more rows than requested.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    is_cut: bool = False

    def to_dicts(self) -> list[dict[str, object]]:
        """Return one dictionary per row."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


_RUNNING: set[subprocess.Popen[bytes]] = set()


@cache
def _end_with_main_thread() -> None:
    """End running processes when the main thread has ended, since Python waits for threads that wait for them."""

    def wait() -> None:
        threading.main_thread().join()
        for process in tuple(_RUNNING):
            process.kill()

    threading.Thread(target=wait, daemon=True).start()


def _messages(address: StorageAddress, request: dict[str, Any]) -> Generator[Sequence[Any]]:
    """Yield the messages of a process that answers a query; ``("ended", CODE)`` if it ends before.

    It ends with this process at the latest. When no more messages are wanted it stops the query on its server first.
    """
    path = [] if address.file else sys.path  # of a server it loads the driver
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", sql_process.__file__, *path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for this process
    )
    _RUNNING.add(process)
    _end_with_main_thread()
    stdin, stdout = cast("tuple[IO[bytes], IO[bytes]]", (process.stdin, process.stdout))
    try:
        with suppress(EOFError, BrokenPipeError):
            sql_process.send(stdin, request)
            while True:
                yield sql_process.receive(stdout)
        yield "ended", process.wait()
    finally:
        with suppress(BrokenPipeError, subprocess.TimeoutExpired):
            stdin.close()
            process.wait(_SECONDS_TO_END)
        process.kill()
        process.wait()
        _RUNNING.discard(process)
        stdout.close()


def run_query(url: str, sql: str, limits: Limits = NO_LIMITS) -> QueryResult:
    """Return the result of one reading SQL statement; values are JSON-able, times ISO 8601 in UTC.

    An interruption (Ctrl-C) stops the statement in the database.

    Args:
        url: URL of the storage.
        sql: SQL statement.
        limits: Limits of time and rows; `QueryResult.is_cut` is whether there are more rows.

    Raises:
        QueryError: If it is not one reading statement, takes too long, or the database refuses it.
        StorageError: If the storage cannot be read.
    """
    address = StorageAddress.parse(url)
    word = _checked_first_word(sql, _READING_SQLITE if address.file else _READING_POSTGRES)
    request = {"sql": sql, **asdict(limits), **_connection_of(address), "has_rows": word in _ROWS_OF_POSTGRES}
    if limits.seconds is None and not address.file:
        request["seconds"] = LONGEST_ON_A_SERVER_SECONDS
    rows: list[tuple[object, ...]] = []
    with closing(_messages(address, request)) as messages:
        for kind, *parts in messages:
            if kind == "done":
                columns, is_cut = parts
                return QueryResult(columns=tuple(columns), rows=tuple(rows), is_cut=is_cut)
            if kind != "rows":
                raise _error(kind, parts[0], limits, address)
            rows += parts[0]
    raise TypeError("the process of a query sent no answer.")


def _connection_of(address: StorageAddress) -> dict[str, Any]:
    """Return the entries of a request for the connection.

    Raises:
        StorageError: If the file or the driver of the server is missing.
    """
    if address.file:
        file = checked_file(address, Access.READ)
        return {"file": str(file), "uri": file.as_uri()}
    if find_spec("psycopg") is None:
        raise missing_driver(address)
    url = address.url.difference_update_query(["options"])
    _, arguments = url.get_dialect()().create_connect_args(url)
    return {"server": {**arguments, **server_arguments(address, Access.READ)}}


def _checked_first_word(sql: str, allowed: Sequence[str]) -> str:
    """Check the first word of a statement for an early, clear error; the connection refuses writes."""
    start = 0
    while match := _COMMENT.match(sql, start):
        start = match.end()
    word = re.match(r"\w*", sql[start:])
    found = word.group() if word else ""
    if found.lower() in allowed:
        return found.lower()
    if not sql[start:]:
        raise QueryError("a query must be an SQL statement; got an empty text. Try: SELECT * FROM leaderboard")
    listed = ", ".join(name.upper() for name in allowed)
    raise QueryError(f"a query must only read, so it begins with one of {listed}; got '{found}'.")


def _error(kind: str, said: Any, limits: Limits, address: StorageAddress) -> StudiesError:
    """Return the error of a query from the last message of its process."""
    if limits.seconds is not None and (kind == "time" or said == -signal.SIGALRM):
        text = f"a query may take {limits.seconds:g} s; this one was stopped. Ask for less, or allow more."
        return QueryError(text)
    if kind == "storage":
        return connection_error(message_line(said), address)
    if kind == "damaged":
        return DamagedError.of("UTF-8", ValueError(said))
    if kind == "ended":
        return QueryError(f"cannot answer the query: its process ended with code {said}. Select less, or try again.")
    texts = {
        "memory": "the result of a query must fit in memory; this one does not. Select less.",
        "size": f"the result of a query must be at most {limits.size_bytes:,} bytes; this one is larger. Select less.",
        "no table": "a query must return a table; this statement has no result.",
        "superuser": f"the role of a query here must be an ordinary one; {said} may read files of the server and end "
        "sessions. Give a role that only reads: deltaspace dashboard --query-storage URL.",
    }
    return QueryError(texts.get(kind) or _refused(said))


def _refused(message: str) -> str:
    """Return the database's message with advice."""
    line = message_line(message, "no reason given")
    if "one statement at a time" in line or "multiple commands" in line:
        return "a query must be one statement; got several. Send them one by one."
    if any(sign in line for sign in ("not authorized", "readonly", "read-only")):
        return f"a query must only read; the database refuses this one ({line})."
    if "no such table" in line or ("relation" in line and "does not exist" in line):
        known = f"Its views: {', '.join(VIEWS)}. Its tables: {', '.join(sorted(METADATA.tables))}."
        return f"the database refuses the query: {line}. {known}"
    return f"the database refuses the query: {line}."
