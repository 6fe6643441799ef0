"""The view of a running launch: how far it is, the best trials, those that just ended, those that run."""

from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from dashboards.terminal.layout import escape, one_line_table
from dashboards.terminal.text import duration_text, measured_text, share_text, state_text
from studies.analysis.visible import visible
from studies.pruning.degenerate import COLLAPSED
from studies.records import TrialState
from studies.runtime.progress import EndedTrial, Progress, RunningTrial, TimeLeft

_BAR_WIDTH = 40
_MIDDLE_WIDTH, _FULL_WIDTH = 100, 140
_HEAD_LINES = 3
_BETWEEN = 2
"""Lines before the rows of a table: an empty one and its head."""

_FEW, _MOST_ENDED, _MOST_RUNNING = 3, 8, 16
_UNLIMITED = 48
_SHOWN_STATES = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAILED, TrialState.RUNNING)


class LiveView:
    """A study at one moment, as wide and as high as there is room."""

    def __init__(self, progress: Progress, *, height: int | None = None) -> None:
        """Keep it.

        Args:
            progress: What is shown.
            height: Most lines; None for those of the terminal.
        """
        self._progress = progress
        self._height = height

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw it."""
        progress, width = self._progress, options.max_width
        height = self._height or (console.size.height if console.is_terminal else _UNLIMITED)
        yield from _head(progress, width)
        if progress.waits_for:
            yield Text(visible(progress.waits_for), "yellow", no_wrap=True, overflow="ellipsis")
        best, ended, running = _rows(progress, height - 1 - _HEAD_LINES - bool(progress.waits_for))
        trials = _Trials(progress, width)
        for part in (trials.best(best), trials.ended(ended), trials.running(running)):
            yield from part


def _rows(progress: Progress, lines: int) -> tuple[int, int, int]:
    """How many of the best, of those that just ended and of those that run there is room for."""
    wanted = (len(progress.top), min(_MOST_ENDED, len(progress.just_ended)), min(_MOST_RUNNING, len(progress.running)))
    lines -= _BETWEEN * sum(count > 0 for count in wanted) + (len(progress.running) > _FEW)
    given = [min(1, count) for count in wanted]
    # the best first, then a few of the others, then what runs, then what ended
    for place, most in ((0, wanted[0]), (1, _FEW), (2, _FEW), (2, wanted[2]), (1, wanted[1])):
        room = max(0, lines - sum(given))
        given[place] += min(room, max(0, min(most, wanted[place]) - given[place]))
    best, ended, running = given
    return best, ended, running


def counts_text(progress: Progress) -> str:
    """How many trials have ended, of how many."""
    return f"{progress.ended} of {progress.target_trials} trials"


def states_line(progress: Progress) -> str:
    """How many trials are in which state; empty before the first."""
    counts = progress.counts
    return ", ".join(f"{counts[state]} {state.value}" for state in _SHOWN_STATES if counts.get(state))


def left_text(left: TimeLeft) -> str:
    """How long it still takes."""
    return f"{'more than' if left.is_more else 'about'} {duration_text(left.seconds)} left"


def times_text(progress: Progress) -> str:
    """How long it has taken, and still takes."""
    gone = f"{duration_text(progress.seconds_elapsed)} gone"
    return gone if progress.left is None else f"{gone}, {left_text(progress.left)}"


def named(trial: EndedTrial | RunningTrial) -> str:
    """What a trial is, after the name of the published method if it is one."""
    return trial.description if trial.method is None else f"{trial.method}: {trial.description}"


def references_text(progress: Progress) -> str:
    """What scores are held against; empty if that is not known."""
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
        return _line(f"[dim]no trial is complete yet[/]{aside}")
    curve = sparkline(progress.course, until=progress.ended, width=8 if width < _MIDDLE_WIDTH else 24)
    score = measured_text(best.score, progress.examples)
    metric = escape(progress.metric)
    return _line(f"highest {metric} [bold green]{score}[/]{f'  [green]{curve}[/]' if curve else ''}{aside}")


class _Trials:
    """Tables of trials whose first columns, trial, step and score, stand below one another."""

    def __init__(self, progress: Progress, width: int) -> None:
        self._progress = progress
        self._width = width
        ended = (*progress.top, *progress.just_ended)
        scores = [self._measured(one) for one in ended]
        scores += [self._newest(one) for one in progress.running]
        steps = [str(one.step) for one in ended] + [_step(one) for one in progress.running]
        self._least = [5, max(map(len, steps), default=4), max(map(len, (*scores, progress.metric)))]

    def best(self, count: int) -> Iterator[RenderableType]:
        """Those of the highest scores."""
        is_wide = self._width >= _MIDDLE_WIDTH
        rows = [
            [
                *self._ended(one),
                *(
                    [f"{one.stored_parameters:,}", share_text(one.stored_parameters / self._progress.budget_parameters)]
                    if is_wide
                    else []
                ),
                f"[bold]{escape(named(one))}[/]" if one.method is None else escape(named(one)),
            ]
            for one in self._progress.top[:count]
        ]
        yield from self._table(("parameters", "of budget") if is_wide else (), "highest", rows)

    def ended(self, count: int) -> Iterator[RenderableType]:
        """Those that just ended, the newest first, with their verdict."""
        newest = list(reversed(self._progress.just_ended))[:count]
        yield from self._table((), "just ended", [[*self._ended(one), self._what(one)] for one in newest])

    def running(self, count: int) -> Iterator[RenderableType]:
        """Those that run, with their newest score."""
        is_wide = self._width >= _MIDDLE_WIDTH
        rows = [
            [
                str(one.number),
                _step(one),
                self._newest(one),
                *([escape(one.worker)] if is_wide else []),
                escape(named(one)),
            ]
            for one in _furthest(self._progress.running, count)
        ]
        yield from self._table(("worker",) if is_wide else (), "running", rows)
        hidden = len(self._progress.running) - len(rows)
        if rows and hidden:
            yield Text(f"and {hidden} more", "dim")

    def _table(self, more: Sequence[str], title: str, rows: Sequence[Sequence[str]]) -> Iterator[RenderableType]:
        if rows:
            heads = ("trial", "step", escape(self._progress.metric), *more, title)
            yield from (Text(), one_line_table(heads, rows, width=self._width, least=self._least))

    def _ended(self, one: EndedTrial) -> list[str]:
        return [str(one.number), str(one.step), self._measured(one)]

    def _measured(self, one: EndedTrial) -> str:
        return measured_text(one.score, self._progress.examples, state=one.state, is_by_loss=one.is_by_loss)

    def _newest(self, one: RunningTrial) -> str:
        examples = self._progress.examples
        return measured_text(one.last_score, examples, state=TrialState.RUNNING, is_by_loss=one.is_by_loss)

    def _what(self, one: EndedTrial) -> str:
        reason = reason_text(one)
        why = f" [dim]({escape(reason)})[/]" if reason and self._width >= _FULL_WIDTH else ""
        ended = "[bold green]highest so far[/]" if one.is_best else state_text(one.state, one.reason)
        return f"{ended}: {escape(named(one))}{why}"


def _step(one: RunningTrial) -> str:
    return f"{one.step}/{one.steps}"


def reason_text(one: EndedTrial) -> str:
    """Why a trial ended early, without what its step and state say; empty of complete ones."""
    rung, _, told = (one.reason or "").partition("): ")
    said = told if rung.startswith("rung ") and told else (one.reason or "")
    return said.removeprefix(COLLAPSED)


def _furthest(running: Sequence[RunningTrial], count: int) -> list[RunningTrial]:
    """Those that have come furthest, in the order of their numbers."""
    chosen = sorted(running, key=lambda one: (-one.step, one.number))[:count]
    return sorted(chosen, key=lambda one: one.number)


_LEVELS = "▁▂▃▄▅▆▇█"


def sparkline(course: Sequence[tuple[int, float]], *, until: int, width: int) -> str:
    """How the best score rose with the number of ended trials; empty before there are two scores.

    Args:
        course: After how many trials it rose, and to what; ascending in both.
        until: How many trials have ended.
        width: Most characters.
    """
    if len(course) < 2:
        return ""
    (first, low), (_, high) = course[0], course[-1]
    count = min(width, until - first + 1)
    seen = [first + round(place * (until - first) / max(1, count - 1)) for place in range(count)]
    values = [max(score for ended, score in course if ended <= at) for at in seen]
    return "".join(_LEVELS[round((value - low) / (high - low) * (len(_LEVELS) - 1))] for value in values)
