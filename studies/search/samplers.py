"""Samplers that a study can choose; each provides an Optuna sampler for every proposal.

An entry of `SAMPLERS` has a name; an installed package adds one of its own::

    [project.entry-points."deltaspace.samplers"]
    mine = "my_package.samplers:MINE"

where ``MINE`` is a `Sampler`. A sampler class with a ``seed`` argument needs no name, such as
``optuna.samplers:TPESampler`` or ``optunahub:samplers/auto_sampler:AutoSampler``.
``tests/contracts/test_samplers.py`` checks every entry.
"""

import importlib
import inspect
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.exceptions import ExperimentalWarning
from optuna.samplers import BaseSampler, CmaEsSampler, GPSampler, NSGAIISampler, RandomSampler, TPESampler
from optuna.study import Study
from optuna.trial import FrozenTrial

from search_space.registry import Registry
from search_space.space.space import SearchSpace
from search_space.space.structure_draws import StructureDraws
from studies.errors import LaunchError
from studies.history.history import StudyHistory
from studies.objectives import SizeGoal
from studies.search.factored_sampler import FactoredSampler
from studies.search.optuna_history import distributions
from studies.search.warm_start import WarmStart
from studies.seeds import hashed_seed
from studies.surrogate.candidate_search import FactoredSearch, FactoredSettings

STARTUP_TRIALS = 10
"""Number of trials with a result before a model is fitted; until then proposals are random."""

POPULATION = 20
"""Complete trials per generation of NSGA-II; below Optuna's 50, since studies are small."""

OfProposal = Callable[[StudyHistory, int, int], BaseSampler]
"""Function from history, trial number and number of duplicate proposals to the sampler of one proposal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampler:
    """Sampler that a study can choose.

    Attributes:
        of: Function from space, study seed, warm start and size goal to the sampler of each proposal. Its draws depend
            on these and on the history alone.
        startup: Number of trials with a result before it is used; until then proposals are random.
        sees_published: Whether it receives published methods that the space can propose.
    """

    of: Callable[[SearchSpace, int, WarmStart, SizeGoal | None], OfProposal]
    startup: int = 0
    sees_published: bool = True


class PointSampler(RandomSampler):
    """Sampler of a given point; parameters that the point leaves open are random."""

    def __init__(self, point: Mapping[str, Any], spaces: Mapping[str, BaseDistribution], seed: int) -> None:
        """Prepare one proposal.

        Args:
            point: Values of parameters.
            spaces: Distributions of the parameters.
            seed: Seed of the random values.
        """
        super().__init__(seed=seed)
        self._point, self._spaces = point, spaces

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return every parameter."""
        return dict(self._spaces)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the point."""
        return dict(self._point)


def _at(space: BaseDistribution, x: float) -> Any:
    """Return the value at ``x`` in [0, 1) of a parameter's range."""
    if isinstance(space, CategoricalDistribution):
        return space.choices[int(x * len(space.choices))]
    if not isinstance(space, FloatDistribution):
        raise LaunchError(f"parameters must be choices or ranges of real numbers; got {space!r}.")
    if space.log:
        value = math.exp(math.log(space.low) + x * (math.log(space.high) - math.log(space.low)))
    else:
        value = space.low + x * (space.high - space.low)
    return min(max(value, space.low), space.high)


def seeded(
    make: Callable[..., BaseSampler], **options: Any
) -> Callable[[SearchSpace, int, WarmStart, SizeGoal | None], OfProposal]:
    """Return a function that makes a new sampler for every proposal, seeded by the study's seed and the trial number.

    Args:
        make: Sampler class with a ``seed`` argument.
        options: Other arguments.
    """

    def of(space: SearchSpace, seed: int, warm_start: WarmStart, goal: SizeGoal | None) -> OfProposal:
        def of_proposal(history: StudyHistory, number: int, retry: int) -> BaseSampler:
            with warnings.catch_warnings():
                # multivariate group TPE is an experimental argument of Optuna; it is the best by our own comparison
                warnings.simplefilter("ignore", ExperimentalWarning)
                return make(seed=hashed_seed("sampler", seed, number, retry), **options)

        return of_proposal

    return of


def _random(space: SearchSpace, seed: int, warm_start: WarmStart, goal: SizeGoal | None) -> OfProposal:
    """Return samplers of structures, all equally likely, with numbers uniform in their ranges."""
    draws, spaces = StructureDraws(space, seed) if space.trees else None, distributions(space)

    def of_proposal(history: StudyHistory, number: int, retry: int) -> BaseSampler:
        structure = {} if draws is None else draws.draw(number, retry)
        return PointSampler(structure, spaces, hashed_seed("sampler", seed, number, retry))

    return of_proposal


