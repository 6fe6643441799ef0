"""SQL queries over a read-only connection, with limits of time and rows."""

import math
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import islice
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from studies.errors import QueryError, message_line
from studies.ledger.database import storage_error
from studies.ledger.engine import Access, StorageAddress, open_engine
from studies.ledger.tables import METADATA
from studies.ledger.views import VIEWS

_COMMENT = re.compile(r"\s+|--[^\n]*(?:\n|$)|/\*.*?\*/|\(", re.DOTALL)
_READING = ("select", "with", "values", "explain")
_READING_SQLITE = (*_READING, "pragma")
_READING_POSTGRES = (*_READING, "table", "show")
_PRAGMAS = frozenset({"table_info", "table_xinfo", "table_list", "index_list", "index_info", "foreign_key_list"})
_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE})
_ROWS_OF_POSTGRES = ("select", "with", "values", "table")
_SQLITE_STEPS_BETWEEN_LOOKS = 20_000
_LONGEST_VALUE_BYTES = 100_000_000
_NUMBER_BYTES = 32
_MOST_DIGITS = 300
"""Most digits of a number before its point; a longer one is larger than any float, and shown as text."""
_QUERY_CANCELED = "57014"
LONGEST_ON_A_SERVER_SECONDS = 3600.0
"""Timeout of a query on a server without a limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a query.

    Attributes:
        rows: Largest number of rows; None for all.
        seconds: Largest duration, above 0; None for no limit, on a server one hour.
        size_bytes: Largest size of all returned values, and with SQLite of each intermediate value.

    Raises:
        QueryError: If one is out of range.
    """

    rows: int | None = None
    seconds: float | None = None
    size_bytes: int = 400_000_000

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.rows is not None and not self.rows >= 0:
            raise QueryError(f"the row limit must be at least 0; got {self.rows}.")
        if self.seconds is not None and not (self.seconds > 0 and math.isfinite(self.seconds)):
            raise QueryError(f"the timeout must be above 0 seconds; got {self.seconds}.")

    @property
    def overrun(self) -> QueryError:
        """Error of a query that took too long."""
        return QueryError(f"a query may take {self.seconds:g} s; this one was stopped. Ask for less, or allow more.")


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
    engine = open_engine(address, Access.READ)
    try:
        if address.file:
            return _query_sqlite(engine, sql, limits)
        return _query_postgres(engine, sql, limits, has_rows=word in _ROWS_OF_POSTGRES)
    except DBAPIError as error:
        raise storage_error(error, address) from error
    finally:
        engine.dispose()


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


def _query_sqlite(engine: Engine, sql: str, limits: Limits) -> QueryResult:
    """Query a file, opened read-only with reading authorized alone."""
    with engine.connect() as connection:
        driver = connection.connection.driver_connection
        if not isinstance(driver, sqlite3.Connection):
            raise TypeError(f"expected a connection of sqlite3; got {type(driver)}.")
        driver.set_authorizer(_authorize)
        driver.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(limits.size_bytes, _LONGEST_VALUE_BYTES))
        with _stopped_in_time(driver, limits):
            return _fetch(lambda: driver.execute(sql), sqlite3.Error, limits)


@contextmanager
def _stopped_in_time(driver: sqlite3.Connection, limits: Limits) -> Iterator[None]:
    """Stop the statement at its time limit, at an interruption, or at the end of the program."""
    ends_at = math.inf if limits.seconds is None else time.monotonic() + limits.seconds
    main = threading.main_thread()
    # Python raises KeyboardInterrupt in this function, which ends the statement and is then lost
    driver.set_progress_handler(lambda: time.monotonic() > ends_at or not main.is_alive(), _SQLITE_STEPS_BETWEEN_LOOKS)
    try:
        yield
    except QueryError as error:
        if getattr(error.__cause__, "sqlite_errorcode", None) != sqlite3.SQLITE_INTERRUPT:
            raise
        if time.monotonic() > ends_at:
            raise limits.overrun from None
        raise KeyboardInterrupt from None
    finally:
        driver.set_progress_handler(None, 0)


def _authorize(action: int, first: str | None, *_: str | None) -> int:
    """Answer SQLite's question whether a statement may do something."""
    reads = action in _ALLOWED or (action == sqlite3.SQLITE_PRAGMA and (first or "").lower() in _PRAGMAS)
    return sqlite3.SQLITE_OK if reads else sqlite3.SQLITE_DENY


