"""The samplers of Optuna that a study can choose, each made afresh for every proposal."""

import hashlib
import math
import warnings
from collections.abc import Mapping
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.samplers import BaseSampler, GPSampler, NSGAIISampler, RandomSampler, TPESampler
from optuna.study import Study
from optuna.trial import FrozenTrial

from studies.errors import LaunchError

SAMPLERS = ("tpe", "random", "nsga2", "gp", "qmc")

STARTUP_TRIALS = 10
"""Trials with a result before a model is fitted; until then proposals are random."""

MODEL_REPEATS = 8
"""After so many proposals in a row that had been tried, the next ones are random: a model insists on its favourite."""

POPULATION = 20
"""Complete trials of a generation of NSGA-II; studies are small, so it is below the 50 of Optuna."""

optuna.logging.set_verbosity(optuna.logging.ERROR)


def derived_seed(*parts: object, bits: int = 32) -> int:
    """A seed that depends on all parts, the same on every machine and in every process."""
    digest = hashlib.sha256("/".join(str(part) for part in parts).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> (64 - bits)


class SequenceSampler(BaseSampler):
    """Points of a scrambled Sobol sequence over the whole space, one per trial number.

    Optuna's own sampler counts its points in the study and skips conditional parameters; here the number is the
    index, so that a replay needs no counter, and a parameter that a trial does not ask for is simply not used.
    """

    def __init__(self, distributions: Mapping[str, BaseDistribution], *, seed: int, index: int) -> None:
        """Prepare the point of one trial.

        Args:
            distributions: Every parameter of the space.
            seed: Of the scrambling, the same for all trials.
            index: Which point of the sequence.
        """
        self._distributions = dict(sorted(distributions.items()))
        self._seed = seed
        self._index = index
        self._independent = RandomSampler(seed=derived_seed(seed, index))

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """All parameters of the space."""
        return {name: space for name, space in self._distributions.items() if not space.single()}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The point of this trial."""
        if not search_space:
            return {}
        from scipy.stats import qmc  # type: ignore[import-untyped]

        engine = qmc.Sobol(len(search_space), scramble=True, rng=self._seed)
        if self._index:
            engine.fast_forward(self._index)
        point = engine.random(1)[0]
        return {name: _at(space, float(x)) for (name, space), x in zip(search_space.items(), point, strict=True)}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """A random value, for a parameter outside the space."""
        return self._independent.sample_independent(study, trial, param_name, param_distribution)


def _at(space: BaseDistribution, x: float) -> Any:
    """The value at ``x`` in [0, 1) of a parameter's range."""
    if isinstance(space, CategoricalDistribution):
        return space.choices[int(x * len(space.choices))]
    if not isinstance(space, FloatDistribution):
        raise LaunchError(f"parameters must be choices or ranges of real numbers; got {space!r}.")
    if space.log:
        value = math.exp(math.log(space.low) + x * (math.log(space.high) - math.log(space.low)))
    else:
        value = space.low + x * (space.high - space.low)
    return min(max(value, space.low), space.high)


def make_sampler(
    name: str, distributions: Mapping[str, BaseDistribution], *, study_seed: int, number: int, retry: int = 0
) -> BaseSampler:
    """The sampler for one proposal; what it draws depends on the seed, the number, the retry and the history only.

    Raises:
        LaunchError: If there is no sampler of that name.
    """
    seed = derived_seed("sampler", study_seed, number, retry)
    with warnings.catch_warnings():
        # multivariate group TPE is an experimental argument of Optuna; it is the best by our own comparison
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        match name if retry < MODEL_REPEATS else "random":
            case "tpe":
                return _tpe(seed)
            case "random":
                return RandomSampler(seed=seed)
            case "nsga2":
                return NSGAIISampler(seed=seed, population_size=POPULATION)
            case "gp":
                return GPSampler(
                    seed=seed,
                    n_startup_trials=STARTUP_TRIALS,
                    independent_sampler=_tpe(seed),
                    warn_independent_sampling=False,
                )
            case "qmc":
                scramble = derived_seed("sequence", study_seed, retry)
                return SequenceSampler(distributions, seed=scramble, index=number)
    raise LaunchError(f"no sampler {name!r}; known: {', '.join(SAMPLERS)}.")


def _tpe(seed: int) -> TPESampler:
    return TPESampler(n_startup_trials=STARTUP_TRIALS, multivariate=True, group=True, constant_liar=True, seed=seed)
