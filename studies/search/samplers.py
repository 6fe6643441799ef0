"""The samplers that a study can choose: each gives a sampler of Optuna for every proposal.

An entry of `SAMPLERS` has a name; an installed package adds one of its own::

    [project.entry-points."deltaspace.samplers"]
    mine = "my_package.samplers:MINE"

where ``MINE`` is a `Sampler`. Any class of samplers that takes a ``seed`` needs no name, such as
``optuna.samplers:TPESampler`` or ``optunahub:samplers/auto_sampler:AutoSampler``. ``tests/contracts/test_samplers.py``
says what every entry must keep.
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
from optuna.samplers import BaseSampler, CmaEsSampler, GPSampler, NSGAIISampler, RandomSampler
from optuna.study import Study
from optuna.trial import FrozenTrial

from search_space.registry import Registry
from search_space.space.space import SearchSpace
from search_space.space.structure_draws import StructureDraws
from studies.errors import LaunchError
from studies.search.factored_sampler import FactoredSampler
from studies.search.optuna_history import distributions
from studies.search.tpe_sampler import GroupedTpeSampler
from studies.search.warm_start import WarmStart
from studies.seeds import hashed_seed
from studies.surrogate.candidate_search import FactoredSearch, FactoredSettings
from studies.surrogate.recorded_observations import ObservationModel

STARTUP_TRIALS = 10
"""Trials with a result before a model is fitted; until then proposals are random."""

POPULATION = 20
"""Complete trials of a generation of NSGA-II; studies are small, so it is below the 50 of Optuna."""

OfProposal = Callable[[int, int], BaseSampler]
"""The sampler of one proposal, from the number of the trial and how many proposals for it had been tried before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampler:
    """A way to propose.

    Attributes:
        of: For a space, the seed of a study, what it learned from earlier ones and the course of its trials: what gives
            the sampler of each proposal. What that draws depends on these and on the trials that it is shown only.
        startup: Trials with a result before it is asked; until then proposals are random.
        sees_published: Whether it is shown trials of published methods, by their paths through the space, those that
            have one.
    """

    of: Callable[[SearchSpace, int, WarmStart, ObservationModel], OfProposal]
    startup: int = 0
    sees_published: bool = True


class PointSampler(RandomSampler):
    """Proposes a point that is known beforehand; what it leaves open, or nobody knew of, is random."""

    def __init__(self, point: Mapping[str, Any], spaces: Mapping[str, BaseDistribution], seed: int) -> None:
        """Prepare one proposal.

        Args:
            point: Values of parameters.
            spaces: Where parameters are drawn from.
            seed: Of what is random.
        """
        super().__init__(seed=seed)
        self._point, self._spaces = point, spaces

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Every parameter."""
        return dict(self._spaces)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The point."""
        return dict(self._point)


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


def seeded(
    make: Callable[..., BaseSampler], **options: Any
) -> Callable[[SearchSpace, int, WarmStart, ObservationModel], OfProposal]:
    """What makes a sampler afresh for every proposal, with a seed that derives from the study's and the trial's number.

    Args:
        make: Takes a ``seed``.
        options: What else it is given.
    """

    def of(space: SearchSpace, seed: int, lessons: WarmStart, course: ObservationModel) -> OfProposal:
        def of_proposal(number: int, retry: int) -> BaseSampler:
            with warnings.catch_warnings():
                # multivariate group TPE is an experimental argument of Optuna; it is the best by our own comparison
                warnings.simplefilter("ignore", ExperimentalWarning)
                return make(seed=hashed_seed("sampler", seed, number, retry), **options)

        return of_proposal

    return of


def _random(space: SearchSpace, seed: int, lessons: WarmStart, course: ObservationModel) -> OfProposal:
    """A structure, every one as likely, the numbers uniform in their ranges."""
    draws, spaces = StructureDraws(space, seed) if space.trees else None, distributions(space)

    def of_proposal(number: int, retry: int) -> BaseSampler:
        structure = {} if draws is None else draws.draw(number, retry)
        return PointSampler(structure, spaces, hashed_seed("sampler", seed, number, retry))

    return of_proposal


