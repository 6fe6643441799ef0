"""A box for SQL that only reads."""

from dashboards.web.pages.page import Page
from studies.queries.sql import Limits, run_query
from studies.queries.table import Table

MOST_ROWS = 1000
MOST_SECONDS = 10.0
MOST_CHARACTERS = 20_000


def answer(url: str, sql: str) -> dict[str, object]:
    """The first rows that the database answers with."""
    table: Table = run_query(url, sql, Limits(rows=MOST_ROWS, seconds=MOST_SECONDS))
    return {"columns": table.columns, "rows": table.rows, "is_cut": table.is_cut}


PAGE = Page(name="query", title="Query", of_study=False, answers={}, is_exported=False)
