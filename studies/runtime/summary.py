"""Progress of a study as functions of its history: the best trials, the rise of the best score, the last ends."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nsmallest
from statistics import fmean

from search_space.published import HEAD_ONLY
from studies.history.history import StudyHistory, at_end
from studies.records import TrialRecord, TrialState
from studies.runtime.progress import LAST, TOP, TrialProgress
from trial_runner.tasks.evaluation import PROXY_LOSS

PRIOR_TRIALS = 4
"""Number of full trials assumed before any has ended, in the expected length of a trial."""


def trial_progress(trial: TrialRecord, history: StudyHistory, worker: str | None = None) -> TrialProgress:
    """Return a trial as live views show it, running or ended."""
    has_ended, readings = trial.state.is_terminal, history.readings(trial.number)
    is_by_loss = bool(readings) and PROXY_LOSS in readings[-1].metrics
    return TrialProgress(
        number=trial.number,
        method=trial.method,
        description=trial.description,
        state=trial.state if has_ended else TrialState.RUNNING,
        step=trial.steps,
        score=trial.last_score if trial.score is None else trial.score,
        is_by_loss=is_by_loss and trial.score is None,
        stored_parameters=trial.stored_parameters,
        worker=worker,
        reason=trial.reason,
    )


@dataclass(frozen=True, slots=True)
class EndedTrials:
    """Ended trials of a history, in the order of their ends.

    Attributes:
        trials: The trials.
        top: Numbers of the best complete trials, at most `TOP`, best first, with their mean scores.
        rises: Every rise of the best score, as the number of ended trials and the score.
        were_best: Numbers of the trials that were the best when they ended.
        head_only: Score of the task head alone; None before it is known.
    """

    trials: Sequence[TrialRecord]
    top: Mapping[int, float]
    rises: tuple[tuple[int, float], ...]
    were_best: frozenset[int]
    head_only: float | None

    @classmethod
    def of(cls, history: StudyHistory, *, has_best: bool = True) -> "EndedTrials":
        """Return the ended trials of a history.

        Args:
            history: Trials of a study.
            has_best: Whether a best trial is searched; trials of a confirmation are seeds of a few configurations.
        """
        trials = sorted((trial for trial in history if trial.state.is_terminal), key=at_end)
        if not has_best:
            return cls(trials, {}, (), frozenset(), None)
        scores: dict[int, list[float]] = {}
        means: dict[int, float] = {}
        rises: list[tuple[int, float]] = []
        were_best = []
        best, head_only = None, None
        for ended, trial in enumerate(trials, 1):
            if trial.state is not TrialState.COMPLETE or trial.score is None:
                continue
            number = trial.number
            if trial.replicate_of is None:
                scores[number], means[number] = [trial.score], trial.score
                if best is None or _rank(means, number) < _rank(means, best):
                    best = number
                    were_best.append(number)
                if trial.method == HEAD_ONLY.name:
                    head_only = trial.score
                if not rises or trial.score > rises[-1][1]:
                    rises.append((ended, trial.score))
            elif trial.replicate_of in scores:
                # the score of a trial that was trained again is the mean of its trainings
                scores[trial.replicate_of].append(trial.score)
                means[trial.replicate_of] = fmean(scores[trial.replicate_of])
                best = min(means, key=lambda one: _rank(means, one))
        top = nsmallest(TOP, means, key=lambda one: _rank(means, one))
        return cls(trials, {number: means[number] for number in top}, tuple(rises), frozenset(were_best), head_only)

    def best_trials(self, history: StudyHistory) -> Iterator[TrialProgress]:
        """Yield the best complete trials with their mean scores, best first."""
        for number, mean in self.top.items():
            yield replace(self._progress(history[number], history), score=mean)

    def last(self, history: StudyHistory) -> Iterator[TrialProgress]:
        """Yield the trials that ended last, at most `LAST`, the newest last."""
        return (self._progress(trial, history) for trial in self.trials[-LAST:])

    def _progress(self, trial: TrialRecord, history: StudyHistory) -> TrialProgress:
        return replace(trial_progress(trial, history), is_best=trial.number in self.were_best)

    def expected_steps(self, steps: int) -> float:
        """Return the expected steps of a trial: the mean of the ended ones and a few full ones.

        Args:
            steps: Steps of a full trial.
        """
        return (sum(trial.steps for trial in self.trials) + PRIOR_TRIALS * steps) / (len(self.trials) + PRIOR_TRIALS)


def _rank(means: Mapping[int, float], number: int) -> tuple[float, int]:
    """Return the sort key: best score first, then the lowest number."""
    return -means.get(number, -math.inf), number