def _qmc(space: SearchSpace, seed: int, lessons: WarmStart, course: ObservationModel) -> OfProposal:
    """Points of a scrambled Sobol sequence over the whole space, one per trial number.

    Optuna's own sampler counts its points in the study and skips conditional parameters; here the number is the
    index, so that a replay needs no counter, and a parameter that a trial does not ask for is simply not used.
    """
    spaces = {name: one for name, one in sorted(distributions(space).items()) if not one.single()}

    def of_proposal(number: int, retry: int) -> BaseSampler:
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


def _gp(seed: int) -> BaseSampler:
    return GPSampler(
        seed=seed, **_FIRST, independent_sampler=GroupedTpeSampler(seed=seed, **_FIRST), warn_independent_sampling=False
    )


def factored_search(space: SearchSpace, seed: int, lessons: WarmStart, course: ObservationModel) -> FactoredSearch:
    """The factored search of a study, from its seed, what it learned of earlier ones and the course of its trials."""
    places = lessons.places(space.options.learning_rates)
    settings = FactoredSettings(expected_rates=places)
    return FactoredSearch(space, seed=seed, settings=settings, goal=course.goal)


def _factored(space: SearchSpace, seed: int, lessons: WarmStart, course: ObservationModel) -> OfProposal:
    return FactoredSampler(factored_search(space, seed, lessons, course)).at


SAMPLERS: Registry[Sampler] = Registry(
    "sampler",
    {
        # its good trials are the complete ones first, and published methods are complete where others were pruned
        "tpe": Sampler(of=seeded(GroupedTpeSampler, **_FIRST), startup=STARTUP_TRIALS, sees_published=False),
        "random": Sampler(of=_random),
        # these two model only what all trials share, and a published method shares nothing
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
"""Who can propose, by the name that a study file gives."""


def sampler_of(wish: str | Mapping[str, Any]) -> Sampler:
    """The sampler that a study file asks for.

    Args:
        wish: A name, the ``module:Class`` of any of Optuna's, or a mapping of ``class`` and what it is made with.

    Raises:
        LaunchError: If there is none, or it cannot be asked for trials of a tree.
    """
    options = {} if isinstance(wish, str) else dict(wish)
    name = wish if isinstance(wish, str) else str(options.pop("class", None))
    if ":" in name:
        return Sampler(of=seeded(_class_of(name, options), **options))
    if not isinstance(wish, str):
        raise LaunchError(f"the class of a sampler with options must be a module:Class; got {name!r}.")
    if name not in SAMPLERS:
        raise LaunchError(f"no sampler {name!r}; known: {', '.join(SAMPLERS)}, and any module:Class of Optuna's.")
    return SAMPLERS[name]


def _class_of(name: str, options: Mapping[str, Any]) -> type[BaseSampler]:
    module, _, of_module = name.rpartition(":")
    try:
        found = getattr(_module(module), of_module)
    except (ImportError, AttributeError) as error:
        raise LaunchError(
            f"the sampler {name!r} must be importable; got {error}. Install it or mend its name."
        ) from error
    if not isinstance(found, type) or not issubclass(found, BaseSampler):
        raise LaunchError(f"the sampler {name!r} must be a class of Optuna's samplers; it is a {type(found).__name__}.")
    if issubclass(found, CmaEsSampler):
        raise LaunchError(
            f"the sampler {name!r} must propose choices that follow from choices; CMA-ES proposes numbers that all "
            "trials have. Use factored, tpe or gp."
        )
    if "seed" not in inspect.signature(found).parameters:
        raise LaunchError(f"the sampler {name!r} must take a seed, so that a study can be continued; it takes none.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            cast(Callable[..., BaseSampler], found)(seed=0, **options)
    except Exception as error:
        raise LaunchError(
            f"the sampler {name!r} must take {dict(options)}; it raised {error!r}. Mend its options."
        ) from error
    return found


def _module(name: str) -> Any:
    """A module, or one of OptunaHub: ``optunahub:samplers/auto_sampler``."""
    hub, colon, package = name.partition(":")
    return importlib.import_module(hub).load_module(package) if colon else importlib.import_module(name)
