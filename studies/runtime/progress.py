"""Progress of a launch for live views, and the clocks that estimate the remaining time."""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from studies.errors import StudiesError
from studies.records import ExampleCounts, TrialState
from studies.runtime.study_plan import StudyPlan

_MUCH_MORE = 1.2
"""Factor above the stated remaining time from which on a larger one is indicated."""

_KEPT = 0.5
"""Least share of the last estimate to which the remaining time runs down between two measurements."""

_LOOKS_PER_LEASE = 20

Clock = Callable[[], float]
"""Monotonic clock, in seconds; simulations have one of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialProgress:
    """Trial that a worker holds, or that has ended, for live views.

    Attributes:
        number: Number of the trial.
        method: Name of the published method; None for proposals of the search.
        description: Short description.
        state: ``running``, or the final state.
        step: Optimizer steps at its newest reading; 0 before the first.
        score: Final score of a complete trial, newest score of others; None without a reading.
        is_by_loss: Whether the score is the negative loss in place of the metric.
        stored_parameters: Trainable parameters that must be stored.
        worker: Worker that holds it; None once it has ended.
        reason: Reason why it was pruned or failed; else None.
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
    """Remaining time of a study.

    Attributes:
        seconds: Estimated seconds, never more than stated before.
        is_more: Whether the current estimate is clearly higher.
    """

    seconds: float
    is_more: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Progress of a study at one moment.

    Attributes:
        study: Name of the study.
        metric: Metric of the scores.
        counts: Number of trials by state, all states included.
        target_trials: Number of trials of the study.
        steps: Optimizer steps of a full trial.
        top: Complete trials with the highest scores, at most `TOP`, best first; of equal scores the lowest number. A
            replicated trial has the mean score of its trainings.
        improvements: Every rise of the best score, as the number of ended trials and the score.
        just_ended: Trials that ended last, at most `LAST`, the newest last.
        ended_here: Number of trials that ended in this launch.
        head_only: Score of the task head alone, a baseline; None before it is known.
        constant: Score of always predicting the most frequent label; None without labels.
        examples: Numbers of examples of a score that is an accuracy; else None.
        budget_parameters: Largest number of trainable parameters of a configuration.
        seconds_elapsed: Seconds since this launch began.
        left: Estimated remaining time, bounded by the time budget; None without measurements.
        running: Trials that workers hold, in the order of their numbers.
        waits_for: Resource that the launch waits for, as a sentence; empty if it does not wait.
    """

    study: str
    metric: str
    counts: Mapping[TrialState, int]
    target_trials: int
    steps: int
    top: tuple[TrialProgress, ...] = ()
    improvements: tuple[tuple[int, float], ...] = ()
    just_ended: tuple[TrialProgress, ...] = ()
    ended_here: int = 0
    head_only: float | None = None
    constant: float | None = None
    examples: ExampleCounts | None = None
    budget_parameters: int
    seconds_elapsed: float = 0.0
    left: TimeLeft | None = None
    running: tuple[TrialProgress, ...] = ()
    waits_for: str = ""

    @property
    def ended(self) -> int:
        """Number of trials in a terminal state."""
        return sum(count for state, count in self.counts.items() if state.is_terminal)

    @property
    def best(self) -> TrialProgress | None:
        """Complete trial with the highest score; None before one is complete."""
        return self.top[0] if self.top else None


TOP = 5
LAST = 32


def progress_before(plan: StudyPlan) -> Progress:
    """Return the progress of a study before its ledger is read."""
    return Progress(
        study=plan.study,
        metric="score",
        counts=dict.fromkeys(TrialState, 0),
        target_trials=plan.target_trials,
        steps=plan.training.steps,
        budget_parameters=plan.space.budget,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchStatus:
    """Status of a launch.

    Attributes:
        progress: Progress of the study.
        is_done: Whether every trial of the study has ended and no more will begin.
        exhausted: Reason why nothing more can be proposed; empty while something can.
        drained: Reason why the workers were stopped; empty while they were not.
        halted: Error that ended the launch; None without one.
        silent: Workers whose trials were reclaimed because they sent no heartbeat.
    """

    progress: Progress
    is_done: bool
    exhausted: str
    drained: str
    halted: StudiesError | None
    silent: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """Outcome of the launch as a phrase."""
        ended, target = self.progress.ended, self.progress.target_trials
        if self.is_done and self.exhausted:
            return f"finished: {ended} trials, and nothing is left to try ({self.exhausted.rstrip('.')})"
        if self.is_done:
            return f"finished: all {ended} trials have ended"
        return f"stopped after {ended} of {target} trials: {self.drained or 'the workers left'}"


class Pace:
    """Estimate of the remaining time from measurements of steps.

    Steps are reported in bursts, when trials are measured. The pace is that at the last burst, and the remaining time
    runs down in between. A later burst never raises it, but marks it as too low.
    """

    def __init__(self) -> None:
        """Start without measurements."""
        self._began_at: float | None = None
        self._steps = 0
        self._measured_at = 0.0
        self._stated: float | None = None

    def begin(self, now: float) -> None:
        """Start the clock when the first trial is leased; earlier time does not count."""
        if self._began_at is None:
            self._began_at = now

    def add_steps(self, now: float, steps: int) -> None:
        """Add steps that were completed by now."""
        if steps > 0:
            self._steps += steps
            self._measured_at = now

    def left(self, now: float, remaining: float) -> TimeLeft | None:
        """Return the time for the remaining steps; None before the first measurement."""
        if self._began_at is None or not self._steps:
            return None
        seconds = remaining * (self._measured_at - self._began_at) / self._steps
        running_down = max(seconds - (now - self._measured_at), _KEPT * seconds)
        self._stated = running_down if self._stated is None else min(self._stated, running_down)
        return TimeLeft(seconds=self._stated, is_more=running_down > _MUCH_MORE * self._stated)


class ActiveClock:
    """Clock of the seconds during which a keeper could receive heartbeats.

    A keeper that was suspended, or that waited for its database, receives none, and workers are not to blame. So at
    most a twentieth of a lease counts between two readings. The clock is read twice a second.
    """

    def __init__(self, lease_seconds: float, clock: Clock = time.monotonic) -> None:
        """Start at 0."""
        self._clock = clock
        self._longest = lease_seconds / _LOOKS_PER_LEASE
        self._looked_at = clock()
        self._seconds = 0.0

    def seconds(self) -> float:
        """Return the seconds so far."""
        now = self._clock()
        self._seconds += min(now - self._looked_at, self._longest)
        self._looked_at = now
        return self._seconds


ProgressCallback = Callable[[Progress], None]
ProgressView = Callable[[], AbstractContextManager[ProgressCallback]]
"""Context manager of a live view of a launch: a function that shows the progress it receives."""


def no_view() -> AbstractContextManager[ProgressCallback]:
    """Return a view that shows nothing."""
    return nullcontext(lambda progress: None)


def observed(progress: ProgressCallback | bool, view: ProgressView) -> AbstractContextManager[ProgressCallback]:
    """Return the caller's own observer, the live view (True), or none (False)."""
    if callable(progress):
        return nullcontext(progress)
    return view() if progress else no_view()
