"""A box for SQL that only reads."""

from dashboards.web.pages.page import Page
from studies.analysis.sql import Limits, run_query

MOST_ROWS = 1000
MOST_SECONDS = 10.0
MOST_BYTES = 10_000_000
MOST_CHARACTERS = 20_000


def answer(url: str, sql: str) -> dict[str, object]:
    """The first rows that the database answers with."""
    found = run_query(url, sql, Limits(rows=MOST_ROWS, seconds=MOST_SECONDS, size_bytes=MOST_BYTES))
    return {"columns": found.columns, "rows": found.rows, "is_cut": found.is_cut}


PAGE = Page(name="query", title="Query", of_study=False, answers={}, is_exported=False)
