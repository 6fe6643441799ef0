"""The factored search as a sampler of Optuna, for studies that ask a search space: ``space.suggest(trial)``."""

import copy
import math
import random
from collections.abc import Sequence
from typing import Any, Self

from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial
from optuna.trial import TrialState as OptunaState

from search_space.errors import BudgetError, InvalidEditError
from search_space.space.space import HEAD_RATE, METHOD, Candidate
from studies.records import TrialState
from studies.search.optuna_history import ProposalStorage, distributions
from studies.seeds import hashed_seed
from studies.surrogate.candidate_search import FactoredSearch
from studies.surrogate.features import lr_at
from studies.surrogate.observation import MeasuredScore, Observation
from studies.surrogate.prior_mean import BEST_UNIT_LR

_STATES = {
    OptunaState.COMPLETE: TrialState.COMPLETE,
    OptunaState.PRUNED: TrialState.PRUNED,
    OptunaState.RUNNING: TrialState.RUNNING,
    OptunaState.WAITING: TrialState.QUEUED,
}


_ANYWHERE = 1 / 3
"""Share of the trials whose rate is drawn from the whole range."""
_NEAR = 0.35
"""Deviation of the natural logarithm of the others from that of a trial that did well."""
_WELL = 4
"""One trial of so many did well."""


class FactoredSampler(BaseSampler):
    """Proposes with a `FactoredSearch`; what it draws depends on that, the trial's number and the history only.

    A trial that is a published method or point has its name as user attribute ``method``: the sampler sets it where it
    gives one other rates, and whoever enqueues one sets it. A trial whose parameters are no whole proposal of the space
    is passed over. What has ended counts in the order of numbers, for the times of two trials that end together differ
    from one launch to the next.

    Attributes:
        search: Who makes whole candidates.
    """

    def __init__(self, search: FactoredSearch) -> None:
        """Prepare for studies over the search's space."""
        self.search = search
        self._space = search.space
        self._retry = 0
        self._distributions = distributions(search.space)
        self._proposed: dict[int, dict[str, Any]] = {}
        self._candidates: dict[str, Candidate | None] = {}

    def at(self, number: int, retry: int) -> Self:
        """The sampler of one proposal of the trial ``number``, of which ``retry`` were tried before."""
        found = copy.copy(self)
        found._retry, found._proposed = retry, {}
        return found

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Propose, so that the objective knows whether the trial is a published method."""
        if METHOD in trial.user_attrs:
            ranges = self._space.options.learning_rates.items()
            self._proposed[trial.number] = {
                f"learning_rate.{form}": lr_at(BEST_UNIT_LR, low, high) for form, (low, high) in ranges
            }
            return
        history = self._history(study, trial)
        candidate = self.search.candidate(history, number=trial.number, retry=self._retry)
        if candidate is None:
            return
        self._proposed[trial.number] = dict(candidate.parameters)
        if HEAD_RATE in self._distributions:
            rates = self._space.options.head_learning_rates or (1.0, 1.0)
            self._proposed[trial.number][HEAD_RATE] = head_peak_lr(history, rates, self.search.seed, trial.number)
        if candidate.method is not None:
            study._storage.set_trial_user_attr(trial._trial_id, METHOD, candidate.method)
            trial.user_attrs[METHOD] = candidate.method

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Every parameter of the space."""
        return dict(self._distributions)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The parameters of the proposal; none where nothing new was drawn."""
        return self._proposed.pop(trial.number, {})

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """A random value, for a parameter that was not proposed."""
        seed = hashed_seed("independent", self.search.seed, trial.number, self._retry, param_name)
        return RandomSampler(seed=seed).sample_independent(study, trial, param_name, param_distribution)

    def _history(self, study: Study, trial: FrozenTrial) -> Sequence[Observation]:
        """The trials so far: those of a ledger, with all that it holds, or what any study of Optuna's knows."""
        if isinstance(study._storage, ProposalStorage):
            return study._storage.observations
        sign = -1.0 if study.directions[0] is StudyDirection.MINIMIZE else 1.0
        others = [one for one in study.get_trials(deepcopy=False) if one.number != trial.number]
        # a whole trial has the most steps that any has
        steps = max((max(one.intermediate_values, default=1) for one in others), default=1)
        return [
            Observation.of(candidate, number=one.number, state=_STATES[one.state], readings=_readings(one, steps, sign))
            for one in others
            if one.state in _STATES and (candidate := self._candidate(one)) is not None
        ]

    def _candidate(self, trial: FrozenTrial) -> Candidate | None:
        method = trial.user_attrs.get(METHOD)
        key = f"{method} {sorted(trial.params.items())}"
        if key not in self._candidates:
            given = trial.params
            try:
                asked = self._space.suggest(given) if method is None else self._space.suggest_published(method, given)
            except (KeyError, BudgetError, InvalidEditError):
                asked = None
            self._candidates[key] = asked
        return self._candidates[key]


def _readings(trial: FrozenTrial, steps: int, sign: float) -> tuple[MeasuredScore, ...]:
    scores = {step / steps: score for step, score in trial.intermediate_values.items() if 0 < step < steps}
    if trial.values is not None and trial.state is OptunaState.COMPLETE:
        scores[1.0] = trial.values[0]
    return tuple(MeasuredScore(fraction=at, score=sign * score) for at, score in sorted(scores.items()))


def head_peak_lr(history: Sequence[Observation], bounds: tuple[float, float], seed: int, number: int) -> float:
    """Peak learning rate of a trial's head, of which the model knows nothing: near one that did well, or anywhere.

    Args:
        history: The trials so far; those that are complete and have a rate of their own tell of it.
        bounds: Lowest and highest rate.
        seed: Of the study.
        number: Of the trial.
    """
    low, high = bounds
    draw = random.Random(hashed_seed("head rate", seed, number))
    anywhere = math.exp(draw.uniform(math.log(low), math.log(high)))
    scores = [
        (rate, max(one.readings, key=lambda read: read.fraction).score, one.number)
        for one in history
        if (rate := one.head_learning_rate) and one.state is TrialState.COMPLETE and one.readings
    ]
    ranked = sorted(scores, key=lambda one: (-one[1], one[2]))
    well = ranked[: len(ranked) // _WELL]
    is_near, aim, step = draw.random() >= _ANYWHERE, draw.random(), draw.gauss(0.0, _NEAR)
    rate = well[int(aim * len(well))][0] * math.exp(step) if well and is_near else anywhere
    return min(max(rate, low), high)
