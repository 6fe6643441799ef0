"""What a launch has seen end: the best trials, how the best rose, the last ones, what scores are held against."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from search_space.published import HEAD_ONLY
from studies.records import Reading, TrialRecord, TrialState
from studies.runtime.progress import LAST, TOP, ShownTrial
from studies.runtime.roster import OpenTrial, recalled
from studies.runtime.study_plan import StudyPlan

PRIOR_TRIALS = 4
"""Of the length of a trial: so many that would run to the end are taken for seen."""


class ProgressTally:
    """Counts the trials of a study as they end.

    Args:
        steps: Optimiser steps of a full trial.
        constant: Score of a constant prediction, if it is known.
        has_best: Whether one of the trials is to be found; those of a confirmation are seeds of a few configurations.
    """

    def __init__(self, steps: int, constant: float | None, *, has_best: bool = True) -> None:
        """Begin with nothing."""
        self._has_best = has_best
        self.top: tuple[ShownTrial, ...] = ()
        self.course: tuple[tuple[int, float], ...] = ()
        self.just_ended: tuple[ShownTrial, ...] = ()
        self.ended_here = 0
        self._steps = steps
        self.constant = constant
        self.head_only: float | None = None
        self._ended = 0
        self._steps_made = 0

    def add(self, trial: OpenTrial, *, is_here: bool = True) -> None:
        """Take in a trial that has ended.

        Args:
            trial: As it has ended.
            is_here: Whether it has ended in this launch.
        """
        self._ended += 1
        self.ended_here += is_here
        self._steps_made += trial.step
        one = trial.shown()
        if one.state is TrialState.COMPLETE and trial.trial.replicate_of is None and self._has_best:
            one = replace(one, is_best=not self.top or _order(one) < _order(self.top[0]))
            self.top = tuple(sorted((*self.top, one), key=_order)[:TOP])
            if one.method == HEAD_ONLY.name:
                self.head_only = one.score
            if one.score is not None and (not self.course or one.score > self.course[-1][1]):
                self.course = (*self.course, (self._ended, one.score))
        self.just_ended = (*self.just_ended, one)[-LAST:]

    @property
    def expected_steps(self) -> float:
        """Of a trial: what those that have ended have made, and a few that would run to the end."""
        return (self._steps_made + PRIOR_TRIALS * self._steps) / (self._ended + PRIOR_TRIALS)


def _order(trial: ShownTrial) -> tuple[float, int]:
    """Best first; of equal scores the lowest number."""
    return math.inf if trial.score is None else -trial.score, trial.number


def tally_of(
    plan: StudyPlan, trials: Sequence[TrialRecord], readings: Mapping[int, Sequence[Reading]]
) -> ProgressTally:
    """All trials that have ended, in the order in which they did.

    Args:
        readings: By number of the trial.
    """
    has_best = plan.training.measured_split == "validation"
    tally = ProgressTally(plan.training.steps, plan.constant_score, has_best=has_best)
    for trial in sorted((one for one in trials if one.state.is_terminal), key=_ended_at):
        tally.add(recalled(trial, readings.get(trial.number, ())), is_here=False)
    return tally


def _ended_at(trial: TrialRecord) -> tuple[float, int]:
    return (0.0 if trial.ended_at is None else trial.ended_at.timestamp()), trial.number
