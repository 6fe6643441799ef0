"""Ranking of the trials of a study."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, TypeVar

from studies.analysis.estimates import NO_ESTIMATES, Estimates, counted_examples, estimates_of
from studies.analysis.methods import method_name
from studies.ledger.ledger import Ledger
from studies.records import ExampleCounts, RankedTrial, StudyRecord, TrialRecord, TrialState
from trial_runner.tasks import SAME_PREDICTION

AnyRanked = TypeVar("AnyRanked", bound=RankedTrial)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Ended trials of a study, best first; replicates are merged with the trials that they repeat.

    Attributes:
        trials: Complete trials by estimate, or by `scores` without estimates; then pruned ones by progress and score,
            then failed ones; of equal ones the earlier first.
        estimates: Expected scores of the trials.
        seeds: Number of complete trainings by trial number, replicates included.
        scores: Mean final score of these trainings by trial number.
        examples: Numbers of examples of an accuracy; None for other scores, or if unknown.
        is_constant: Whether all complete trials predict a constant label; None without one, or if not measured.
    """

    trials: tuple[RankedTrial, ...]
    estimates: Estimates
    seeds: Mapping[int, int]
    scores: Mapping[int, float]
    examples: ExampleCounts | None = None
    is_constant: bool | None = None

    @property
    def complete(self) -> list[RankedTrial]:
        """Complete trials, best first."""
        return [trial for trial in self.trials if trial.state is TrialState.COMPLETE]

    @property
    def best(self) -> RankedTrial | None:
        """Best complete trial; None before one is complete."""
        return next(iter(self.complete), None)


def ranking_of(ledger: Ledger, study: StudyRecord, trials: Sequence[RankedTrial] | None = None) -> Ranking:
    """Return the ended trials of a study, best first.

    Args:
        ledger: Ledger of the study.
        study: Record of the study.
        trials: All of its trials, if available.
    """
    known = ledger.outlines(study.id) if trials is None else trials
    estimates = estimates_of(ledger, study, known)
    complete = [trial for trial in known if trial.state is TrialState.COMPLETE]
    runs = _runs(known)
    return Ranking(
        trials=ranked(known, estimates),
        estimates=estimates,
        seeds={number: len(scores) for number, scores in runs.items()},
        scores=mean_scores(known),
        examples=counted_examples(ledger, study),
        is_constant=_are_constant(ledger, study, complete),
    )


def _runs(trials: Iterable[RankedTrial]) -> dict[int, list[float]]:
    """Return the final scores of all trainings by trial number, replicates included."""
    runs: dict[int, list[float]] = {}
    for trial in trials:
        if trial.state is TrialState.COMPLETE:
            original = trial.number if trial.replicate_of is None else trial.replicate_of
            runs.setdefault(original, []).append(trial.score or 0.0)
    return runs


def mean_scores(trials: Iterable[RankedTrial]) -> dict[int, float]:
    """Return the mean final score of all trainings by trial number, for complete trials that repeat none."""
    return {number: fmean(scores) for number, scores in _runs(trials).items()}


def _are_constant(ledger: Ledger, study: StudyRecord, trials: Sequence[RankedTrial]) -> bool | None:
    """Return whether all trials predicted a constant label at their last reading; None if unknown."""
    for trial in trials:
        readings = ledger.readings(study.id, trial.number)
        share = readings[-1].metrics.get(SAME_PREDICTION) if readings else None
        if share != 1:
            return None if share is None else False
    return True if trials else None


def shown(trial: TrialRecord, ranking: Ranking) -> dict[str, Any]:
    """Return a trial as lists show it."""
    estimate = ranking.estimates.of.get(trial.number)
    return {
        "number": trial.number,
        "method": method_name(trial),
        "sentence": trial.description,
        "estimate": None if estimate is None else estimate.mean,
        "estimate_low": None if estimate is None else estimate.low,
        "estimate_high": None if estimate is None else estimate.high,
        "seeds": ranking.seeds.get(trial.number, 0),
        "parameters": trial.stored_parameters,
    }


def ranked(trials: Iterable[AnyRanked], estimates: Estimates = NO_ESTIMATES) -> tuple[AnyRanked, ...]:
    """Return the ended trials of a study without replicates, in the order of a `Ranking`."""
    known = tuple(trials)
    worth = mean_scores(known)
    worth |= {number: estimates.of[number].mean for number in worth if number in estimates.of}
    ended = (trial for trial in known if trial.state.is_terminal and trial.replicate_of is None)
    return tuple(sorted(ended, key=lambda trial: _rank(trial, worth)))


def _rank(trial: RankedTrial, worth: Mapping[int, float]) -> tuple[int, int, float, int]:
    if trial.state is TrialState.COMPLETE:
        return 0, 0, -worth[trial.number], trial.number
    newest = -trial.last_score if trial.last_score is not None else float("inf")
    return (1 if trial.state is TrialState.PRUNED else 2), -trial.steps, newest, trial.number
