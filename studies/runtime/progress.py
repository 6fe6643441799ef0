"""How far a launched study is: what the live view shows, and the clocks that tell the time that is left."""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from studies.errors import StudiesError
from studies.records import ExampleCounts, TrialState
from studies.runtime.study_plan import StudyPlan

_MUCH_MORE = 1.2
"""So many times what is said, before it is said to be more."""

_KEPT = 0.5
"""Between two measurements time runs down, but to no less than this share of what the last one told."""

_LOOKS_PER_LEASE = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTrial:
    """A trial that a worker holds, or that has ended.

    Attributes:
        number: Of the trial.
        method: The published method that it is; None for what the search proposed.
        description: One phrase for people.
        state: Running, or how it has ended.
        step: Optimiser steps at its newest reading; 0 before the first.
        score: Final score of a complete trial, newest of others; None without a reading.
        is_by_loss: Whether the score is the loss, with a minus sign, in place of the metric.
        stored_parameters: Trainable parameters that must be kept.
        worker: Who holds it; None once it has ended.
        reason: Why it was pruned or failed; None of others.
        is_best: Whether it was the best of the study when it ended.
    """

    number: int
    method: str | None
    description: str
    state: TrialState
    step: int
    score: float | None
    is_by_loss: bool = False
    stored_parameters: int
    worker: str | None = None
    reason: str | None = None
    is_best: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLeft:
    """How long a study still takes.

    Attributes:
        seconds: Never more than was said before.
        is_more: Whether it seems to be more by now.
    """

    seconds: float
    is_more: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A study at one moment.

    Attributes:
        study: Its name.
        metric: What scores are of.
        counts: Trials per state; every state is there.
        target_trials: How many trials the study has in all.
        steps: Optimiser steps of a full trial.
        top: The complete trials of the highest scores, at most `TOP`, best first; of equals the lowest number.
        course: Every rise of the best score: after how many ended trials, and to what.
        just_ended: The trials that ended last, at most `LAST`, the newest last.
        ended_here: How many trials have ended in this launch.
        head_only: Score of the task head alone, which scores are held against; None before it is known.
        constant: The same of predicting the most frequent label for everything; None where there are no labels.
        examples: How many a score is a share of, where it is one; None else.
        budget_parameters: Most trainable parameters of a configuration.
        seconds_elapsed: Since this launch began.
        left: Estimated, and at most what the time budget leaves; None while there is nothing to go by.
        running: Trials that workers hold, in number order.
        waits_for: What the launch cannot go on without, as a sentence; empty while there is nothing.
    """

    study: str
    metric: str
    counts: Mapping[TrialState, int]
    target_trials: int
    steps: int
    top: tuple[ShownTrial, ...] = ()
    course: tuple[tuple[int, float], ...] = ()
    just_ended: tuple[ShownTrial, ...] = ()
    ended_here: int = 0
    head_only: float | None = None
    constant: float | None = None
    examples: ExampleCounts | None = None
    budget_parameters: int
    seconds_elapsed: float = 0.0
    left: TimeLeft | None = None
    running: tuple[ShownTrial, ...] = ()
    waits_for: str = ""

    @property
    def ended(self) -> int:
        """Trials in a terminal state."""
        return sum(count for state, count in self.counts.items() if state.is_terminal)

    @property
    def best(self) -> ShownTrial | None:
        """The complete trial of the highest score; None before one is complete."""
        return self.top[0] if self.top else None


TOP = 5
LAST = 32


def progress_before(plan: StudyPlan) -> Progress:
    """What is known of a study before its ledger is read: how large it is to become."""
    return Progress(
        study=plan.study,
        metric="score",
        counts=dict.fromkeys(TrialState, 0),
        target_trials=plan.target_trials,
        steps=plan.training.steps,
        budget_parameters=plan.space.budget,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a launch stands.

    Attributes:
        progress: Of the study.
        is_done: Every trial of the study has ended, and no more will begin.
        exhausted: Why nothing more can be proposed; empty while something can.
        drained: Why the workers were sent away; empty while they were not.
        halted: The error that ended the launch; None without one.
        silent: Workers whose trials were taken back because nothing was heard of them.
    """

    progress: Progress
    is_done: bool
    exhausted: str
    drained: str
    halted: StudiesError | None
    silent: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """How the launch ended, as a phrase."""
        ended, target = self.progress.ended, self.progress.target_trials
        if self.is_done and self.exhausted:
            return f"finished: {ended} trials, and nothing is left to try ({self.exhausted.rstrip('.')})"
        if self.is_done:
            return f"finished: all {ended} trials have ended"
        return f"stopped after {ended} of {target} trials: {self.drained or 'the workers left'}"


class Pace:
    """Turns measurements of steps into the time that is left.

    Steps are heard of in bursts, when trials are measured. So the pace is what it was at the last burst, and in between
    the time that is left runs down. A later burst that tells more does not let it rise: it is said to be more instead.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self._began_at: float | None = None
        self._made = 0
        self._heard_at = 0.0
        self._said: float | None = None

    def begin(self, now: float) -> None:
        """The first trial is lent; what came before does not count."""
        if self._began_at is None:
            self._began_at = now

    def hear(self, now: float, steps: int) -> None:
        """So many more steps were made by now."""
        if steps > 0:
            self._made += steps
            self._heard_at = now

    def left(self, now: float, remaining: float) -> TimeLeft | None:
        """What is left of so many steps; None before the first were made."""
        if self._began_at is None or not self._made:
            return None
        seconds = remaining * (self._heard_at - self._began_at) / self._made
        running_down = max(seconds - (now - self._heard_at), _KEPT * seconds)
        self._said = running_down if self._said is None else min(self._said, running_down)
        return TimeLeft(seconds=self._said, is_more=running_down > _MUCH_MORE * self._said)


class ListeningClock:
    """Seconds during which a keeper could have heard its workers.

    A keeper that was stopped, or that waited for its database, has heard nobody in that time, and nobody is to blame
    for it: between two looks at the clock at most a twentieth of a lease counts. Keepers are looked at twice a second.
    """

    def __init__(self, lease_seconds: float) -> None:
        """Begin at 0."""
        self._longest = lease_seconds / _LOOKS_PER_LEASE
        self._looked_at = time.monotonic()
        self._seconds = 0.0

    def look(self) -> float:
        """The seconds so far."""
        now = time.monotonic()
        self._seconds += min(now - self._looked_at, self._longest)
        self._looked_at = now
        return self._seconds


Observer = Callable[[Progress], None]
ProgressView = Callable[[], AbstractContextManager[Observer]]
"""Opens a view of a running launch: a function that shows every progress it is called with."""


def no_view() -> AbstractContextManager[Observer]:
    """Show nothing."""
    return nullcontext(lambda progress: None)


def observed(progress: Observer | bool, view: ProgressView) -> AbstractContextManager[Observer]:
    """What a caller wants to see: a function of its own, the view (True), or nothing (False)."""
    if callable(progress):
        return nullcontext(progress)
    return view() if progress else no_view()
