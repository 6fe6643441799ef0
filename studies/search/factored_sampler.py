"""Factored search as an Optuna sampler, for studies whose objective calls ``space.suggest(trial)``."""

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


_UNIFORM_FRACTION = 1 / 3
"""Share of the trials whose head rate is drawn from the whole range."""
_LOCAL_LOG_STD = 0.35
"""Standard deviation of the natural logarithm of the other rates about that of a top trial."""
_TOP_FRACTION = 4
"""One trial in this many is a top trial."""


class FactoredSampler(BaseSampler):
    """Optuna sampler that proposes with a `FactoredSearch`; draws depend on it, the trial number and the history alone.

    A published method or point has its name as user attribute ``method``. The sampler sets it when it retunes one, and
    users set it when they enqueue one. Trials whose parameters are no complete proposal of the space are ignored.
    Ended trials count in the order of their numbers, since a foreign study need not have end times.

    Attributes:
        search: Factored search of the space.
    """

    def __init__(self, search: FactoredSearch) -> None:
        """Prepare for studies of the search's space."""
        self.search = search
        self._space = search.space
        self._retry = 0
        self._distributions = distributions(search.space)
        self._proposed: dict[int, dict[str, Any]] = {}
        self._candidates: dict[str, Candidate | None] = {}

    def at(self, number: int, retry: int) -> Self:
        """Return the sampler for trial ``number`` after ``retry`` duplicate proposals."""
        sampler = copy.copy(self)
        sampler._retry, sampler._proposed = retry, {}
        return sampler

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Propose, so that the objective finds the name of a published method."""
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
        """Return every parameter of the space."""
        return dict(self._distributions)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the parameters of the proposal; empty if no new candidate was drawn."""
        return self._proposed.pop(trial.number, {})

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Return a random value of a parameter that was not proposed."""
        seed = hashed_seed("independent", self.search.seed, trial.number, self._retry, param_name)
        return RandomSampler(seed=seed).sample_independent(study, trial, param_name, param_distribution)

    def _history(self, study: Study, trial: FrozenTrial) -> Sequence[Observation]:
        """Return the observations of a ledger, or those made of the trials of any Optuna study."""
        if isinstance(study._storage, ProposalStorage):
            return study._storage.observations
        sign = -1.0 if study.directions[0] is StudyDirection.MINIMIZE else 1.0
        others = [one for one in study.get_trials(deepcopy=False) if one.number != trial.number]
        # the longest trial is a full one
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
                candidate = (
                    self._space.suggest(given) if method is None else self._space.suggest_published(method, given)
                )
            except (KeyError, BudgetError, InvalidEditError):
                candidate = None
            self._candidates[key] = candidate
        return self._candidates[key]


def _readings(trial: FrozenTrial, steps: int, sign: float) -> tuple[MeasuredScore, ...]:
    scores = {step / steps: score for step, score in trial.intermediate_values.items() if 0 < step < steps}
    if trial.values is not None and trial.state is OptunaState.COMPLETE:
        scores[1.0] = trial.values[0]
    return tuple(MeasuredScore(fraction=at, score=sign * score) for at, score in sorted(scores.items()))


def head_peak_lr(history: Sequence[Observation], bounds: tuple[float, float], seed: int, number: int) -> float:
    """Return a peak learning rate for the task head: near that of a top trial, or log-uniform. The model leaves it out.

    Args:
        history: Trials so far; complete ones with a head rate of their own are used.
        bounds: Lowest and highest rate.
        seed: Seed of the study.
        number: Number of the trial.
    """
    low, high = bounds
    draw = random.Random(hashed_seed("head rate", seed, number))
    log_uniform = math.exp(draw.uniform(math.log(low), math.log(high)))
    scores = [
        (rate, max(one.readings, key=lambda read: read.fraction).score, one.number)
        for one in history
        if (rate := one.head_learning_rate) and one.state is TrialState.COMPLETE and one.readings
    ]
    ranked = sorted(scores, key=lambda one: (-one[1], one[2]))
    top = ranked[: len(ranked) // _TOP_FRACTION]
    is_local, position, step = draw.random() >= _UNIFORM_FRACTION, draw.random(), draw.gauss(0.0, _LOCAL_LOG_STD)
    rate = top[int(position * len(top))][0] * math.exp(step) if top and is_local else log_uniform
    return min(max(rate, low), high)
