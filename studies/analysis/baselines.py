"""Trials of a study that represent a published method, or a configuration."""

from collections.abc import Sequence

from search_space.canonical import fingerprint
from search_space.published.point import PublishedPoint
from search_space.space.space import SIZE, Candidate, SearchSpace
from studies.analysis.estimates import NO_ESTIMATES, Estimates
from studies.analysis.methods import method_of
from studies.analysis.ranks import ranked
from studies.records import TrialRecord, TrialState


class _Middle:
    """Optuna-like trial that takes the largest size and the geometric middle of every range of learning rates."""

    def suggest_categorical(self, name: str, choices: Sequence[str]) -> str:
        return choices[0]

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        if name == SIZE:
            return high
        return float((low * high) ** 0.5) if log else (low + high) / 2


def candidate_of_trial(trial: TrialRecord, space: SearchSpace) -> Candidate:
    """Return a trial as a candidate."""
    rates = trial.attention_learning_rate, trial.ffn_learning_rate
    return Candidate.of(trial.configuration, rates, space.shape)


def best_first(
    trials: Sequence[TrialRecord], space: SearchSpace, estimates: Estimates = NO_ESTIMATES
) -> list[TrialRecord]:
    """Return the complete trials of a study, best first; of those that differ in learning rates alone, the best one."""
    complete = [trial for trial in trials if trial.state is TrialState.COMPLETE and trial.score is not None]
    by_configuration: dict[str, TrialRecord] = {}
    for trial in ranked(complete, estimates):
        by_configuration.setdefault(fingerprint(trial.configuration, space.shape), trial)
    return list(by_configuration.values())


def baseline(
    name: PublishedPoint, best: Sequence[TrialRecord], trials: Sequence[TrialRecord], space: SearchSpace
) -> TrialRecord | Candidate:
    """Return the study's best trial of a method, proposals that equal it included, else one with middle rates.

    Args:
        name: Name of the method, or of a point of it.
        best: Complete trials, best first.
        trials: All trials.
        space: Search space of the study.

    Raises:
        BudgetError: If it does not fit.
        InvalidEditError: If it is not valid on the backbone.
    """
    # a bare name stands for every point of the method
    named = [one for one in trials if name in (one.method, str(method_of(one)).partition(":")[0])]
    own = {fingerprint(trial.configuration, space.shape) for trial in named}
    candidate = None if own else resized(name, space)
    if candidate is not None:
        own = {fingerprint(candidate.configuration, space.shape)}
    for trial in best:
        if fingerprint(trial.configuration, space.shape) in own:
            return trial
    return candidate or resized(name, space)


def resized(name: PublishedPoint, space: SearchSpace) -> Candidate:
    """Return a method at the size of a budget, with the geometric middle of its range of learning rates.

    Raises:
        BudgetError: If it does not fit.
        InvalidEditError: If it is not valid on the backbone.
    """
    if name.trains_whole_model(space.shape):
        space = SearchSpace(shape=space.shape, budget=space.shape.parameters, options=space.options)
    return space.suggest_published(name, _Middle())