def _qmc(space: SearchSpace, seed: int, warm_start: WarmStart, goal: SizeGoal | None) -> OfProposal:
    """Return samplers of the points of a scrambled Sobol sequence over the whole space, one per trial number.

    Optuna's sampler counts its points in the study and skips conditional parameters. Here the trial number is the
    index, so that a replay needs no counter, and parameters that a trial does not have are ignored.
    """
    spaces = {name: one for name, one in sorted(distributions(space).items()) if not one.single()}

    def of_proposal(history: StudyHistory, number: int, retry: int) -> BaseSampler:
        own = hashed_seed("sequence", seed, retry)
        if not spaces:
            return PointSampler({}, spaces, own)
        from scipy.stats import qmc  # type: ignore[import-untyped]

        engine = qmc.Sobol(len(spaces), scramble=True, rng=own)
        if number:
            engine.fast_forward(number)
        places = zip(spaces.items(), engine.random(1)[0], strict=True)
        return PointSampler({name: _at(one, float(x)) for (name, one), x in places}, spaces, own)

    return of_proposal


_FIRST: Mapping[str, Any] = {"n_startup_trials": STARTUP_TRIALS}
_TPE: Mapping[str, Any] = {**_FIRST, "multivariate": True, "group": True, "constant_liar": True}


def _gp(seed: int) -> BaseSampler:
    independent = TPESampler(seed=seed, **_TPE)
    return GPSampler(seed=seed, **_FIRST, independent_sampler=independent, warn_independent_sampling=False)


def factored_search(space: SearchSpace, seed: int, warm_start: WarmStart, goal: SizeGoal | None) -> FactoredSearch:
    """Return the factored search of a study."""
    settings = FactoredSettings(expected_rates=warm_start.expected_rates(space.options.learning_rates))
    return FactoredSearch(space, seed=seed, settings=settings, goal=goal)


def _factored(space: SearchSpace, seed: int, warm_start: WarmStart, goal: SizeGoal | None) -> OfProposal:
    return FactoredSampler(factored_search(space, seed, warm_start, goal)).of_proposal


SAMPLERS: Registry[Sampler] = Registry(
    "sampler",
    {
        # TPE ranks complete trials first, and published methods complete where others are pruned
        "tpe": Sampler(of=seeded(TPESampler, **_TPE), startup=STARTUP_TRIALS, sees_published=False),
        "random": Sampler(of=_random),
        # these two model only the parameters that all trials share, and published methods share none
        "nsga2": Sampler(
            of=seeded(NSGAIISampler, population_size=POPULATION), startup=POPULATION, sees_published=False
        ),
        "gp": Sampler(of=seeded(_gp), startup=STARTUP_TRIALS, sees_published=False),
        "qmc": Sampler(of=_qmc),
        "factored": Sampler(of=_factored),
    },
    kind=Sampler,
    group="deltaspace.samplers",
)
"""Samplers by the name in a study file."""


def sampler_of(choice: str | Mapping[str, Any]) -> Sampler:
    """Return the sampler of a study file's ``search.sampler``.

    Args:
        choice: Name, the ``module:Class`` of an Optuna sampler, or a mapping with ``class`` and its arguments.

    Raises:
        LaunchError: If there is no such sampler, or it does not support conditional parameters.
    """
    options = {} if isinstance(choice, str) else dict(choice)
    name = choice if isinstance(choice, str) else str(options.pop("class", None))
    if ":" in name:
        return Sampler(of=seeded(_class_of(name, options), **options))
    if not isinstance(choice, str):
        raise LaunchError(f"the class of a sampler with options must be a module:Class; got {name!r}.")
    if name not in SAMPLERS:
        raise LaunchError(
            f"no sampler {name!r}; known: {', '.join(SAMPLERS)}, and the module:Class of any Optuna sampler."
        )
    return SAMPLERS[name]


def _class_of(name: str, options: Mapping[str, Any]) -> type[BaseSampler]:
    module, _, of_module = name.rpartition(":")
    try:
        sampler_class = getattr(_module(module), of_module)
    except (ImportError, AttributeError) as error:
        raise LaunchError(f"cannot import the sampler {name!r}: {error}. Install it or correct its name.") from error
    if not isinstance(sampler_class, type) or not issubclass(sampler_class, BaseSampler):
        raise LaunchError(f"the sampler {name!r} must be an Optuna sampler class; got {sampler_class!r}.")
    if issubclass(sampler_class, CmaEsSampler):
        raise LaunchError(
            f"{sampler_class.__name__} needs a fixed set of numbers; this space is conditional and categorical. "
            "Use factored, tpe or gp."
        )
    if "seed" not in inspect.signature(sampler_class).parameters:
        raise LaunchError(
            f"the sampler {name!r} must have a seed argument, so that a study can be continued; got none."
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            cast(Callable[..., BaseSampler], sampler_class)(seed=0, **options)
    except Exception as error:
        raise LaunchError(
            f"cannot create the sampler {name!r} with {dict(options)}: {error!r}. Correct its options."
        ) from error
    return sampler_class


def _module(name: str) -> Any:
    """Return a module, or one of OptunaHub: ``optunahub:samplers/auto_sampler``."""
    hub, colon, package = name.partition(":")
    return importlib.import_module(hub).load_module(package) if colon else importlib.import_module(name)