def _query_postgres(engine: Engine, sql: str, limits: Limits, *, has_rows: bool) -> QueryResult:
    """Query a server in a read-only transaction that is rolled back."""
    import psycopg
    from psycopg.types.string import TextLoader

    with engine.connect() as connection:
        connection.exec_driver_sql("SET TRANSACTION READ ONLY")
        seconds = LONGEST_ON_A_SERVER_SECONDS if limits.seconds is None else limits.seconds
        connection.exec_driver_sql(f"SET LOCAL statement_timeout = {max(1, math.ceil(1000 * seconds))}")
        driver = connection.connection.driver_connection
        if not isinstance(driver, psycopg.Connection):
            raise TypeError(f"expected a connection of psycopg; got {type(driver)}.")
        with driver.cursor() as cursor:
            for kind in ("json", "jsonb"):
                cursor.adapters.register_loader(kind, TextLoader)
            is_cut_there = has_rows and limits.rows is not None

            def execute() -> psycopg.Cursor[Any]:
                # prepared, so that the server accepts one statement alone, and % is no placeholder
                if not is_cut_there:
                    return cursor.execute(sql.encode(), prepare=True)
                cursor.execute(b"DECLARE asked NO SCROLL CURSOR FOR " + sql.encode(), prepare=True)
                return cursor.execute(f"FETCH FORWARD {(limits.rows or 0) + 1} FROM asked".encode())

            try:
                return _fetch(execute, psycopg.Error, limits)
            except QueryError as error:
                if getattr(error.__cause__, "sqlstate", None) == _QUERY_CANCELED and limits.seconds is not None:
                    raise limits.overrun from None
                raise


def _fetch(execute: Callable[[], Any], refusal: type[Exception], limits: Limits) -> QueryResult:
    """Run a statement and fetch its rows, one more than requested, to detect further rows."""
    try:
        cursor = execute()
        taken = () if cursor.description is None else islice(cursor, None if limits.rows is None else limits.rows + 1)
        rows = tuple(_small(taken, limits))
    except MemoryError as error:
        raise QueryError("the result of a query must fit in memory; this one does not. Select less.") from error
    except (refusal, sqlite3.Warning, ValueError) as error:
        raise QueryError(_refused(str(error))) from error
    if cursor.description is None:
        raise QueryError("a query must return a table; this statement has no result.")
    columns = tuple(column[0] for column in cursor.description)
    return QueryResult(columns=columns, rows=rows[: limits.rows], is_cut=len(rows[: limits.rows]) < len(rows))


def _small(rows: Iterable[Sequence[Any]], limits: Limits) -> Iterator[tuple[object, ...]]:
    """Yield the rows up to the size limit.

    Raises:
        QueryError: If all values together are larger than the limit.
    """
    left = limits.size_bytes
    for row in rows:
        plain = tuple(map(_plain, row))
        left -= sum(len(value) if isinstance(value, str) else _NUMBER_BYTES for value in plain)
        if left < 0:
            raise QueryError(
                f"the result of a query must be at most {limits.size_bytes:,} bytes; this one is larger. Select less."
            )
        yield plain


def _refused(message: str) -> str:
    """Return the database's message with advice."""
    line = message_line(message, "no reason given")
    if "one statement at a time" in line or "multiple commands" in line:
        return "a query must be one statement; got several. Send them one by one."
    if any(sign in line for sign in ("not authorized", "readonly", "read-only")):
        return f"a query must only read; the database refuses this one ({line})."
    if "no such table" in line or ("relation" in line and "does not exist" in line):
        views = ", ".join(view.name for view in VIEWS)
        known = f"Its views: {views}. Its tables: {', '.join(sorted(METADATA.tables))}."
        return f"the database refuses the query: {line}. {known}"
    return f"the database refuses the query: {line}."


def _plain(value: Any) -> object:
    """Return a JSON-able value."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Decimal):
        if value.is_infinite() or value.adjusted() >= _MOST_DIGITS:
            return str(value)
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    if isinstance(value, date):
        return value.isoformat()
    return bytes(value).hex() if isinstance(value, bytes | memoryview) else str(value)
