"""Live view of a launch: progress, best trials, trials that ended last, running trials."""

from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from dashboards.terminal.layout import escape, one_line_table
from dashboards.terminal.text import duration_text, measured_text, share_text, state_text
from studies.analysis.methods import method_of
from studies.analysis.visible import visible
from studies.pruning.degenerate import COLLAPSED
from studies.records import TrialState
from studies.runtime.progress import Progress, TimeLeft, TrialProgress

_BAR_WIDTH = 40
_MIDDLE_WIDTH, _FULL_WIDTH = 100, 140
_HEAD_LINES = 3
_BETWEEN = 2
"""Lines before the rows of a table: a blank one and the header."""

_FEW, _MOST_ENDED, _MOST_RUNNING = 3, 8, 16
_UNLIMITED = 48
_SHOWN_STATES = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAILED, TrialState.RUNNING)


class LiveView:
    """Snapshot of a study that fits the width and height of the terminal."""

    def __init__(self, progress: Progress, *, height: int | None = None) -> None:
        """Store the progress to draw.

        Args:
            progress: Progress of the launch.
            height: Maximum number of lines; None for the height of the terminal.
        """
        self._progress = progress
        self._height = height

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines of the view."""
        progress, width = self._progress, options.max_width
        height = self._height or (console.size.height if console.is_terminal else _UNLIMITED)
        yield from _head(progress, width)
        if progress.waits_for:
            yield Text(visible(progress.waits_for), "yellow", no_wrap=True, overflow="ellipsis")
        yield from _tables(progress, width, height - 1 - _HEAD_LINES - bool(progress.waits_for))


def _rows(progress: Progress, lines: int) -> tuple[int, int, int]:
    """Return the numbers of best, ended and running trials that fit into a number of lines."""
    wanted = (len(progress.top), min(_MOST_ENDED, len(progress.just_ended)), min(_MOST_RUNNING, len(progress.running)))
    lines -= _BETWEEN * sum(count > 0 for count in wanted) + (len(progress.running) > _FEW)
    given = [min(1, count) for count in wanted]
    # lines go to the best trials, then to a few others, then to running and to ended ones
    for place, most in ((0, wanted[0]), (1, _FEW), (2, _FEW), (2, wanted[2]), (1, wanted[1])):
        room = max(0, lines - sum(given))
        given[place] += min(room, max(0, min(most, wanted[place]) - given[place]))
    best, ended, running = given
    return best, ended, running


def counts_text(progress: Progress) -> str:
    """Return the number of ended trials and the target."""
    return f"{progress.ended} of {progress.target_trials} trials"


def states_line(progress: Progress) -> str:
    """Return the number of trials in each state; empty before the first."""
    counts = progress.counts
    return ", ".join(f"{counts[state]} {state.value}" for state in _SHOWN_STATES if counts.get(state))


def left_text(left: TimeLeft) -> str:
    """Return the remaining time."""
    return f"{'more than' if left.is_more else 'about'} {duration_text(left.seconds)} left"


def times_text(progress: Progress) -> str:
    """Return the elapsed and the remaining time."""
    gone = f"{duration_text(progress.seconds_elapsed)} gone"
    return gone if progress.left is None else f"{gone}, {left_text(progress.left)}"


def named(trial: TrialProgress) -> str:
    """Return the description of a trial, after the name of its published method, if any."""
    return trial.description if trial.method is None else f"{trial.method}: {trial.description}"


def references_text(progress: Progress) -> str:
    """Return the reference scores; empty if unknown."""
    known = {"head alone": progress.head_only, "constant": progress.constant}
    return ", ".join(f"{name} {score:.4f}" for name, score in known.items() if score is not None)


def _head(progress: Progress, width: int) -> Iterator[RenderableType]:
    counts = counts_text(progress)
    name = Text(progress.study, "bold", no_wrap=True, overflow="ellipsis")
    name.truncate(max(8, width - len(counts) - 14), overflow="ellipsis")
    room = width - len(counts) - name.cell_len - 4
    head = Table.grid(padding=(0, 2, 0, 0))
    bar = ProgressBar(total=max(1, progress.target_trials), completed=progress.ended, width=min(_BAR_WIDTH, room))
    head.add_row(name, bar, counts)
    yield head
    yield _line("; ".join(filter(None, (states_line(progress), times_text(progress)))))
    yield _best_line(progress, width)


def _line(markup: str) -> Text:
    text = Text.from_markup(markup)
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _best_line(progress: Progress, width: int) -> Text:
    references = references_text(progress)
    aside = f"  [dim]{references}[/]" if references else ""
    best = progress.best
    if best is None:
        compared = "compared when all trials have ended" if progress.counts.get(TrialState.COMPLETE) else ""
        return _line(f"[dim]{compared or 'no trial is complete yet'}[/]{aside}")
    curve = sparkline(progress.improvements, until=progress.ended, width=8 if width < _MIDDLE_WIDTH else 24)
    score = measured_text(best.score, progress.examples)
    metric = escape(progress.metric)
    return _line(f"highest {metric} [bold green]{score}[/]{f'  [green]{curve}[/]' if curve else ''}{aside}")


def _tables(progress: Progress, width: int, lines: int) -> Iterator[RenderableType]:
    """Yield the tables of the best trials, of those that ended last, newest first, and of the running ones."""
    best, ended, running = _rows(progress, lines)
    top, newest = progress.top[:best], list(reversed(progress.just_ended))[:ended]
    furthest = _furthest(progress.running, running)
    is_wide = width >= _MIDDLE_WIDTH
    first = {one: _first(one, progress) for one in (*progress.top, *progress.just_ended, *progress.running)}
    metric = escape(progress.metric)
    # the first three columns have the same width in all tables
    least = [max(map(len, column)) for column in zip(("trial", "step", progress.metric), *first.values(), strict=True)]
    tables: dict[str, tuple[tuple[str, ...], list[list[str]]]] = {
        "highest": (
            ("parameters", "of budget") if is_wide else (),
            [[*first[one], *(_size(one, progress) if is_wide else ()), _bold(one)] for one in top],
        ),
        "just ended": ((), [[*first[one], _ending(one, has_reason=width >= _FULL_WIDTH)] for one in newest]),
        "running": (
            ("worker",) if is_wide else (),
            [[*first[one], *([escape(one.worker or "")] if is_wide else []), escape(named(one))] for one in furthest],
        ),
    }
    for title, (more, rows) in tables.items():
        if rows:
            heads = ("trial", "step", metric, *more, title)
            yield from (Text(), one_line_table(heads, rows, width=width, least=least))
    hidden = len(progress.running) - len(furthest)
    if furthest and hidden:
        yield Text(f"and {hidden} more", "dim")


def _first(one: TrialProgress, progress: Progress) -> list[str]:
    """Return number, step and score of a trial; for a running one, the newest."""
    steps = f"/{progress.steps}" if one.state is TrialState.RUNNING else ""
    score = measured_text(one.score, progress.examples, state=one.state, is_by_loss=one.is_by_loss)
    return [str(one.number), f"{one.step}{steps}", score]


def _size(one: TrialProgress, progress: Progress) -> list[str]:
    return [f"{one.stored_parameters:,}", share_text(one.stored_parameters / progress.budget_parameters)]


def _bold(one: TrialProgress) -> str:
    """Return the description of a trial; discoveries are bold."""
    return f"[bold]{escape(named(one))}[/]" if method_of(one) is None else escape(named(one))


def _ending(one: TrialProgress, *, has_reason: bool) -> str:
    """Return the ending of a trial and its description."""
    reason = reason_text(one) if has_reason else ""
    why = f" [dim]({escape(reason)})[/]" if reason else ""
    ended = "[bold green]highest so far[/]" if one.is_best else state_text(one.state, one.reason)
    return f"{ended}: {escape(named(one))}{why}"


def reason_text(one: TrialProgress) -> str:
    """Return the reason of an early ending without step and state; empty for complete trials."""
    rung, _, told = (one.reason or "").partition("): ")
    said = told if rung.startswith("rung ") and told else (one.reason or "")
    return said.removeprefix(COLLAPSED)


def _furthest(running: Sequence[TrialProgress], count: int) -> list[TrialProgress]:
    """Return the running trials with the most steps, in the order of their numbers."""
    chosen = sorted(running, key=lambda one: (-one.step, one.number))[:count]
    return sorted(chosen, key=lambda one: one.number)


_LEVELS = "▁▂▃▄▅▆▇█"


def sparkline(improvements: Sequence[tuple[int, float]], *, until: int, width: int) -> str:
    """Return the best score over the number of ended trials as a sparkline; empty for fewer than two improvements.

    Args:
        improvements: Improvements as pairs of ended trials and best score; ascending in both.
        until: Number of ended trials.
        width: Maximum number of characters.
    """
    if len(improvements) < 2:
        return ""
    (first, low), (_, high) = improvements[0], improvements[-1]
    count = min(width, until - first + 1)
    seen = [first + round(place * (until - first) / max(1, count - 1)) for place in range(count)]
    values = [max(score for ended, score in improvements if ended <= at) for at in seen]
    return "".join(_LEVELS[round((value - low) / (high - low) * (len(_LEVELS) - 1))] for value in values)
