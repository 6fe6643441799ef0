"""Ended trials of a launch: the best ones, the rise of the best score, the last ones, and baselines."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from heapq import nsmallest
from statistics import fmean

from search_space.published import HEAD_ONLY
from studies.records import Reading, TrialRecord, TrialState
from studies.runtime.progress import LAST, TOP, TrialProgress
from studies.runtime.roster import OpenTrial, open_trial_of
from studies.runtime.study_plan import StudyPlan

PRIOR_TRIALS = 4
"""Number of full trials assumed before any has ended, in the expected length of a trial."""


class ProgressTally:
    """Statistics of the trials of a study as they end.

    Args:
        steps: Optimizer steps of a full trial.
        constant: Score of a constant prediction, if known.
        has_best: Whether a best trial is searched; trials of a confirmation are seeds of a few configurations.
    """

    def __init__(self, steps: int, constant: float | None, *, has_best: bool = True) -> None:
        """Start without trials."""
        self._has_best = has_best
        self.top: tuple[TrialProgress, ...] = ()
        self.improvements: tuple[tuple[int, float], ...] = ()
        self.just_ended: tuple[TrialProgress, ...] = ()
        self.ended_here = 0
        self._steps = steps
        self.constant = constant
        self.head_only: float | None = None
        self._ended = 0
        self._steps_made = 0
        self._complete: dict[int, TrialProgress] = {}
        self._scores: dict[int, list[float]] = {}

    def add(self, trial: OpenTrial, *, is_here: bool = True) -> None:
        """Add an ended trial.

        Args:
            trial: Trial in its final state.
            is_here: Whether it ended in this launch.
        """
        self._ended += 1
        self.ended_here += is_here
        self._steps_made += trial.step
        one, original = trial.as_progress(), trial.trial.replicate_of
        if one.state is TrialState.COMPLETE and original is None and self._has_best:
            one = replace(one, is_best=not self.top or _order(one) < _order(self.top[0]))
            self._complete[one.number], self._scores[one.number] = one, [one.score or 0.0]
            self.top = tuple(sorted((*self.top, one), key=_order)[:TOP])
            if one.method == HEAD_ONLY.name:
                self.head_only = one.score
            if one.score is not None and (not self.improvements or one.score > self.improvements[-1][1]):
                self.improvements = (*self.improvements, (self._ended, one.score))
        elif one.state is TrialState.COMPLETE and original is not None and original in self._complete:
            self._add_training(original, one.score or 0.0)
        self.just_ended = (*self.just_ended, one)[-LAST:]

    def _add_training(self, number: int, score: float) -> None:
        """Let the score of a trial that was trained again be the mean of its trainings."""
        self._scores[number].append(score)
        self._complete[number] = replace(self._complete[number], score=fmean(self._scores[number]))
        self.top = tuple(nsmallest(TOP, self._complete.values(), key=_order))

    @property
    def expected_steps(self) -> float:
        """Expected steps of a trial: the mean of the ended ones and a few full ones."""
        return (self._steps_made + PRIOR_TRIALS * self._steps) / (self._ended + PRIOR_TRIALS)


def _order(trial: TrialProgress) -> tuple[float, int]:
    """Return the sort key: best score first, then the lowest number."""
    return math.inf if trial.score is None else -trial.score, trial.number


def build_tally(
    plan: StudyPlan, trials: Sequence[TrialRecord], readings: Mapping[int, Sequence[Reading]]
) -> ProgressTally:
    """Return the tally of all ended trials, in the order in which they ended.

    Args:
        readings: Readings by trial number.
    """
    has_best = plan.training.measured_split == "validation"
    tally = ProgressTally(plan.training.steps, plan.constant_score, has_best=has_best)
    for trial in sorted((one for one in trials if one.state.is_terminal), key=_ended_at):
        tally.add(open_trial_of(trial, readings.get(trial.number, ())), is_here=False)
    return tally


def _ended_at(trial: TrialRecord) -> tuple[float, int]:
    return (0.0 if trial.ended_at is None else trial.ended_at.timestamp()), trial.number
