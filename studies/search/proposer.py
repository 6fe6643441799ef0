"""What to try next: published methods first, then what a sampler of Optuna proposes, asked for one trial at a time.

What a sampler is shown is the ledger and nothing else, and every proposal draws from a sampler of its own, seeded from
the study's seed and the trial's number; so a study that was rebuilt proposes what the lost one would have proposed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from optuna.trial import FrozenTrial

from search_space.errors import BudgetError, InvalidEditError
from search_space.space.space import Candidate, SearchSpace
from studies.records import Reading, TrialRecord, TrialState
from studies.search.factored_sampler import FactoredSampler
from studies.search.initial_design import InitialDesign
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
from studies.surrogate.candidate_search import FactoredSearch
from studies.surrogate.observation import Observation
from studies.surrogate.recorded_observations import ObservationModel
from studies.win_probability import WinProbability

MAX_REPEATS = 256
"""How often a proposal that was tried before is asked again, each time with another seed; most of them random."""

MODEL_REPEATS = 8
"""After so many proposals in a row that had been tried, the next ones are random: a model insists on its favourite."""

_ANY_COURSE = ObservationModel()
_NO_OPENING = InitialDesign()


class SpaceExhausted(Exception):  # noqa: N818 - not an error: a study that has tried everything is finished
    """Nothing that has not been tried was found."""


class Proposer:
    """Proposes candidates for one study: published methods first, then whatever the sampler thinks best.

    The number of a trial is its place in the study, so proposals must be recorded in the order they are made.

    Attributes:
        space: What may be proposed.
        trials: All of them as they are now, in the order of their numbers.
        model: What every trial goes through.
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
        self.space = space
        self._sampler = sampler_of(sampler) if isinstance(sampler, str) else sampler
        study = space, seed, opening.lessons, course
        self._ask_sampler, self._ask_random = self._sampler.of(*study), SAMPLERS["random"].of(*study)
        self._study = study
        self._distributions = distributions(space)
        self._paths: dict[int, Mapping[str, object] | None] = {}
        self._shown: dict[int, tuple[Observation, FrozenTrial]] = {}
        self._fingerprints: set[str] = set()
        starts = [space.suggest(start.proposal) for start in opening.lessons.starts]
        self._starts = {candidate.fingerprint: candidate for candidate in starts}
        self._published = list(opening.published)
        self._first_rates = opening.rates(space.options.learning_rates)
        self.model = course
        self.trials: list[Observation] = []
        self.left_out: dict[str, str] = {}

    @property
    def next_number(self) -> int:
        """Number of the next trial."""
        return len(self.trials)

    @property
    def is_opening(self) -> bool:
        """Whether what comes first has not all been proposed."""
        return bool(self._starts or self._published)

    def history(self) -> list[FrozenTrial]:
        """The trials that the sampler may be shown, in the order of their numbers."""
        return list(self._frozen(self._visible()))

    def replay(self, trials: Iterable[TrialRecord], readings: Mapping[int, Sequence[Reading]]) -> None:
        """Tell a new proposer what a ledger holds.

        Args:
            trials: Every trial of the study in number order.
            readings: By number of the trial.
        """
        for trial in trials:
            self.trials.append(self.model.observation(trial, readings.get(trial.number, ())))
            self._note(trial.fingerprint, trial.method)

    def propose(self) -> Candidate:
        """A candidate that was not tried before; from now on it is the next trial, which runs.

        Raises:
            SpaceExhausted: If ``MAX_REPEATS`` proposals in a row had all been tried, or published methods are all
                there is.
        """
        number = self.next_number
        candidate = next(iter(self._starts.values()), None)
        while candidate is None and self._published:
            candidate = self._first(self._published[0])
        if candidate is None and not self.space.trees:
            raise SpaceExhausted("the study has nothing but its published methods.")
        if candidate is None:
            candidate = self._asked(number)
        self.trials.append(Observation.of(candidate, number=number, state=TrialState.RUNNING))
        self._note(candidate.fingerprint, candidate.method)
        return candidate

    def repeat(self, trial: TrialRecord) -> None:
        """Take in a replicate, which is the next trial; from now on it runs."""
        self.trials.append(replace(self.model.observation(trial), state=TrialState.RUNNING))
        self._note(trial.fingerprint, trial.method)

    def report(self, number: int, step: int, score: float, loss: float | None = None) -> None:
        """Tell of a reading of an unfinished trial; of two at the same step the first stands, as in the ledger."""
        trial = self.trials[number]
        if all(one.step != step for one in trial.readings):
            told = self.model.measured(step, score, loss)
            self.trials[number] = replace(trial, readings=(*trial.readings, told))

    def close(self, number: int, state: TrialState, score: float | None = None, *, size: float | None = None) -> None:
        """Tell how a trial ended; ``score`` is given exactly for complete ones, and ``size`` where there is a goal."""
        values = None if score is None else (score, *(() if size is None else (size,)))
        self.trials[number] = replace(self.trials[number], state=state, values=values)

    def win_probabilities(self, numbers: Sequence[int]) -> Mapping[int, WinProbability]:
        """What of some trials is to be expected, whoever proposes; without those of which too little is known."""
        return self._search.win_probabilities(self.trials, numbers)

    @cached_property
    def _search(self) -> FactoredSearch:
        sampler = self._ask_sampler(0, 0)
        return sampler.search if isinstance(sampler, FactoredSampler) else factored_search(*self._study)

    def _first(self, method: str) -> Candidate | None:
        """The first trial of a published method; None if it is left out."""
        try:
            candidate = self.space.suggest_published(method, self._first_rates)
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
        seen = [one.state for one in self._visible()] if self._sampler.startup else []
        is_early = seen.count(TrialState.COMPLETE) + seen.count(TrialState.PRUNED) < self._sampler.startup
        for retry in range(MAX_REPEATS):
            is_random = is_early or retry >= MODEL_REPEATS
            sampler = (self._ask_random if is_random else self._ask_sampler)(number, retry)
            storage = ProposalStorage(
                directions_of(self.model.goal),
                lambda: self._frozen(in_view(self._visible())),
                self.trials,
                number=number,
            )
            candidate = self.space.suggest(storage.study(sampler).ask())
            if candidate.fingerprint not in self._fingerprints:
                return candidate
        raise SpaceExhausted(f"{MAX_REPEATS} proposals in a row had been tried before.")

    def _visible(self) -> list[Observation]:
        """The trials that the sampler may be shown."""
        return [
            one
            for one in self.trials
            if one.method is None or (self._sampler.sees_published and self._path(one) is not None)
        ]

    def _path(self, trial: Observation) -> Mapping[str, object] | None:
        """The parameters with which the space would propose a published method; None if it cannot."""
        if trial.number not in self._paths:
            self._paths[trial.number] = whole_path(self.space, trial)
        return self._paths[trial.number]

    def _frozen(self, trials: Iterable[Observation]) -> Iterator[FrozenTrial]:
        """As Optuna knows them; those that are as they were for the proposal before are not made anew."""
        before, self._shown = self._shown, {}
        for trial in trials:
            known = before.get(trial.number)
            if known is None or known[0] is not trial:
                known = trial, self._made(trial)
            self._shown[trial.number] = known
            yield known[1]

    def _made(self, trial: Observation) -> FrozenTrial:
        seen = trial.proposal if trial.method is None else self._path(trial) or {}
        # what has one value is not asked
        seen = {name: value for name, value in seen.items() if not self._distributions[name].single()}
        return frozen_trial(trial, seen, self._distributions, is_scored=self.model.goal is None)

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
