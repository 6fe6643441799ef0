"""Read-only SQL queries."""

from dataclasses import replace

from dashboards.web.pages.page import Page, PageRequest
from studies.analysis.sql import Limits, run_query
from studies.ledger.tables import METADATA
from studies.ledger.views import VIEWS

MOST_CHARACTERS = 20_000
LIMITS = Limits(rows=1000, seconds=10.0, size_bytes=10_000_000, memory_bytes=1 << 28, refuses_superuser=True)


def run_sql(url: str, sql: str) -> dict[str, object]:
    """Return the first rows of a query's result."""
    found = run_query(url, sql, LIMITS)
    return {"columns": found.columns, "rows": found.rows, "is_cut": found.is_cut}


def _sources(request: PageRequest) -> object:
    """Return all views and tables with their columns, and the name of the page's study."""
    tables = {one.name: [*one.columns.keys()] for one in METADATA.sorted_tables}
    return {
        "study": None if request.watched is None else request.watched.record.name,
        "sources": [
            *({"name": one.name, "about": one.about, "columns": [*one.columns]} for one in VIEWS),
            *({"name": name, "about": "a table", "columns": columns} for name, columns in tables.items()),
        ],
    }


PAGE = Page(name="query", title="Query", of_study=False, answers={"sources.json": _sources}, is_exported=False)
OF_STUDY = replace(PAGE, of_study=True)
