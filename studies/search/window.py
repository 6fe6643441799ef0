"""A sampler of Optuna that looks at the best and the newest trials where there are too many to look at."""

from typing import Any, cast

from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

LARGEST = 1_000
"""Trials with a result, up to which all are looked at."""

BEST = 250
"""The complete trials with the highest scores that stay in view; good for TPE are at most the 25 best."""

_WITH_A_RESULT = (TrialState.COMPLETE, TrialState.PRUNED)


class Window(BaseSampler):
    """Shows a sampler no more than `LARGEST` trials with a result, beside those that are running.

    Args:
        sampler: Who draws; made for one proposal.
    """

    def __init__(self, sampler: BaseSampler) -> None:
        """Begin with nothing looked at."""
        self.sampler = sampler
        self._seen: Study | None = None

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """That of the sampler."""
        return self.sampler.infer_relative_search_space(self._of(study), trial)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """What the sampler draws together."""
        return self.sampler.sample_relative(self._of(study), trial, search_space)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """What it draws apart."""
        return self.sampler.sample_independent(self._of(study), trial, param_name, param_distribution)

    def _of(self, study: Study) -> Study:
        if self._seen is None:
            trials = study.get_trials(deepcopy=False)
            kept = in_view(trials)
            self._seen = study if len(kept) == len(trials) else cast(Study, _View(study, kept))
        return self._seen


def in_view(trials: list[FrozenTrial]) -> list[FrozenTrial]:
    """The trials that a sampler looks at, in their order; all of them while there are few."""
    done = [one for one in trials if one.state in _WITH_A_RESULT]
    if len(done) <= LARGEST:
        return trials
    complete = [one for one in done if one.state is TrialState.COMPLETE]
    best = sorted(complete, key=lambda one: (-cast(float, one.value), one.number))[:BEST]
    kept = {one.number for one in (*best, *done[BEST - LARGEST :])}
    return [one for one in trials if one.number in kept or not one.state.is_finished()]


class _View:
    """A study with some of its trials only."""

    def __init__(self, study: Study, trials: list[FrozenTrial]) -> None:
        self._study = study
        self._trials = trials

    def __getattr__(self, name: str) -> Any:
        return getattr(self._study, name)

    def _get_trials(
        self, deepcopy: bool = True, states: tuple[TrialState, ...] | None = None, use_cache: bool = False
    ) -> list[FrozenTrial]:
        """As samplers of Optuna ask for them."""
        return [one for one in self._trials if states is None or one.state in states]

    get_trials = _get_trials
