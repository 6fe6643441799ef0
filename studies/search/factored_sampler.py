"""Factored search as an Optuna sampler, for studies whose objective calls ``space.suggest(trial)``."""

import copy
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Self

from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial
from optuna.trial import TrialState as OptunaState

from search_space.errors import BudgetError, InvalidEditError
from search_space.space.space import METHOD, Candidate
from studies.history.history import StudyHistory
from studies.history.noise import ScoreNoise
from studies.records import Reading, TrialRecord, TrialState
from studies.search.candidates import new_trial
from studies.search.optuna_history import distributions
from studies.seeds import hashed_seed
from studies.surrogate.candidate_search import FactoredSearch
from studies.surrogate.features import lr_at
from studies.surrogate.prior_mean import BEST_UNIT_LR

_STATES: Mapping[OptunaState, TrialState] = {
    OptunaState.COMPLETE: TrialState.COMPLETE,
    OptunaState.PRUNED: TrialState.PRUNED,
    OptunaState.RUNNING: TrialState.RUNNING,
    OptunaState.WAITING: TrialState.QUEUED,
}


class FactoredSampler(BaseSampler):
    """Optuna sampler that proposes with a `FactoredSearch`; draws depend on it, the trial number and the history alone.

    A published method or point has its name as user attribute ``method``. The sampler sets it when it retunes one, and
    users set it when they enqueue one. Trials whose parameters are no complete proposal of the space are ignored.
    Ended trials count in the order of their numbers, since a foreign study need not have end times.

    Attributes:
        search: Factored search of the space.
        candidate: Candidate of the newest trial; None if no new one was drawn, or before a trial.
    """

    def __init__(self, search: FactoredSearch) -> None:
        """Prepare for studies of the search's space."""
        self.search = search
        self.candidate: Candidate | None = None
        self._space = search.space
        self._history: StudyHistory | None = None
        self._retry = 0
        self._distributions = distributions(search.space)
        self._proposed: dict[int, dict[str, Any]] = {}
        self._records: dict[str, TrialRecord | None] = {}

    def of_proposal(self, history: StudyHistory, number: int, retry: int) -> Self:
        """Return the sampler of one trial after ``retry`` duplicate proposals, given the history of its study."""
        sampler = copy.copy(self)
        sampler._history, sampler._retry, sampler._proposed = history, retry, {}
        return sampler

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Propose, so that the objective finds the name of a published method."""
        self.candidate = None
        if METHOD in trial.user_attrs:
            ranges = self._space.options.learning_rates.items()
            self._proposed[trial.number] = {
                f"learning_rate.{form}": lr_at(BEST_UNIT_LR, low, high) for form, (low, high) in ranges
            }
            return
        history = self._history_of(study, trial) if self._history is None else self._history
        self.candidate = self.search.candidate(history, number=trial.number, retry=self._retry)
        if self.candidate is None:
            return
        self._proposed[trial.number] = dict(self.candidate.parameters)
        if self.candidate.method is not None:
            # the space makes it an attribute of the stored trial
            trial.user_attrs[METHOD] = self.candidate.method

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

    def _history_of(self, study: Study, trial: FrozenTrial) -> StudyHistory:
        """Return the history of an Optuna study before a trial."""
        sign = -1.0 if study.directions[0] is StudyDirection.MINIMIZE else 1.0
        others = [one for one in study.get_trials(deepcopy=False) if one.number != trial.number]
        # the longest trial is a full one
        steps = max((max(one.intermediate_values, default=1) for one in others), default=1)
        known = {one.number: record for one in others if (record := self._record(one)) is not None}
        readings = {one.number: _readings(one, steps, sign) for one in others}
        return StudyHistory.of(known.values(), readings, ScoreNoise(steps=steps))

    def _record(self, trial: FrozenTrial) -> TrialRecord | None:
        """Return the record of an Optuna trial; None if it has failed, or is no proposal of the space."""
        method = trial.user_attrs.get(METHOD)
        key = f"{method} {sorted(trial.params.items())}"
        if key not in self._records:
            given, space, record = trial.params, self._space, None
            with suppress(KeyError, BudgetError, InvalidEditError):
                candidate = space.suggest(given) if method is None else space.suggest_published(method, given)
                record = new_trial(candidate, space.shape, head_parameters=0, description="")
            self._records[key] = record
        found = self._records[key]
        if found is None or trial.state not in _STATES:
            return None
        return replace(found, number=trial.number, state=_STATES[trial.state])


def _readings(trial: FrozenTrial, steps: int, sign: float) -> list[Reading]:
    scores = {step: score for step, score in trial.intermediate_values.items() if 0 < step < steps}
    if trial.values is not None and trial.state is OptunaState.COMPLETE:
        scores[steps] = trial.values[0]
    return [
        Reading(trial=trial.number, step=step, score=sign * score, train_loss=math.nan, seconds=0.0)
        for step, score in sorted(scores.items())
    ]
