"""How a launch is watched: a live view on a terminal, HTML in a notebook, a line per event elsewhere."""

import importlib
import io
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from rich.live import Live
from rich.text import Text

from dashboards.terminal.events import Events, event_line, progress_line, write_line
from dashboards.terminal.layout import Terminal
from dashboards.terminal.live import LiveView
from studies.runtime.progress import Progress

QUIET_SECONDS = 60.0
"""Without an event for so long, a line says how far the study is."""

_BEFORE = "preparing backbone, task and database …"
_NOTEBOOK_WIDTH = 120
_NOTEBOOK_HTML = '<pre style="font-family: monospace; line-height: 1.3; white-space: pre">{code}</pre>'

Observer = Callable[[Progress], None]


@contextmanager
def progress_view(file: TextIO, *, quiet: bool = False) -> Iterator[Observer]:
    """A function that shows every progress it is called with, for as long as the context lasts.

    Args:
        file: Where it is shown; stderr. A notebook shows it below the cell.
    """
    if quiet:
        yield lambda progress: None
    elif file.isatty():
        console = Terminal(file)
        with Live(Text(_BEFORE, "dim"), console=console, refresh_per_second=4) as live:
            yield lambda progress: live.update(LiveView(progress))
    elif _is_notebook():
        display: Any = importlib.import_module("IPython.display")
        shown = display.display(display.HTML(f"<p>{_BEFORE}</p>"), display_id=True)
        yield lambda progress: shown.update(display.HTML(live_html(progress)))
    else:
        write_line(file, _BEFORE)
        yield _LineObserver(file)


def _is_notebook() -> bool:
    """Whether a kernel runs this, so that HTML can be shown."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def live_html(progress: Progress) -> str:
    """The live view as HTML; whatever a name contains is text."""
    console = Terminal(io.StringIO(), width=_NOTEBOOK_WIDTH, record=True, force_jupyter=False, color_system="truecolor")
    console.print(LiveView(progress))
    return console.export_html(inline_styles=True, code_format=_NOTEBOOK_HTML)


class _LineObserver:
    """Writes a line per event, and now and then how far the study is when nothing happens."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._events = Events()
        self._written_at = 0.0
        self._waits_for = ""

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if progress.waits_for != self._waits_for:
            self._waits_for = progress.waits_for
            write_line(self._file, progress.waits_for or "it goes on")
        for event in self._events.of(progress):
            write_line(self._file, event_line(event))
            self._written_at = now
        if now - self._written_at >= QUIET_SECONDS:
            write_line(self._file, progress_line(progress))
            self._written_at = now
