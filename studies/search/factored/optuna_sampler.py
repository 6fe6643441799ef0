"""The factored sampler for a study of Optuna whose objective asks a search space: ``space.suggest(trial)``."""

import copy
import math
import random
from collections.abc import Callable
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial
from optuna.trial import TrialState as OptunaState

from search_space.errors import BudgetError, InvalidEditError
from search_space.space.asking import Choice
from search_space.space.random_draw import GivenTrial
from search_space.space.space import Candidate, SearchSpace
from studies.records import TrialState
from studies.search.factored.observation import Measured, Observation
from studies.search.factored.sampler import FactoredSearch
from studies.search.factored.settings import FactoredSettings
from studies.search.factored.trends import BEST_RATE
from studies.search.factored.view import absolute_rate
from studies.search.objectives import SizeGoal
from studies.search.seeds import hashed_seed

_STATES = {
    OptunaState.COMPLETE: TrialState.COMPLETE,
    OptunaState.PRUNED: TrialState.PRUNED,
    OptunaState.RUNNING: TrialState.RUNNING,
    OptunaState.WAITING: TrialState.QUEUED,
}

_NEAR = 0.3
"""How far from the expected best the rates of published methods are drawn, in units of half their range."""


METHOD = "method"
"""User attribute of a trial that asked ``space.suggest_published``: what it asked for."""


class FactoredSampler(BaseSampler):
    """Proposes with `FactoredSearch`; what it draws depends on the seed, the trial's number and the history only.

    A trial that asked a published method or point is known by its user attribute ``method``; without it, and whenever
    its parameters are no whole proposal of the space, a trial is passed over. What has ended counts in the order of
    numbers, for the times of two trials that end together differ from one rebuilding of a study to the next.
    """

    def __init__(
        self,
        space: SearchSpace,
        *,
        seed: int = 0,
        steps: int | None = None,
        standard_error: Callable[[float], float] | None = None,
        settings: FactoredSettings | None = None,
        goal: SizeGoal | None = None,
    ) -> None:
        """Prepare for studies over a space.

        Args:
            space: What the objective asks.
            seed: Of everything that is drawn.
            steps: Of a whole trial, in the unit of its intermediate values; None for the most that any trial has.
            standard_error: Of a score; None where it is not known.
            settings: None for the usual ones.
            goal: What is to be small in a study of several directions, of which the first is the score's.
        """
        self._space = space
        self._search = FactoredSearch(space, seed=seed, settings=settings, names_published=False, goal=goal)
        self._steps = steps
        self._standard_error = standard_error
        self._seed = seed
        self._turn: tuple[int, int] | None = None
        self._candidates: dict[str, Candidate | None] = {}
        self._ended: dict[int, tuple[FrozenTrial, tuple[int, float], Observation | None]] = {}

    def at(self, number: int, retry: int) -> "FactoredSampler":
        """The sampler of one proposal, where numbers are not those that Optuna gives.

        Args:
            number: Of the trial.
            retry: How many proposals for the number were not wanted.
        """
        found = copy.copy(self)
        found._turn = number, retry
        return found

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Every parameter of the space."""
        return distributions(self._space)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The parameters of one proposal, and rates of other forms for an objective that asks a published method."""
        sign = -1.0 if study.directions[0] is StudyDirection.MINIMIZE else 1.0
        others = [one for one in study.get_trials(deepcopy=False) if one.number != trial.number]
        steps = self._steps or max((max(one.intermediate_values, default=1) for one in others), default=1)
        found = [self._observation(one, steps, sign) for one in others if one.state in _STATES]
        number, retry = self._turn or (trial.number, 0)
        history = [one for one in found if one is not None]
        candidate = self._search.candidate(history, number=number, retry=retry)
        rates = self._rates(number, retry)
        return rates if candidate is None else {**rates, **candidate.parameters}

    def _rates(self, number: int, retry: int) -> dict[str, float]:
        """A rate near the expected best for every form that is asked for."""
        draw = random.Random(hashed_seed("rates", self._seed, number, retry))
        ranges = self._space.options.learning_rates.items()
        return {
            f"learning_rate.{form}": absolute_rate(BEST_RATE + draw.uniform(-_NEAR, _NEAR), low, high)
            for form, (low, high) in ranges
            if low < high
        }

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """A random value, for a parameter outside the space."""
        sampler = RandomSampler(seed=hashed_seed("independent", self._seed, trial.number, param_name))
        return sampler.sample_independent(study, trial, param_name, param_distribution)

    def _observation(self, trial: FrozenTrial, steps: int, sign: float) -> Observation | None:
        told, known = (steps, sign), self._ended.get(trial.number)
        if known is not None and known[0] is trial and known[1] == told:
            return known[2]
        candidate = self._candidate(trial)
        found = None
        if candidate is not None:
            readings = tuple(self._readings(trial, steps, sign))
            found = Observation.of(candidate, number=trial.number, state=_STATES[trial.state], readings=readings)
        if trial.state.is_finished():
            self._ended[trial.number] = trial, told, found
        return found

    def _candidate(self, trial: FrozenTrial) -> Candidate | None:
        method = trial.user_attrs.get(METHOD)
        key = f"{method} {sorted(trial.params.items())}"
        if key not in self._candidates:
            given = GivenTrial(trial.params)
            try:
                asked = self._space.suggest(given) if method is None else self._space.suggest_published(method, given)
            except (KeyError, BudgetError, InvalidEditError):
                asked = None
            self._candidates[key] = asked
        return self._candidates[key]

    def _readings(self, trial: FrozenTrial, steps: int, sign: float) -> list[Measured]:
        time = 0.0 if trial.state.is_finished() else math.inf
        scores = {step / steps: score for step, score in trial.intermediate_values.items() if 0 < step < steps}
        if trial.values is not None and trial.state is OptunaState.COMPLETE:
            scores[1.0] = trial.values[0]
        return [self._measured(fraction, sign * score, time) for fraction, score in sorted(scores.items())]

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
