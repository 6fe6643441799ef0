"""Queries of the page on the database, on both databases, with the answers of the page."""

from support.fixed_ledger import fixed_ledger
from support.pages import ROOT, blocks_of

from dashboards.terminal.frames import rows_table
from dashboards.terminal.layout import UNBOUNDED, terminal_text
from studies.analysis.sql import run_query

PAGE = ROOT / "docs" / "how-to" / "ask-the-database.md"


def test_every_question_has_the_answer_that_the_page_gives(storage_url, tmp_path):
    fixed_ledger(storage_url, tmp_path)
    blocks = [block for block in blocks_of(PAGE) if block.language in ("sql", "text")]
    assert [block.language for block in blocks] == ["sql", "text"] * 20
    for question, answer in zip(blocks[::2], blocks[1::2], strict=True):
        found = run_query(storage_url, question.text)
        assert found.rows, question.line
        shown = terminal_text(rows_table(found.columns, found.rows), width=UNBOUNDED)
        assert shown == answer.text.rstrip("\n"), f"{PAGE.name}:{question.line}"
