"""Proposals that are uniform over structures, alone or before a sampler has something to model."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from search_space.space.space import SearchSpace
from search_space.space.structure_draws import StructureDraws


@lru_cache(maxsize=8)
def _draws(space: SearchSpace, seed: int) -> StructureDraws:
    return StructureDraws(space, seed)


class StructureSampler(BaseSampler):
    """Draws a structure, every one as likely, and all numbers uniformly in their ranges.

    Args:
        space: What may be proposed.
        distributions: Every parameter of the space.
        study_seed: Of the study; its draws are spread evenly over the forms.
        seed: Of the numbers.
        number: Of the trial.
        retry: How many proposals for this number had been tried before.
    """

    def __init__(
        self,
        space: SearchSpace,
        distributions: Mapping[str, BaseDistribution],
        *,
        study_seed: int,
        seed: int,
        number: int,
        retry: int = 0,
    ) -> None:
        """Draw the structure."""
        self._distributions = dict(distributions)
        self._values = _draws(space, study_seed).draw(number, retry) if space.trees else {}
        self._numbers = RandomSampler(seed=seed)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The parameters that make the structure."""
        return {name: self._distributions[name] for name in self._values}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The structure."""
        return dict(self._values)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """A number, or what a published method leaves open."""
        return self._numbers.sample_independent(study, trial, param_name, param_distribution)


class AfterStart(BaseSampler):
    """One sampler while few trials have a result, then another.

    Args:
        start: The first.
        then: The other.
        trials: Complete or pruned trials with which the other begins.
    """

    def __init__(self, start: BaseSampler, then: BaseSampler, *, trials: int) -> None:
        """Begin with nothing decided."""
        self._start, self._then, self._trials = start, then, trials

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """That of the sampler whose turn it is."""
        return self._of(study).infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """What the sampler whose turn it is draws together."""
        return self._of(study).sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """What it draws apart."""
        return self._of(study).sample_independent(study, trial, param_name, param_distribution)

    def _of(self, study: Study) -> BaseSampler:
        states = (TrialState.COMPLETE, TrialState.PRUNED)
        has_few = len(study.get_trials(deepcopy=False, states=states)) < self._trials
        return self._start if has_few else self._then
