"""Terminal layout: printed text contains no control codes but those of the tables."""

import io

import pytest
from rich.panel import Panel
from rich.text import Text

from dashboards.terminal.layout import Terminal, plain_table, terminal_text

HOSTILE = "\x1b]0;title\x07\x1b[2J\x9b5m\u202eevil\u2069\r"
RAW = frozenset("\x07\x9b\u202e\u2069\r")


def table():
    found = plain_table()
    found.add_column("name")
    found.add_row(Text(HOSTILE))
    return found


@pytest.mark.parametrize("renderable", [HOSTILE, Text(HOSTILE), table(), Panel(Text(HOSTILE), title="x")])
def test_hostile_text_is_shown_and_not_obeyed(renderable):
    file = io.StringIO()
    Terminal(file, width=200, color_system=None).print(renderable, markup=False)
    shown = file.getvalue()
    assert not RAW & set(shown)
    assert "\x1b" not in shown
    assert r"\x1b" in shown


def test_colours_of_our_own_stay():
    file = io.StringIO()
    Terminal(file, width=80, color_system="standard", force_terminal=True).print(Text(f"a{HOSTILE}", "bold red"))
    shown = file.getvalue()
    assert shown.startswith("\x1b[1;31ma")
    assert "\x1b[2J" not in shown


def test_plain_text_has_no_controls():
    assert not (RAW | {"\x1b"}) & set(terminal_text(table()))
