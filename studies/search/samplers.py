"""The samplers that a study can choose, each made afresh for every proposal.

An entry of `SAMPLERS` makes an Optuna sampler; an installed package adds one of its own::

    [project.entry-points."deltaspace.samplers"]
    mine = "my_package.samplers:MINE"

where ``MINE`` is a `Sampler`. ``tests/contracts/test_samplers.py`` says what every entry must keep.
"""

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler
from optuna.study import Study
from optuna.trial import FrozenTrial

from search_space.registry import Registry
from search_space.space.space import SearchSpace
from studies.errors import LaunchError
from studies.search.chronicle import Course
from studies.search.direct import AskedSearch
from studies.search.factored.hyperparameters import PRIORS
from studies.search.factored.optuna_sampler import FactoredSampler
from studies.search.factored.sampler import FactoredSearch
from studies.search.factored.settings import FactoredSettings
from studies.search.generations import NSGAIISampler
from studies.search.lessons import Lessons
from studies.search.seeds import hashed_seed
from studies.search.structure_sampler import AfterStart, StructureSampler
from studies.search.window import Window

STARTUP_TRIALS = 10
"""Trials with a result before a model is fitted; until then proposals are random."""

MODEL_REPEATS = 8
"""After so many proposals in a row that had been tried, the next ones are random: a model insists on its favourite."""

POPULATION = 20
"""Complete trials of a generation of NSGA-II; studies are small, so it is below the 50 of Optuna."""


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
        self._independent = RandomSampler(seed=hashed_seed(seed, index))

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The proposal that a sampler is made for.

    Attributes:
        space: What may be proposed.
        distributions: Every parameter of the space, as Optuna knows it.
        study_seed: Of the study.
        number: Of the trial to be proposed.
        retry: How many proposals for this number had been tried before.
        over_structures: Whether what is random is uniform over structures; else over one decision after another.
    """

    space: SearchSpace
    distributions: Mapping[str, BaseDistribution]
    study_seed: int
    number: int
    retry: int = 0
    over_structures: bool = False

    @property
    def seed(self) -> int:
        """A seed of this turn's own."""
        return hashed_seed("sampler", self.study_seed, self.number, self.retry)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampler:
    """A way to propose.

    Attributes:
        make: The sampler for one turn. What it draws depends on the turn and on the history that it is shown only.
        sees_published: Whether trials of published methods are in the history that it is shown, by their rates alone.
        sees_whole_paths: The same where what is random is uniform over structures; then they are shown by their whole
            paths through the space, those that have one.
        knows_published: Whether it knows what a published method is, from the trial's attribute ``method``; then it is
            shown all of them, whatever the two above say.
        population: Complete trials of a generation, of samplers that count generations as NSGA-II does.
        search: What is asked in place of Optuna, for a space, the seed of a study, what it learned from earlier ones
            and the course of its trials; None if Optuna is asked.
    """

    make: Callable[[Turn], BaseSampler]
    sees_published: bool = True
    sees_whole_paths: bool = True
    knows_published: bool = False
    population: int | None = None
    search: Callable[[SearchSpace, int, Lessons, Course], AskedSearch] | None = None


def _random(turn: Turn) -> BaseSampler:
    if not turn.over_structures:
        return RandomSampler(seed=turn.seed)
    return StructureSampler(
        turn.space,
        turn.distributions,
        study_seed=turn.study_seed,
        seed=turn.seed,
        number=turn.number,
        retry=turn.retry,
    )


def _started(turn: Turn, sampler: BaseSampler, trials: int = STARTUP_TRIALS) -> BaseSampler:
    """A sampler whose own start is random over decisions, after one that is random over structures."""
    return AfterStart(_random(turn), sampler, trials=trials) if turn.over_structures else sampler


def _tpe(turn: Turn) -> BaseSampler:
    return _started(turn, Window(_plain_tpe(turn.seed)))


def _plain_tpe(seed: int) -> BaseSampler:
    return TPESampler(n_startup_trials=STARTUP_TRIALS, multivariate=True, group=True, constant_liar=True, seed=seed)


def _nsga2(turn: Turn) -> BaseSampler:
    return _started(turn, NSGAIISampler(seed=turn.seed, population=POPULATION), trials=POPULATION)


def _gp(turn: Turn) -> BaseSampler:
    sampler = GPSampler(
        seed=turn.seed,
        n_startup_trials=STARTUP_TRIALS,
        independent_sampler=_plain_tpe(turn.seed),
        warn_independent_sampling=False,
    )
    return _started(turn, sampler)


def _qmc(turn: Turn) -> BaseSampler:
    scramble = hashed_seed("sequence", turn.study_seed, turn.retry)
    return SequenceSampler(turn.distributions, seed=scramble, index=turn.number)


_FACTORED: WeakKeyDictionary[SearchSpace, dict[int, FactoredSampler]] = WeakKeyDictionary()


def factored_search(space: SearchSpace, seed: int, lessons: Lessons, course: Course) -> FactoredSearch:
    """The factored search of a study, from its seed, what it learned of earlier ones and the course of its trials."""
    places = lessons.places(space.options.learning_rates)
    settings = FactoredSettings(places=places, priors=PRIORS[course.priors])
    return FactoredSearch(space, seed=seed, settings=settings, goal=course.goal)


def _factored(turn: Turn) -> BaseSampler:
    """One sampler for all turns of a study; what it remembers saves time and changes nothing."""
    of_space = _FACTORED.setdefault(turn.space, {})
    if turn.study_seed not in of_space:
        of_space[turn.study_seed] = FactoredSampler(turn.space, seed=turn.study_seed)
    return of_space[turn.study_seed].at(turn.number, turn.retry)


SAMPLERS: Registry[Sampler] = Registry(
    "sampler",
    {
        # its good trials are the complete ones first, and published methods are complete where others were pruned
        "tpe": Sampler(make=_tpe, sees_whole_paths=False),
        "random": Sampler(make=_random),
        # these two model only what all trials share, and a published method shares nothing
        "nsga2": Sampler(make=_nsga2, sees_published=False, sees_whole_paths=False, population=POPULATION),
        "gp": Sampler(make=_gp, sees_published=False, sees_whole_paths=False),
        "qmc": Sampler(make=_qmc),
        "factored": Sampler(make=_factored, knows_published=True, search=factored_search),
    },
    kind=Sampler,
    group="deltaspace.samplers",
)
"""Who can propose, by the name that a study file gives."""


def sampler_of(name: str) -> Sampler:
    """The sampler of a name.

    Raises:
        LaunchError: If there is none.
    """
    if name not in SAMPLERS:
        raise LaunchError(f"no sampler {name!r}; known: {', '.join(SAMPLERS)}.")
    return SAMPLERS[name]


def make_sampler(sampler: Sampler, turn: Turn) -> BaseSampler:
    """What draws one proposal: the sampler's own, or a random one when what it insists on was tried long ago."""
    chosen = sampler if turn.retry < MODEL_REPEATS else SAMPLERS["random"]
    with warnings.catch_warnings():
        # multivariate group TPE is an experimental argument of Optuna; it is the best by our own comparison
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return chosen.make(turn)
