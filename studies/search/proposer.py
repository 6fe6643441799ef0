"""What to try next: published methods first, then what a sampler of Optuna proposes, asked for one trial at a time.

What a sampler is shown is the ledger and nothing else, and every proposal draws from a sampler of its own, seeded from
the study's seed and the trial's number; so a study that was rebuilt proposes what the lost one would have proposed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from optuna.trial import FrozenTrial

from search_space.errors import BudgetError, InvalidEditError
from search_space.space.random_draw import GivenTrial
from search_space.space.space import Candidate, SearchSpace
from studies.records import NewTrial, ReadingRecord, TrialRecord, TrialState
from studies.search.factored_sampler import FactoredSampler
from studies.search.initial_design import InitialDesign
from studies.search.observation_log import ObservationLog, ObservationModel
from studies.search.optuna_history import (
    ProposalStorage,
    directions_of,
    distributions,
    frozen_trial,
    in_view,
    whole_path,
)
from studies.search.optuna_logging import quiet_optuna
from studies.search.samplers import SAMPLERS, Sampler, factored_search, sampler_of
from studies.surrogate.win_probabilities import WinProbabilities
from studies.win_probability import WinProbability

MAX_REPEATS = 256
"""How often a proposal that was tried before is asked again, each time with another seed; most of them random."""

MODEL_REPEATS = 8
"""After so many proposals in a row that had been tried, the next ones are random: a model insists on its favourite."""

_ANY_COURSE = ObservationModel()
_NO_OPENING = InitialDesign()


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

    Attributes:
        chronicle: All that is known of the trials.
        goal: What of a trial is to be small; None where only the score counts.
        left_out: By name of a published method why it was not tried.
    """

    def __init__(
        self,
        space: SearchSpace,
        *,
        sampler: str | Sampler,
        seed: int,
        opening: InitialDesign = _NO_OPENING,
        course: ObservationModel = _ANY_COURSE,
    ) -> None:
        """Begin with an empty history.

        Args:
            space: What may be proposed.
            sampler: Who proposes; a name is that of one of ``SAMPLERS``, or a ``module:Class``.
            seed: Of the study.
            opening: What comes first.
            course: Of every trial.

        Raises:
            LaunchError: If there is no sampler of that name.
        """
        self._space = space
        self._sampler = sampler_of(sampler) if isinstance(sampler, str) else sampler
        study = space, seed, opening.lessons, course
        self._ask_sampler, self._ask_random = self._sampler.of(*study), SAMPLERS["random"].of(*study)
        self._study = study
        self.goal = course.goal
        self._distributions = distributions(space)
        self._paths: dict[int, Mapping[str, object] | None] = {}
        self._fingerprints: set[str] = set()
        starts = [space.suggest(GivenTrial(start.proposal)) for start in opening.lessons.starts]
        self._starts = {candidate.fingerprint: candidate for candidate in starts}
        self._published = list(opening.published)
        self._first_rates = opening.rates(space.options.learning_rates)
        self.chronicle = ObservationLog(course)
        self.left_out: dict[str, str] = {}

    @property
    def next_number(self) -> int:
        """Number of the next trial."""
        return len(self.chronicle.known)

    @property
    def is_opening(self) -> bool:
        """Whether what comes first has not all been proposed."""
        return bool(self._starts or self._published)

    def history(self) -> list[FrozenTrial]:
        """The trials that the sampler may be shown, in the order of their numbers."""
        return list(self._frozen(self._visible()))

    def replay(self, trials: Iterable[TrialRecord], readings: Mapping[int, Sequence[ReadingRecord]]) -> None:
        """Tell a new proposer what a ledger holds.

        Args:
            trials: Every trial of the study in number order.
            readings: By number of the trial.
        """
        for trial in trials:
            self.chronicle.replay(trial, readings.get(trial.number, ()))
            self._note(trial.fingerprint, trial.method)

    def propose(self) -> Proposal:
        """A candidate that was not tried before.

        Raises:
            SpaceExhausted: If ``MAX_REPEATS`` proposals in a row had all been tried, or published methods are all
                there is.
        """
        number = self.next_number
        candidate = next(iter(self._starts.values()), None)
        while candidate is None and self._published:
            candidate = self._first(self._published[0])
        if candidate is None and not self._space.trees:
            raise SpaceExhausted("the study has nothing but its published methods.")
        if candidate is None:
            candidate = self._asked(number)
        self.chronicle.take(candidate)
        self._note(candidate.fingerprint, candidate.method)
        return Proposal(number=number, candidate=candidate)

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
        self.replay([running], {})

    def report(self, number: int, step: int, score: float, loss: float | None = None) -> None:
        """Tell of a reading of an unfinished trial; of its loss samplers of Optuna's hear nothing."""
        self.chronicle.report(number, step, score, loss)

    def close(self, number: int, state: TrialState, score: float | None = None, *, size: float | None = None) -> None:
        """Tell how a trial ended; ``score`` is given exactly for complete ones, and ``size`` where there is a goal."""
        values = None if score is None else [score, *(() if size is None else (size,))]
        self.chronicle.close(number, state, values)

    def prospects(self, numbers: Sequence[int]) -> Mapping[int, WinProbability]:
        """What of some trials is to be expected, whoever proposes; without those of which too little is known."""
        return self._prospects.of(self.chronicle.trials, numbers)

    @cached_property
    def _prospects(self) -> WinProbabilities:
        sampler = self._ask_sampler(0, 0)
        search = sampler.search if isinstance(sampler, FactoredSampler) else factored_search(*self._study)
        return search.prospects

    def _first(self, method: str) -> Candidate | None:
        """The first trial of a published method; None if it is left out."""
        try:
            candidate = self._space.suggest_published(method, GivenTrial(self._first_rates))
        except (BudgetError, InvalidEditError) as error:
            self.left_out[method] = str(error)
        else:
            if candidate.fingerprint not in self._fingerprints:
                return candidate
            self.left_out[method] = "another trial is the same."
        self._published.remove(method)
        return None

    @quiet_optuna()
    def _asked(self, number: int) -> Candidate:
        """What a sampler proposes."""
        visible = self._visible()
        known = self.chronicle.known
        results = sum(known[one].state in (TrialState.COMPLETE, TrialState.PRUNED) for one in visible)
        shown = [visible[place] for place in in_view([known[one] for one in visible])]
        for retry in range(MAX_REPEATS):
            is_random = results < self._sampler.startup or retry >= MODEL_REPEATS
            sampler = (self._ask_random if is_random else self._ask_sampler)(number, retry)
            storage = ProposalStorage(
                directions_of(self.goal),
                lambda: self._frozen(shown),
                lambda: self.chronicle.trials,
                number=number,
            )
            candidate = self._space.suggest(storage.study(sampler).ask())
            if candidate.fingerprint not in self._fingerprints:
                return candidate
        raise SpaceExhausted(f"{MAX_REPEATS} proposals in a row had been tried before.")

    def _visible(self) -> list[int]:
        """Numbers of the trials that the sampler may be shown."""
        return [
            number
            for number, one in enumerate(self.chronicle.known)
            if one.method is None or (self._sampler.sees_published and self._path(number) is not None)
        ]

    def _path(self, number: int) -> Mapping[str, object] | None:
        """The parameters with which the space would propose a published method; None if it cannot."""
        if number not in self._paths:
            self._paths[number] = whole_path(self._space, self.chronicle.trials[number])
        return self._paths[number]

    def _frozen(self, numbers: Iterable[int]) -> Iterator[FrozenTrial]:
        for number in numbers:
            known = self.chronicle.known[number]
            seen = known.parameters if known.method is None else self._path(number) or {}
            # what has one value is not asked
            seen = {name: value for name, value in seen.items() if not self._distributions[name].single()}
            yield frozen_trial(known, number, seen, self._distributions, is_scored=self.goal is None)

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
