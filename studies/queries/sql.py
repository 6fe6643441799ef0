"""Questions in SQL, asked over a connection that cannot write."""

import re
import sqlite3
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from studies.errors import QueryError
from studies.queries.table import Table
from studies.store.address import StorageAddress
from studies.store.engine import Access, open_engine
from studies.store.failures import explained
from studies.store.tables import METADATA
from studies.store.views import VIEWS

_COMMENT = re.compile(r"\s+|--[^\n]*(?:\n|$)|/\*.*?\*/|\(", re.DOTALL)
_READING = ("select", "with", "values", "explain")
_READING_SQLITE = (*_READING, "pragma")
_READING_POSTGRES = (*_READING, "table", "show")
_PRAGMAS = frozenset({"table_info", "table_xinfo", "table_list", "index_list", "index_info", "foreign_key_list"})
_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE})


def run_query(url: str, sql: str) -> Table:
    """The answer to one SQL statement that only reads; values are what JSON can hold, times ISO 8601 in UTC.

    Raises:
        QueryError: If it is not one reading statement, or the database refuses it.
        StorageError: If the storage cannot be read.
    """
    address = StorageAddress.parse(url)
    _check_first_word(sql, _READING_SQLITE if address.file else _READING_POSTGRES)
    engine = open_engine(address, Access.READ)
    try:
        return _ask_sqlite(engine, sql) if address.file else _ask_postgres(engine, sql)
    except DBAPIError as error:
        raise explained(error, address) from error
    finally:
        engine.dispose()


def _check_first_word(sql: str, allowed: Sequence[str]) -> None:
    """Say early and clearly what a query is; what it may do is the connection's matter."""
    start = 0
    while match := _COMMENT.match(sql, start):
        start = match.end()
    word = re.match(r"\w*", sql[start:])
    found = word.group() if word else ""
    if found.lower() not in allowed:
        listed = ", ".join(name.upper() for name in allowed)
        raise QueryError(f"a query must only read, so it begins with one of {listed}; got '{found}'.")


def _ask_sqlite(engine: Engine, sql: str) -> Table:
    """Ask a file: opened read-only, and nothing but reading is authorised."""
    with engine.connect() as connection:
        driver = connection.connection.driver_connection
        if not isinstance(driver, sqlite3.Connection):
            raise TypeError(f"expected a connection of sqlite3; got {type(driver)}.")
        driver.set_authorizer(_authorize)
        return _fetch(lambda: driver.execute(sql), sqlite3.Error)


def _authorize(action: int, first: str | None, *_: str | None) -> int:
    """SQLite's question whether a statement may do something."""
    reads = action in _ALLOWED or (action == sqlite3.SQLITE_PRAGMA and (first or "").lower() in _PRAGMAS)
    return sqlite3.SQLITE_OK if reads else sqlite3.SQLITE_DENY


def _ask_postgres(engine: Engine, sql: str) -> Table:
    """Ask a server, in a read-only transaction that is rolled back whatever happens."""
    import psycopg
    from psycopg.types.string import TextLoader

    with engine.connect() as connection:
        connection.exec_driver_sql("SET TRANSACTION READ ONLY")
        driver = connection.connection.driver_connection
        if not isinstance(driver, psycopg.Connection):
            raise TypeError(f"expected a connection of psycopg; got {type(driver)}.")
        with driver.cursor() as cursor:
            for kind in ("json", "jsonb"):
                cursor.adapters.register_loader(kind, TextLoader)
            # Prepared: the server takes one statement only, and % is no placeholder.
            return _fetch(lambda: cursor.execute(sql.encode(), prepare=True), psycopg.Error)


def _fetch(execute: Callable[[], Any], refusal: type[Exception]) -> Table:
    """Run a statement and take its rows."""
    try:
        cursor = execute()
        rows = () if cursor.description is None else tuple(tuple(map(_plain, row)) for row in cursor)
    except (refusal, sqlite3.Warning, ValueError) as error:
        raise QueryError(_refused(str(error))) from error
    if cursor.description is None:
        raise QueryError("a query must answer with a table; this statement has no result.")
    return Table(columns=tuple(column[0] for column in cursor.description), rows=rows)


def _refused(message: str) -> str:
    """What the database said, and what may help."""
    line = (message.strip().splitlines() or ["no reason given"])[0].rstrip(".")
    if "one statement at a time" in line or "multiple commands" in line:
        return "a query must be one statement; got several. Send them one by one."
    if any(sign in line for sign in ("not authorized", "readonly", "read-only")):
        return f"a query must only read; the database refuses this one ({line})."
    if "no such table" in line or ("relation" in line and "does not exist" in line):
        return f"the database refuses the query: {line}. {_known()}"
    return f"the database refuses the query: {line}."


def _known() -> str:
    views = ", ".join(view.name for view in VIEWS)
    return f"Its views: {views}. Its tables: {', '.join(sorted(METADATA.tables))}."


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
