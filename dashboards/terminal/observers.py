"""Display of a launch: a live view on a terminal, HTML in a notebook, a line per event elsewhere."""

import importlib
import io
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from rich.live import Live
from rich.text import Text

from dashboards.terminal.events import Events, event_line, progress_line, write_line
from dashboards.terminal.layout import Terminal
from dashboards.terminal.live import LiveView
from studies.runtime.progress import Progress, ProgressCallback

QUIET_SECONDS = 60.0
"""Time without an event after which a line reports the progress."""

_BEFORE = "preparing backbone, task and database …"
_NOTEBOOK_WIDTH = 120
_NOTEBOOK_HTML = '<pre style="font-family: monospace; line-height: 1.3; white-space: pre">{code}</pre>'


@contextmanager
def progress_view(file: TextIO, *, quiet: bool = False) -> Iterator[ProgressCallback]:
    """Yield a function that displays the progress it is called with, while the context is open.

    Args:
        file: Output, such as stderr; a notebook displays it below the cell.
        quiet: Whether to display nothing.
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
    """Return whether the code runs in a Jupyter kernel, which displays HTML."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def live_html(progress: Progress) -> str:
    """Return the live view as HTML; names are escaped."""
    console = Terminal(io.StringIO(), width=_NOTEBOOK_WIDTH, record=True, force_jupyter=False, color_system="truecolor")
    console.print(LiveView(progress))
    return console.export_html(inline_styles=True, code_format=_NOTEBOOK_HTML)


class _LineObserver:
    """ProgressCallback that writes a line per event, and a progress line after a time without events."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._events = Events()
        self._written_at = 0.0
        self._waits_for = ""

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if progress.waits_for != self._waits_for:
            self._waits_for = progress.waits_for
            write_line(self._file, progress.waits_for or "no longer waiting")
        for event in self._events.of(progress):
            write_line(self._file, event_line(event))
            self._written_at = now
        if now - self._written_at >= QUIET_SECONDS:
            write_line(self._file, progress_line(progress))
            self._written_at = now
