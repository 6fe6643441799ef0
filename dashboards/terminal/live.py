"""The view of a running launch: a live table on a terminal, a bar in a notebook, an occasional line elsewhere."""

import html
import importlib
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from dashboards.terminal.layout import Terminal, plain_table
from dashboards.terminal.text import duration_text, escape, share_text
from studies.keeping.progress import Progress, RunningTrial
from studies.queries.visible import visible
from studies.store.records import TrialState

LINE_SECONDS = 10.0
"""Least time between two lines where there is no terminal."""

_MOST_RUNNING = 16
_BAR_WIDTH = 40
_BEFORE = "preparing backbone, task and database …"

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
            yield lambda progress: live.update(live_renderable(progress))
    elif _is_notebook():
        yield _NotebookObserver()
    else:
        file.write(f"{_BEFORE}\n")
        file.flush()
        yield _LineObserver(file)


def _is_notebook() -> bool:
    """Whether a kernel runs this, so that HTML can be shown."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


class _NotebookObserver:
    """A bar and a line below the cell, replaced whenever there is something new."""

    def __init__(self) -> None:
        self._display: Any = importlib.import_module("IPython.display")
        self._shown = self._display.display(self._display.HTML(f"<p>{_BEFORE}</p>"), display_id=True)

    def __call__(self, progress: Progress) -> None:
        bar = f'<progress max="{max(1, progress.target_trials)}" value="{progress.ended}"></progress>'
        self._shown.update(self._display.HTML(f"<p>{bar} {html.escape(progress_line(progress))}</p>"))


class _LineObserver:
    """Writes a line when the last one is old enough, and when the study has all its trials."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._written_at: float | None = None
        self._last = ""

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        is_due = self._written_at is None or now - self._written_at >= LINE_SECONDS
        line = progress_line(progress)
        if (is_due or progress.ended >= progress.target_trials) and line != self._last:
            self._file.write(f"{visible(line)}\n")
            self._file.flush()
            self._written_at, self._last = now, line


def progress_line(progress: Progress) -> str:
    """A study at one moment, on one line."""
    parts = [f"{progress.study}: {_counts(progress)}"]
    if progress.best is not None:
        best = progress.best
        parts.append(f"best {best.score:.4f} (trial {best.number}: {best.description}, {_used(progress)})")
    parts.append(_times(progress))
    return "; ".join(parts)


def live_renderable(progress: Progress) -> RenderableType:
    """A study at one moment: bar, counts, best trial, running trials."""
    head = Table.grid(padding=(0, 2, 0, 0))
    bar = ProgressBar(total=max(1, progress.target_trials), completed=progress.ended, width=_BAR_WIDTH)
    head.add_row(Text(progress.study, "bold"), bar, _counts(progress), _times(progress))
    best: RenderableType = Text("best: no trial is complete yet", "dim")
    if progress.best is not None:
        one = progress.best
        best = Text.from_markup(
            f"best [bold green]{one.score:.4f}[/]  trial {one.number}: {escape(one.description)}  ({_used(progress)})"
        )
    return Group(head, best, *_running(progress.running))


def _running(trials: tuple[RunningTrial, ...]) -> list[RenderableType]:
    if not trials:
        return []
    table = plain_table()
    table.add_column("trial", justify="right")
    table.add_column("what it is", ratio=1, no_wrap=True)
    for name in ("step", "newest", "worker"):
        table.add_column(name, justify="right", no_wrap=True)
    for trial in trials[:_MOST_RUNNING]:
        newest = "-" if trial.last_score is None else f"{trial.last_score:.4f}"
        step = f"{trial.step}/{trial.steps}"
        table.add_row(str(trial.number), escape(trial.description), step, newest, escape(trial.worker))
    hidden = len(trials) - _MOST_RUNNING
    return [Text(), table, *([Text(f"and {hidden} more", "dim")] if hidden > 0 else [])]


def _counts(progress: Progress) -> str:
    counts = progress.counts
    text = f"{progress.ended} of {progress.target_trials} trials"
    aside = ", ".join(
        f"{counts[state]} {state.value}"
        for state in (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAILED, TrialState.RUNNING)
        if counts.get(state)
    )
    return f"{text} ({aside})" if aside else text


def _used(progress: Progress) -> str:
    if progress.best is None:
        return ""
    stored, budget = progress.best.stored_parameters, progress.budget_parameters
    return f"{stored:,} of {budget:,} parameters, {share_text(stored / budget)}"


def _times(progress: Progress) -> str:
    elapsed = f"{duration_text(progress.seconds_elapsed)} gone"
    if progress.seconds_left is None:
        return elapsed
    return f"{elapsed}, about {duration_text(progress.seconds_left)} left"
