"""Events of a launch, derived from its progress, as short lines and as lines of JSON."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TextIO

from dashboards.terminal.live import counts_text, left_text, named, reason_text, references_text, times_text
from dashboards.terminal.text import measured_text
from studies.analysis.visible import visible, visible_json
from studies.pruning.degenerate import has_collapsed
from studies.records import TrialState
from studies.runtime.progress import Progress, TrialProgress


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event of a launch.

    Attributes:
        progress: Progress of the study at the event.
        trial: Trial that ended; None for the beginning, and for trials that ended unobserved.
        ended: Number of ended trials, this one included.
        unseen: Number of trials that ended without an event of their own.
    """

    progress: Progress
    trial: TrialProgress | None = None
    ended: int = 0
    unseen: int = 0


class Events:
    """Events between one progress of a launch and the next."""

    def __init__(self) -> None:
        """Start before the first progress."""
        self._reported: int | None = None

    def of(self, progress: Progress) -> Iterator[Event]:
        """Yield the events since the previous progress, oldest first."""
        if self._reported is None:
            self._reported = 0
            yield Event(progress=progress, ended=progress.ended - progress.ended_here)
        new = progress.ended_here - self._reported
        self._reported = progress.ended_here
        known = progress.just_ended[-new:] if new > 0 else ()
        if new > len(known):
            yield Event(progress=progress, ended=progress.ended - len(known), unseen=new - len(known))
        for place, trial in enumerate(known):
            yield Event(progress=progress, trial=trial, ended=progress.ended - len(known) + place + 1)


def event_line(event: Event) -> str:
    """Return an event as one short line."""
    progress, one = event.progress, event.trial
    place = f"{event.ended}/{progress.target_trials}"
    if event.unseen:
        return f"{place} {event.unseen} more trials ended"
    if one is None:
        references = references_text(progress)
        return f"{progress.study}: {place} trials, {progress.metric}{f'; {references}' if references else ''}"
    score = ""
    if one.score is not None:
        score = measured_text(one.score, progress.examples, state=one.state, is_by_loss=one.is_by_loss)
    why = f" ({reason_text(one)})" if one.state is TrialState.FAILED else ""
    said = "; ".join(filter(None, (f"{score}{', highest so far' if one.is_best else ''}", f"{named(one)}{why}")))
    is_over = progress.ended >= progress.target_trials
    left = "" if progress.left is None or is_over else f" [{left_text(progress.left)}]"
    return f"{place} trial {one.number} {_ended_as(one)}: {said}{left}"


def _ended_as(one: TrialProgress) -> str:
    if one.state is TrialState.COMPLETE:
        return one.state.value
    word = "collapsed" if has_collapsed(one.reason) else one.state.value
    return f"{word} at {one.step}" if one.step else word


def progress_line(progress: Progress) -> str:
    """Return the progress of a study as one line."""
    running = f", {len(progress.running)} running" if progress.running else ""
    best = "" if progress.best is None else f"; highest {measured_text(progress.best.score, progress.examples)}"
    return f"{progress.study}: {counts_text(progress)}{running}{best}; {times_text(progress)}"


class EventLog:
    """Observer that writes the events of a launch as lines of JSON.

    Args:
        file: Output, flushed after every line; None for no output.
    """

    def __init__(self, file: TextIO | None) -> None:
        """Write nothing yet."""
        self._file = file
        self._events = Events()

    def __call__(self, progress: Progress) -> None:
        """Write the events since the previous progress."""
        for event in self._events.of(progress):
            self._write("trials" if event.unseen else "launch" if event.trial is None else "trial", _entry(event))

    def end(self, study: str, reason: str, *, finished: bool) -> None:
        """Write the end of the launch and its reason."""
        self._write("end", {"study": study, "finished": finished, "reason": reason})

    def _write(self, event: str, entry: dict[str, Any]) -> None:
        if self._file is None:
            return
        line = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event, **entry}
        self._file.write(f"{visible_json(json.dumps(line, ensure_ascii=False))}\n")
        self._file.flush()


def _entry(event: Event) -> dict[str, Any]:
    progress, one = event.progress, event.trial
    entry: dict[str, Any] = {
        "study": progress.study,
        "ended": event.ended,
        "target_trials": progress.target_trials,
        "seconds_left": None if progress.left is None else round(progress.left.seconds, 1),
    }
    if event.unseen:
        return {**entry, "unseen": event.unseen}
    if one is None:
        return {**entry, "metric": progress.metric, "head_only": progress.head_only, "constant": progress.constant}
    return {
        **entry,
        "trial": one.number,
        "state": one.state.value,
        "score": one.score,
        "scored_by": "loss" if one.is_by_loss else progress.metric,
        "step": one.step,
        "is_best": one.is_best,
        "method": one.method,
        "description": one.description,
        "parameters": one.stored_parameters,
        "reason": one.reason,
    }


def write_line(file: TextIO, line: str) -> None:
    """Write a line with control characters escaped, and flush."""
    file.write(f"{visible(line)}\n")
    file.flush()
