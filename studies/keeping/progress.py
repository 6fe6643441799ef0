"""How far a launched study is: what the live view shows."""

from collections.abc import Mapping
from dataclasses import dataclass

from studies.errors import StudiesError
from studies.store.records import TrialState


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningTrial:
    """A trial that a worker holds.

    Attributes:
        number: Of the trial.
        description: One phrase for people.
        step: Optimiser steps at its newest reading; 0 before the first.
        steps: Optimiser steps of a full trial.
        last_score: Score of its newest reading; None before the first.
        worker: Who holds it.
    """

    number: int
    description: str
    step: int
    steps: int
    last_score: float | None
    worker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BestTrial:
    """The complete trial with the highest score; of equal scores the lowest number.

    Attributes:
        number: Of the trial.
        score: Its final score.
        description: One phrase for people.
        stored_parameters: Trainable parameters that must be kept.
    """

    number: int
    score: float
    description: str
    stored_parameters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A study at one moment.

    Attributes:
        study: Its name.
        counts: Trials per state; every state is there.
        target_trials: How many trials the study has in all.
        best: The best complete trial; None before the first.
        budget_parameters: Most trainable parameters of a configuration.
        seconds_elapsed: Since this launch began.
        seconds_left: Estimated, and at most what the time budget leaves; None while there is nothing to go by.
        running: Trials that workers hold, in number order.
    """

    study: str
    counts: Mapping[TrialState, int]
    target_trials: int
    best: BestTrial | None
    budget_parameters: int
    seconds_elapsed: float
    seconds_left: float | None
    running: tuple[RunningTrial, ...]

    @property
    def ended(self) -> int:
        """Trials in a terminal state."""
        return sum(count for state, count in self.counts.items() if state.is_terminal)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a launch stands.

    Attributes:
        progress: Of the study.
        is_done: Every trial of the study has ended, and no more will begin.
        exhausted: Why nothing more can be proposed; empty while something can.
        drained: Why the workers were sent away; empty while they were not.
        halted: The error that ended the launch; None without one.
    """

    progress: Progress
    is_done: bool
    exhausted: str
    drained: str
    halted: StudiesError | None

    @property
    def summary(self) -> str:
        """How the launch ended, as a phrase."""
        ended, target = self.progress.ended, self.progress.target_trials
        if self.is_done and self.exhausted:
            return f"finished: {ended} trials, and nothing is left to try ({self.exhausted.rstrip('.')})"
        if self.is_done:
            return f"finished: all {ended} trials have ended"
        return f"stopped after {ended} of {target} trials: {self.drained or 'the workers left'}"
