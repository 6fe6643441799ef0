"""Read-only SQL queries."""

from dataclasses import replace
from functools import cache

from sqlalchemy import create_engine

from dashboards.web.pages.page import Page, PageRequest
from studies.analysis.sql import Limits, run_query
from studies.ledger.tables import METADATA
from studies.ledger.views import VIEWS, about, create_views

MOST_CHARACTERS = 20_000
LIMITS = Limits(rows=1000, seconds=10.0, size_bytes=10_000_000, memory_bytes=1 << 28, refuses_superuser=True)


def run_sql(url: str, sql: str) -> dict[str, object]:
    """Return the first rows of a query's result."""
    found = run_query(url, sql, LIMITS)
    return {"columns": found.columns, "rows": found.rows, "is_cut": found.is_cut}


def _sources(request: PageRequest) -> object:
    """Return all views and tables with their columns, and the name of the page's study."""
    study = None if request.watched is None else request.watched.record.name
    return {"study": study, "sources": _views_and_tables()}


@cache
def _views_and_tables() -> list[dict[str, object]]:
    """Return the name, meaning and columns of all views and tables, from a new database."""
    sources = {name: about(name) for name in VIEWS} | {one.name: "a table" for one in METADATA.sorted_tables}
    with create_engine("sqlite://").connect() as fresh:
        METADATA.create_all(fresh)
        create_views(fresh)
        columns = {name: [*fresh.exec_driver_sql(f"SELECT * FROM {name}").keys()] for name in sources}
    return [{"name": name, "about": text, "columns": columns[name]} for name, text in sources.items()]


PAGE = Page(name="query", title="Query", of_study=False, answers={"sources.json": _sources}, is_exported=False)
OF_STUDY = replace(PAGE, of_study=True)
