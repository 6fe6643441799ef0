"""What to try next: Optuna by ask and tell, in memory, rebuilt from the ledger by replay.

Optuna's study is a cache of the ledger. It is told what the ledger has recorded and nothing else, and every proposal
draws from a sampler of its own, seeded from the study's seed and the trial's number; so a study that was rebuilt
proposes what the lost one would have proposed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.storages import InMemoryStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial

from search_space.errors import BudgetError, InvalidEditError
from search_space.space.asking import Choice, FloatRange
from search_space.space.points import ATTENTION, FFN
from search_space.space.random_draw import GivenTrial
from search_space.space.space import HEAD_RATE, Candidate, SearchSpace
from studies.records import NewTrial, ReadingRecord, TrialRecord, TrialState
from studies.search.chronicle import Chronicle, Course
from studies.search.direct import MAX_DRAWS, AskedSearch, asked
from studies.search.factored.optuna_sampler import METHOD
from studies.search.factored.prospects import Prospects
from studies.search.factored.sampler import FactoredSearch
from studies.search.generations import GENERATION_KEY, Generations
from studies.search.head_rates import HeadRates
from studies.search.objectives import SizeGoal
from studies.search.opening import Opening
from studies.search.prospects import Prospect
from studies.search.quiet import quiet_optuna
from studies.search.samplers import Sampler, Turn, factored_search, make_sampler, sampler_of

MAX_REPEATS = 256
"""How often a proposal that was tried before is asked again, each time with another seed; most of them random."""

_ANY_COURSE = Course()
_NO_OPENING = Opening()

_OPTUNA_STATES = {
    TrialState.QUEUED: optuna.trial.TrialState.RUNNING,
    TrialState.RUNNING: optuna.trial.TrialState.RUNNING,
    TrialState.COMPLETE: optuna.trial.TrialState.COMPLETE,
    TrialState.PRUNED: optuna.trial.TrialState.PRUNED,
    TrialState.FAILED: optuna.trial.TrialState.FAIL,
}


class SpaceExhausted(Exception):  # noqa: N818 - not an error: a study that has tried everything is finished
    """Nothing that has not been tried was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A candidate and the number it will have.

    Attributes:
        number: Of the trial.
        candidate: What to try.
    """

    number: int
    candidate: Candidate


class Proposer:
    """Proposes candidates for one study: published methods first, then whatever the sampler thinks best.

    The number of a trial is its place in the study, so proposals must be recorded in the order they are made.
    """

    def __init__(
        self,
        space: SearchSpace,
        *,
        sampler: str | Sampler,
        seed: int,
        opening: Opening = _NO_OPENING,
        over_structures: bool = False,
        course: Course = _ANY_COURSE,
    ) -> None:
        """Begin with an empty history.

        Args:
            space: What may be proposed.
            sampler: One of ``SAMPLERS``, or its name there.
            seed: Of the study.
            opening: What comes first.
            over_structures: Whether what is random is uniform over structures, and a published method is seen by its
                whole path through the space or not at all; else what is random is uniform over one decision after
                another, and of a published method nothing but its rates is seen.
            course: Of every trial; of it samplers of Optuna's know only what is to be small, as a second value.

        Raises:
            LaunchError: If there is no sampler of that name.
        """
        self._space = space
        self._sampler = sampler_of(sampler) if isinstance(sampler, str) else sampler
        self._seed = seed
        self._over_structures = over_structures
        self._goal = course.goal
        self._chronicle = Chronicle(course)
        make = self._sampler.search
        self._search = None if make is None else make(space, seed, opening.lessons, course)
        self._model = partial(factored_search, space, seed, opening.lessons, course)
        self._distributions = {name: _distribution(values) for name, values in space.parameters().items()}
        self._storage = InMemoryStorage()
        with quiet_optuna():
            self._study = optuna.create_study(
                storage=self._storage,
                directions=directions_of(course.goal),
                sampler=make_sampler(self._sampler, self._turn(0)),
            )
        self._study_id = self._storage.get_study_id_from_name(self._study.study_name)
        self._ids: list[int] = []
        self._fingerprints: set[str] = set()
        starts = [space.suggest(GivenTrial(start.proposal)) for start in opening.lessons.starts]
        self._starts = {candidate.fingerprint: candidate for candidate in starts}
        self._published = list(opening.published)
        rates = space.options.head_learning_rates
        self._heads = None if rates is None else HeadRates(low=rates[0], high=rates[1], seed=seed)
        self._first_rates = opening.rates(space.options.learning_rates) if opening.has_expected_rates else None
        self.left_out: dict[str, str] = {}

    @property
    def next_number(self) -> int:
        """Number of the next trial."""
        return len(self._ids)

    @property
    def is_opening(self) -> bool:
        """Whether what comes first has not all been proposed."""
        return bool(self._starts or self._published)

    def history(self) -> list[FrozenTrial]:
        """What Optuna knows, one entry per trial in number order."""
        return [self._storage.get_trial(trial_id) for trial_id in self._ids]

    def replay(self, trials: Iterable[TrialRecord], readings: Mapping[int, Sequence[ReadingRecord]]) -> None:
        """Tell a new proposer what a ledger holds.

        Args:
            trials: Every trial of the study in number order.
            readings: By number of the trial.
        """
        population = self._sampler.population
        generations = None if population is None else Generations(population)
        for trial in trials:
            system_attributes = {} if generations is None else {GENERATION_KEY: generations.of(trial)}
            self._take_in(trial, readings.get(trial.number, ()), system_attributes)

    def _take_in(
        self,
        trial: TrialRecord,
        readings: Sequence[ReadingRecord] = (),
        system_attributes: Mapping[str, object] | None = None,
    ) -> None:
        """Know of the next trial from its record."""
        frozen = self.expected(trial, readings, system_attributes)
        self._ids.append(self._storage.create_new_trial(self._study_id, template_trial=frozen))
        self._note(trial.fingerprint, trial.method)
        self._note_head(trial.number, trial.proposal, trial.score)
        self._chronicle.replay(trial, readings)

    def _note_head(self, number: int, parameters: Mapping[str, object], score: float | None) -> None:
        """Know at what rate the head of a trial is trained, and how the trial ended."""
        if self._heads is not None and HEAD_RATE in parameters:
            self._heads.take(number, float(str(parameters[HEAD_RATE])))
            if score is not None:
                self._heads.close(number, score)

    def expected(
        self,
        trial: TrialRecord,
        readings: Iterable[ReadingRecord] = (),
        system_attributes: Mapping[str, object] | None = None,
    ) -> FrozenTrial:
        """A recorded trial as Optuna should see it."""
        # generations are of what a sampler has proposed
        is_hidden = trial.replicate_of is not None and self._sampler.population is not None
        seen = None if is_hidden else self._seen(trial.method, trial.proposal, lambda: self.whole_path(trial))
        state = _OPTUNA_STATES[trial.state] if seen is not None else optuna.trial.TrialState.FAIL
        parameters = trial.proposal if seen is None else seen
        return _Recorded(
            number=trial.number,
            trial_id=-1,
            state=state,
            value=None,
            values=values_of(trial, self._goal) if state is optuna.trial.TrialState.COMPLETE else None,
            datetime_start=trial.created_at,
            datetime_complete=trial.ended_at or (trial.created_at if state.is_finished() else None),
            params=dict(parameters),
            distributions={name: self._distributions[name] for name in parameters},
            user_attrs={} if trial.method is None else {METHOD: trial.method},
            system_attrs=dict(system_attributes or {}),
            # Optuna knows no readings of several values
            intermediate_values={} if self._goal else {reading.step: reading.score for reading in readings},
        )

    def distributions(self, parameters: Iterable[str]) -> dict[str, BaseDistribution]:
        """Where some parameters are drawn from, by name."""
        return {name: self._distributions[name] for name in parameters}

    def propose(self) -> Proposal:
        """A candidate that was not tried before.

        Raises:
            SpaceExhausted: If ``MAX_REPEATS`` proposals in a row had all been tried, or published methods are all
                there is.
        """
        number = self.next_number
        if self._starts:
            return Proposal(number=number, candidate=self._taken(next(iter(self._starts.values()))))
        while self._published:
            method = self._published[0]
            try:
                return Proposal(number=number, candidate=self._begin(number, method))
            except (BudgetError, InvalidEditError) as error:
                self.left_out[method] = str(error)
            except SpaceExhausted as reason:
                self.left_out[method] = str(reason)
            self._published.pop(0)
        if not self._space.trees:
            raise SpaceExhausted("the study has nothing but its published methods.")
        return Proposal(number=number, candidate=self._ask(number, None))

    def repeat(self, trial: NewTrial) -> None:
        """Take in a replicate, which is the next trial."""
        given = {name: getattr(trial, name) for name in NewTrial.__dataclass_fields__}
        running = TrialRecord(
            **given,
            study_id=0,
            state=TrialState.RUNNING,
            score=None,
            steps=0,
            last_score=None,
            reason=None,
            attempt=1,
            created_at=datetime.now(UTC),
            ended_at=None,
        )
        self._take_in(running)

    def report(self, number: int, step: int, score: float, loss: float | None = None) -> None:
        """Tell of a reading of an unfinished trial; of its loss samplers of Optuna's hear nothing."""
        self._chronicle.report(number, step, score, loss)
        trial = self._storage.get_trial(self._ids[number])
        if not trial.state.is_finished() and self._goal is None:
            self._storage.set_trial_intermediate_value(self._ids[number], step, score)

    def close(self, number: int, state: TrialState, score: float | None = None, *, size: float | None = None) -> None:
        """Tell how a trial ended; ``score`` is given exactly for complete ones, and ``size`` where there is a goal."""
        self._chronicle.close(number, state)
        if self._heads is not None and score is not None:
            self._heads.close(number, score)
        if not self._storage.get_trial(self._ids[number]).state.is_finished():
            values = None if score is None else [score, *(() if size is None else (size,))]
            self._storage.set_trial_state_values(self._ids[number], _OPTUNA_STATES[state], values)

    def prospects(self, numbers: Sequence[int]) -> Mapping[int, Prospect]:
        """What of some trials is to be expected, whoever proposes; without those of which too little is known."""
        return self._prospects.of(self._chronicle.trials, numbers)

    @cached_property
    def _prospects(self) -> Prospects:
        model = self._search if isinstance(self._search, FactoredSearch) else self._model()
        return model.prospects

    def _turn(self, number: int, retry: int = 0) -> Turn:
        return Turn(
            space=self._space,
            distributions=self._distributions,
            study_seed=self._seed,
            number=number,
            retry=retry,
            over_structures=self._over_structures,
        )

    def _begin(self, number: int, method: str) -> Candidate:
        """The first trial of a published method."""
        if self._first_rates is None:
            return self._ask(number, method)
        candidate = self._space.suggest_published(method, GivenTrial(self._first_rates))
        if candidate.fingerprint in self._fingerprints:
            raise SpaceExhausted("another trial is the same.")
        return self._taken(candidate)

    def _taken(self, candidate: Candidate) -> Candidate:
        """A candidate that no sampler was asked for, known as the next trial."""
        self._chronicle.take(candidate)
        self._take(candidate, candidate.method)
        return candidate

    def _ask(self, number: int, method: str | None) -> Candidate:
        return self._ask_optuna(number, method) if self._search is None else self._ask_directly(self._search, method)

    def _ask_directly(self, search: AskedSearch, method: str | None) -> Candidate:
        candidate = asked(search, self._chronicle.trials, method)
        if candidate is None:
            raise SpaceExhausted(f"{MAX_DRAWS} proposals in a row had been tried before.")
        self._chronicle.take(candidate)
        if self._heads is not None:
            candidate = self._space.with_head_rate(candidate, self._heads.next(self.next_number))
        self._take(candidate, method)
        return candidate

    def _take(self, candidate: Candidate, method: str | None) -> None:
        """Know of a candidate that was made without Optuna as the next trial."""
        self._note_head(self.next_number, candidate.parameters, None)
        seen = self._seen(candidate.method, candidate.parameters, lambda: self._path_of(candidate))
        parameters = candidate.parameters if seen is None else seen
        asked = optuna.trial.create_trial(
            state=optuna.trial.TrialState.FAIL if seen is None else optuna.trial.TrialState.RUNNING,
            params=dict(parameters),
            distributions={name: self._distributions[name] for name in parameters},
            user_attrs={} if candidate.method is None else {METHOD: candidate.method},
        )
        self._ids.append(self._storage.create_new_trial(self._study_id, template_trial=asked))
        self._note(candidate.fingerprint, method)

    @quiet_optuna()
    def _ask_optuna(self, number: int, method: str | None) -> Candidate:
        for retry in range(MAX_REPEATS):
            self._study.sampler = make_sampler(self._sampler, self._turn(number, retry))
            trial = self._study.ask()
            if method is not None:
                trial.set_user_attr(METHOD, method)
            try:
                candidate = self._space.suggest(trial) if method is None else self._suggest_published(method, trial)
            except (BudgetError, InvalidEditError):
                self._drop(trial)
                raise
            if candidate.fingerprint not in self._fingerprints:
                self._chronicle.take(candidate)
                self._ids.append(self._id_of(trial))
                self._note(candidate.fingerprint, method)
                self._show(trial, candidate)
                return candidate
            self._drop(trial)
        raise SpaceExhausted(f"{MAX_REPEATS} proposals in a row had been tried before.")

    def _suggest_published(self, method: str, trial: optuna.Trial) -> Candidate:
        return self._space.suggest_published(method, trial)

    def _show(self, trial: optuna.Trial, candidate: Candidate) -> None:
        """Let the sampler see of a trial what it should."""
        seen = self._seen(candidate.method, candidate.parameters, lambda: self._path_of(candidate))
        if seen is None:
            self._drop(trial)
            return
        for name, value in seen.items():
            if name not in candidate.parameters:
                distribution = self._distributions[name]
                internal = distribution.to_internal_repr(value)
                self._storage.set_trial_param(self._id_of(trial), name, internal, distribution)

    def _seen(
        self, method: str | None, asked: Mapping[str, object], whole_path: Callable[[], Mapping[str, object] | None]
    ) -> Mapping[str, object] | None:
        """The parameters of a trial that the sampler is shown; None if it is not to see the trial."""
        if method is None or self._sampler.knows_published:
            return asked
        if self._over_structures:
            return whole_path() if self._sampler.sees_whole_paths else None
        return asked if self._sampler.sees_published else None

    def _path_of(self, candidate: Candidate) -> Mapping[str, object] | None:
        """The parameters with which the space would propose a published method; None if it cannot."""
        rates = {ATTENTION: candidate.attention_learning_rate, FFN: candidate.ffn_learning_rate}
        return self._space.parameters_of(
            candidate.configuration, rates={side: rate for side, rate in rates.items() if rate is not None}
        )

    def whole_path(self, trial: TrialRecord) -> Mapping[str, object] | None:
        """The parameters with which the space would propose a recorded trial; None if it cannot."""
        sides = {ATTENTION: trial.attention, FFN: trial.ffn}
        return self._space.parameters_of(
            trial.configuration,
            rates={side: dimensions.learning_rate for side, dimensions in sides.items() if dimensions is not None},
        )

    def _drop(self, trial: optuna.Trial) -> None:
        """Hide a trial from the sampler: for Optuna it has failed."""
        self._storage.set_trial_state_values(self._id_of(trial), optuna.trial.TrialState.FAIL)

    def _id_of(self, trial: optuna.Trial) -> int:
        return self._storage.get_trial_id_from_study_id_trial_number(self._study_id, trial.number)

    def _note(self, fingerprint: str, method: str | None) -> None:
        self._fingerprints.add(fingerprint)
        if fingerprint in self._starts:
            del self._starts[fingerprint]
        elif method in self._published:
            self._published.remove(method)
        elif method is None:
            # what is left of the opening could not be tried
            self._starts.clear()
            self._published.clear()


def directions_of(goal: SizeGoal | None) -> list[StudyDirection]:
    """What Optuna makes of the values of a trial: the score first, and then what is to be small."""
    return [StudyDirection.MAXIMIZE] if goal is None else [StudyDirection.MAXIMIZE, StudyDirection.MINIMIZE]


def values_of(trial: TrialRecord, goal: SizeGoal | None) -> list[float] | None:
    """The values of a trial for Optuna; None before it is complete."""
    if trial.score is None:
        return None
    return [trial.score] if goal is None else [trial.score, goal.size(trial)]


class _Recorded(FrozenTrial):
    """A trial of which Optuna's storage may keep a copy that shares values and distributions, which never change."""

    def __deepcopy__(self, memo: dict[int, object]) -> "_Recorded":
        copy = object.__new__(_Recorded)
        copy.__dict__.update(
            {name: own.copy() if isinstance(own, dict | list) else own for name, own in vars(self).items()}
        )
        return copy


def _distribution(values: Choice | FloatRange) -> BaseDistribution:
    if isinstance(values, Choice):
        return CategoricalDistribution(values.choices)
    return FloatDistribution(values.low, values.high, log=values.log)
