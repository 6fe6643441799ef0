"""The factored sampler for a study of Optuna whose objective asks a search space: ``space.suggest(trial)``."""

import random
from collections.abc import Callable
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial
from optuna.trial import TrialState as OptunaState

from search_space.space.asking import Choice
from search_space.space.space import SearchSpace
from studies.search.factored.observation import Measured, Observation
from studies.search.factored.sampler import FactoredSearch
from studies.search.factored.settings import FactoredSettings
from studies.search.factored.trends import BEST_RATE
from studies.search.factored.view import absolute_rate
from studies.search.samplers import derived_seed
from studies.store.records import TrialState

_STATES = {
    OptunaState.COMPLETE: TrialState.COMPLETE,
    OptunaState.PRUNED: TrialState.PRUNED,
    OptunaState.RUNNING: TrialState.RUNNING,
    OptunaState.WAITING: TrialState.QUEUED,
}

_NEAR = 0.3
"""How far from the expected best the rates of published methods are drawn, in units of half their range."""


class FactoredSampler(BaseSampler):
    """Proposes with `FactoredSearch`; what it draws depends on the seed, the trial's number and the history only.

    Trials whose parameters are no whole proposal of the space, such as published methods of which only the rates were
    asked for, are passed over.
    """

    def __init__(
        self,
        space: SearchSpace,
        *,
        seed: int = 0,
        steps: int | None = None,
        standard_error: Callable[[float], float] | None = None,
        settings: FactoredSettings | None = None,
    ) -> None:
        """Prepare for studies over a space.

        Args:
            space: What the objective asks.
            seed: Of everything that is drawn.
            steps: Of a whole trial, in the unit of its intermediate values; None leaves those out.
            standard_error: Of a score; None where it is not known.
            settings: None for the usual ones.
        """
        self._space = space
        self._search = FactoredSearch(space, seed=seed, settings=settings)
        self._steps = steps
        self._standard_error = standard_error
        self._seed = seed

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Every parameter of the space."""
        return distributions(self._space)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The parameters of one proposal, and rates of other forms for an objective that asks a published method."""
        sign = -1.0 if study.direction is StudyDirection.MINIMIZE else 1.0
        others = [one for one in study.get_trials(deepcopy=False) if one.number != trial.number]
        history = [found for one in others if (found := self._observation(one, sign)) is not None]
        candidate = self._search.candidate(history, number=trial.number)
        return {} if candidate is None else {**self._rates(trial.number), **candidate.parameters}

    def _rates(self, number: int) -> dict[str, float]:
        """A rate near the expected best for every form that is asked for."""
        draw = random.Random(derived_seed("rates", self._seed, number))
        places = {form: BEST_RATE + draw.uniform(-_NEAR, _NEAR) for form in self._space.options.learning_rates}
        return {
            f"learning_rate.{form}": absolute_rate(place, *self._space.options.learning_rates[form])
            for form, place in places.items()
        }

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """A random value, for a parameter outside the space."""
        sampler = RandomSampler(seed=derived_seed("independent", self._seed, trial.number, param_name))
        return sampler.sample_independent(study, trial, param_name, param_distribution)

    def _observation(self, trial: FrozenTrial, sign: float) -> Observation | None:
        if trial.state not in _STATES:
            return None
        try:
            candidate = self._search.candidate_of(trial.params)
        except KeyError:
            return None
        return Observation.of(
            candidate,
            number=trial.number,
            state=_STATES[trial.state],
            readings=tuple(self._readings(trial, sign)),
        )

    def _readings(self, trial: FrozenTrial, sign: float) -> list[Measured]:
        ended = trial.datetime_complete.timestamp() if trial.datetime_complete is not None else float("inf")
        found = []
        if self._steps is not None:
            for step, score in sorted(trial.intermediate_values.items()):
                if 0 < step < self._steps:
                    found.append(self._measured(step / self._steps, sign * score, ended))
        if trial.value is not None and trial.state is OptunaState.COMPLETE:
            found.append(self._measured(1.0, sign * trial.value, ended))
        return found

    def _measured(self, fraction: float, score: float, time: float) -> Measured:
        error = 0.0 if self._standard_error is None else self._standard_error(score)
        return Measured(fraction=fraction, score=score, standard_error=error, time=time)


def distributions(space: SearchSpace) -> dict[str, BaseDistribution]:
    """The parameters of a space as Optuna knows them."""
    found: dict[str, BaseDistribution] = {}
    for name, values in space.parameters().items():
        if isinstance(values, Choice):
            found[name] = CategoricalDistribution(values.choices)
        else:
            found[name] = FloatDistribution(values.low, values.high, log=values.log)
    return found
