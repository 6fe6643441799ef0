"""Questions in SQL, asked over a connection that cannot write, for a limited time, for a limited number of rows."""

import math
import re
import sqlite3
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

from studies.errors import QueryError, said_line
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
_QUERY_CANCELED = "57014"
_LONGEST_ON_A_SERVER_SECONDS = 3600.0
"""A query that nobody waits for any more does not run on a server for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How far a query may go.

    Attributes:
        rows: How many rows are taken; None for all.
        seconds: How long it may run, above 0; None for as long as it takes, on a server an hour.
        size_bytes: How much all values that are taken may be, and with SQLite each value on the way.

    Raises:
        QueryError: If one is out of range.
    """

    rows: int | None = None
    seconds: float | None = None
    size_bytes: int = 400_000_000

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.rows is not None and not self.rows >= 0:
            raise QueryError(f"a query takes at least 0 rows; got a limit of {self.rows}.")
        if self.seconds is not None and not (self.seconds > 0 and math.isfinite(self.seconds)):
            raise QueryError(f"a query may take more than 0 seconds; got {self.seconds}.")

    @property
    def overrun(self) -> QueryError:
        """The time is up."""
        return QueryError(f"a query may take {self.seconds:g} s; this one was stopped. Ask for less, or allow more.")


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult:
    """The answer to a query.

    Attributes:
        columns: Names, as the query has them; one may stand twice.
        rows: Text, numbers, booleans, times in UTC, None; one value per column.
        is_cut: Whether there are more rows than were asked for.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    is_cut: bool = False

    def to_dicts(self) -> list[dict[str, object]]:
        """One dictionary a row."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def run_query(url: str, sql: str, limits: Limits = NO_LIMITS) -> QueryResult:
    """The answer to one SQL statement that only reads; values are what JSON can hold, times ISO 8601 in UTC.

    An interruption (Ctrl-C) stops the statement in the database.

    Args:
        url: Of the storage.
        sql: The statement.
        limits: How long it may run, and how many rows are taken; `QueryResult.is_cut` tells whether there are more.

    Raises:
        QueryError: If it is not one reading statement, takes too long, or the database refuses it.
        StorageError: If the storage cannot be read.
    """
    address = StorageAddress.parse(url)
    word = _checked_first_word(sql, _READING_SQLITE if address.file else _READING_POSTGRES)
    engine = open_engine(address, Access.READ)
    try:
        if address.file:
            return _ask_sqlite(engine, sql, limits)
        return _ask_postgres(engine, sql, limits, has_rows=word in _ROWS_OF_POSTGRES)
    except DBAPIError as error:
        raise storage_error(error, address) from error
    finally:
        engine.dispose()


def _checked_first_word(sql: str, allowed: Sequence[str]) -> str:
    """Say early and clearly what a query is; what it may do is the connection's matter."""
    start = 0
    while match := _COMMENT.match(sql, start):
        start = match.end()
    word = re.match(r"\w*", sql[start:])
    found = word.group() if word else ""
    if found.lower() in allowed:
        return found.lower()
    if not sql[start:]:
        raise QueryError("a query must be an SQL statement; got nothing. Try: SELECT * FROM leaderboard")
    listed = ", ".join(name.upper() for name in allowed)
    raise QueryError(f"a query must only read, so it begins with one of {listed}; got '{found}'.")


def _ask_sqlite(engine: Engine, sql: str, limits: Limits) -> QueryResult:
    """Ask a file: opened read-only, and nothing but reading is authorised."""
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
    """Stop what runs when its time is up, or when the user interrupts it."""
    ends_at = math.inf if limits.seconds is None else time.monotonic() + limits.seconds
    # While Python runs this function it also hears of Ctrl-C, which ends the statement and is then lost.
    driver.set_progress_handler(lambda: time.monotonic() > ends_at, _SQLITE_STEPS_BETWEEN_LOOKS)
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
    """SQLite's question whether a statement may do something."""
    reads = action in _ALLOWED or (action == sqlite3.SQLITE_PRAGMA and (first or "").lower() in _PRAGMAS)
    return sqlite3.SQLITE_OK if reads else sqlite3.SQLITE_DENY


def _ask_postgres(engine: Engine, sql: str, limits: Limits, *, has_rows: bool) -> QueryResult:
    """Ask a server, in a read-only transaction that is rolled back whatever happens."""
    import psycopg
    from psycopg.types.string import TextLoader

    with engine.connect() as connection:
        connection.exec_driver_sql("SET TRANSACTION READ ONLY")
        seconds = _LONGEST_ON_A_SERVER_SECONDS if limits.seconds is None else limits.seconds
        connection.exec_driver_sql(f"SET LOCAL statement_timeout = {max(1, math.ceil(1000 * seconds))}")
        driver = connection.connection.driver_connection
        if not isinstance(driver, psycopg.Connection):
            raise TypeError(f"expected a connection of psycopg; got {type(driver)}.")
        with driver.cursor() as cursor:
            for kind in ("json", "jsonb"):
                cursor.adapters.register_loader(kind, TextLoader)
            is_cut_there = has_rows and limits.rows is not None

            def execute() -> psycopg.Cursor[Any]:
                # Prepared: the server takes one statement only, and % is no placeholder.
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
    """Run a statement and take its rows; one more than are wanted, to tell whether there are more."""
    try:
        cursor = execute()
        taken = () if cursor.description is None else islice(cursor, None if limits.rows is None else limits.rows + 1)
        rows = tuple(_small(taken, limits))
    except MemoryError as error:
        raise QueryError("a query must fit in memory; this one does not. Ask for less.") from error
    except (refusal, sqlite3.Warning, ValueError) as error:
        raise QueryError(_refused(str(error))) from error
    if cursor.description is None:
        raise QueryError("a query must answer with a table; this statement has no result.")
    columns = tuple(column[0] for column in cursor.description)
    return QueryResult(columns=columns, rows=rows[: limits.rows], is_cut=len(rows[: limits.rows]) < len(rows))


def _small(rows: Iterable[Sequence[Any]], limits: Limits) -> Iterator[tuple[object, ...]]:
    """The rows as they are read, until they are too much.

    Raises:
        QueryError: If all values together are larger than the limit.
    """
    left = limits.size_bytes
    for row in rows:
        plain = tuple(map(_plain, row))
        left -= sum(len(value) if isinstance(value, str) else _NUMBER_BYTES for value in plain)
        if left < 0:
            raise QueryError(f"a query may take {limits.size_bytes:,} bytes; this one has more. Ask for less.")
        yield plain


def _refused(message: str) -> str:
    """What the database said, and what may help."""
    line = said_line(message, "no reason given")
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
    """A value that JSON can hold."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    if isinstance(value, date):
        return value.isoformat()
    return bytes(value).hex() if isinstance(value, bytes | memoryview) else str(value)
