"""Leaderboard, verdict and confirmation as a terminal shows them, at three widths."""

import re
from html import unescape

import pytest
from support.screens import WIDTHS, kept, picture, screen
from support.shown_board import shown_board

from dashboards.terminal.tables import leaderboard_table


@pytest.mark.parametrize("width", WIDTHS)
def test_a_leaderboard_with_its_verdict(width):
    text = screen(leaderboard_table(shown_board()), width)
    assert text == kept(f"leaderboard-{width}", text)


def test_narrow_leaderboard_keeps_sizes_and_rates_and_has_no_other_legend():
    text = " ".join(screen(leaderboard_table(shown_board()), 80).split())
    assert "(17,414 parameters, lr 2.4e-03 and 1.1e-02)" in text
    assert "(17,436 parameters, lr 2.4e-03)" in text
    assert "of budget:" not in text
    assert "(lr 2.4e-03)" in " ".join(screen(leaderboard_table(shown_board()), 120).split())


def test_the_documentation_has_a_picture_of_it():
    table = leaderboard_table(shown_board())
    drawn = unescape(re.sub(r"<[^>]+>", " ", picture("leaderboard", table, 120).read_text(encoding="utf-8")))
    words = set(drawn.replace("\xa0", " ").split())
    assert {word for word in screen(table, 120).split() if word.isalnum()} <= words
