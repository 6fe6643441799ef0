"""How a launch is watched on a terminal, in a notebook and elsewhere."""

import io
from dataclasses import replace

from support.shown_progress import RUNNING, shown_progress

import dashboards.terminal.observers
from dashboards.terminal.observers import live_html, progress_view


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_file_gets_one_line_per_event():
    file = io.StringIO()
    progress = shown_progress()
    with progress_view(file) as observe:
        for ended in (0, 1, 1, 2):
            observe(replace(progress, ended_here=ended))
    begin, *lines = file.getvalue().splitlines()
    assert begin.startswith("preparing")
    assert [line.split(":")[0] for line in lines] == ["docstrings", *["19/36 trial 18 pruned at 50"] * 2]


def test_status_line_is_printed_once_a_minute(monkeypatch):
    clock = iter([100.0, 101.0, 159.9, 160.0, 161.0])
    monkeypatch.setattr(dashboards.terminal.observers.time, "monotonic", lambda: next(clock))
    file = io.StringIO()
    with progress_view(file) as observe:
        for _ in range(5):
            observe(replace(shown_progress(), ended_here=0))
    assert [line.partition(";")[0] for line in file.getvalue().splitlines()[1:]] == [
        "docstrings: 19/36 trials, accuracy",
        "docstrings: 19 of 36 trials, 4 running",
    ]


def test_a_terminal_gets_a_live_view():
    file = Terminal()
    with progress_view(file) as observe:
        observe(shown_progress())
    assert "just ended" in file.getvalue()


def test_quiet_view_prints_no_output():
    file = Terminal()
    with progress_view(file, quiet=True) as observe:
        observe(shown_progress())
    assert file.getvalue() == ""


def test_a_notebook_gets_the_view_as_html_in_which_names_are_text():
    one = replace(RUNNING[0], description="<script>alert(1)</script>")
    text = live_html(replace(shown_progress(), running=(one,)))
    assert text.startswith("<pre")
    assert "&lt;script&gt;" in text
    assert "<script>" not in text
    assert "lora_qv: LoRA r=6–7, ×2, query+value" in text


def test_wait_reason_is_printed_at_once_without_markup():
    waits = replace(shown_progress(), waits_for="sqlite:///x.db is locked by process 7\x1b[2J")
    assert "is locked by process 7" in live_html(waits)
    file = io.StringIO()
    with progress_view(file) as show:
        for one in (shown_progress(), waits, waits, shown_progress()):
            show(one)
    lines = file.getvalue().splitlines()
    at = lines.index("sqlite:///x.db is locked by process 7\\x1b[2J")
    assert lines[at + 1 :] == ["no longer waiting"]
