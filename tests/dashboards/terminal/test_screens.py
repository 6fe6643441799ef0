"""Leaderboard, verdict and confirmation as a terminal shows them, at three widths."""

import re
from html import unescape

import pytest
from support.screens import WIDTHS, kept, picture, screen
from support.shown_board import shown_board

from dashboards.terminal.tables import leaderboard_table


@pytest.mark.parametrize("width", WIDTHS)
def test_a_leaderboard_with_its_verdict(width: int) -> None:
    text = screen(leaderboard_table(shown_board()), width)
    assert text == kept(f"leaderboard-{width}", text)


@pytest.mark.parametrize("width", WIDTHS)
def test_numbers_are_whole_and_every_score_has_what_it_may_be_off(width: int) -> None:
    board = shown_board()
    text = screen(leaderboard_table(board), width)
    for row in board.rows:
        # 743 examples, the common luck of a study taken off: between 1.9 and 2.6 points
        assert re.search(rf"\b{row.number} .*{row.score:.4f} ± 0\.0[12]\d\d\b", text)
        assert f"{row.estimate:.4f} ± 0.0176" in text


def test_a_verdict_is_whole_at_80_columns() -> None:
    board = shown_board()
    text = " ".join(screen(leaderboard_table(board), 80).split())
    assert board.verdict in text
    assert "± of a score: 95%, by the 743 examples that it is of." in text


def test_the_documentation_has_a_picture_of_it() -> None:
    table = leaderboard_table(shown_board())
    drawn = unescape(re.sub(r"<[^>]+>", " ", picture("leaderboard", table, 120).read_text(encoding="utf-8")))
    seen = set(drawn.replace("\xa0", " ").split())
    assert {word for word in screen(table, 120).split() if word.isalnum()} <= seen
