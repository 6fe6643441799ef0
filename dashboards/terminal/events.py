"""What happens in a launch, one event after another, told from its progress: as short lines, and as lines of JSON."""

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
    """Something that happened.

    Attributes:
        progress: The study, when it was noticed.
        trial: The trial that ended; None of the beginning, and of trials that ended in between.
        ended: How many trials had ended with it.
        unseen: How many trials ended that nobody was told of one by one.
    """

    progress: Progress
    trial: TrialProgress | None = None
    ended: int = 0
    unseen: int = 0


class Events:
    """Turns every progress of a launch into what has happened since the one before."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._seen: int | None = None

    def of(self, progress: Progress) -> Iterator[Event]:
        """What is new, oldest first."""
        if self._seen is None:
            self._seen = 0
            yield Event(progress=progress, ended=progress.ended - progress.ended_here)
        new = progress.ended_here - self._seen
        self._seen = progress.ended_here
        known = progress.just_ended[-new:] if new > 0 else ()
        if new > len(known):
            yield Event(progress=progress, ended=progress.ended - len(known), unseen=new - len(known))
        for place, trial in enumerate(known):
            yield Event(progress=progress, trial=trial, ended=progress.ended - len(known) + place + 1)


def event_line(event: Event) -> str:
    """An event on one short line."""
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
    """A study at one moment, on one line."""
    running = f", {len(progress.running)} running" if progress.running else ""
    best = "" if progress.best is None else f"; highest {measured_text(progress.best.score, progress.examples)}"
    return f"{progress.study}: {counts_text(progress)}{running}{best}; {times_text(progress)}"


class EventLog:
    """Writes what happens as lines of JSON.

    Args:
        file: Where they are written, every line at once; None for nowhere.
    """

    def __init__(self, file: TextIO | None) -> None:
        """Write nothing yet."""
        self._file = file
        self._events = Events()

    def __call__(self, progress: Progress) -> None:
        """Write what is new."""
        for event in self._events.of(progress):
            self._write("trials" if event.unseen else "launch" if event.trial is None else "trial", _entry(event))

    def end(self, study: str, reason: str, *, finished: bool) -> None:
        """Write how the launch ended."""
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
    """Write a line that a terminal may be shown, at once."""
    file.write(f"{visible(line)}\n")
    file.flush()
