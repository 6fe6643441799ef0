"""Proposals of a study: published methods first, then those of an Optuna sampler, one trial at a time.

A sampler receives the history of the ledger alone. Every proposal has a sampler of its own, seeded by the study's seed
and the trial's number. So a rebuilt study proposes what the lost one would have proposed.
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
    complete_parameters,
    directions_of,
    distributions,
    frozen_trial,
    visible_trials,
)
from studies.search.optuna_logging import quiet_optuna
from studies.search.samplers import SAMPLERS, Sampler, factored_search, sampler_of
from studies.surrogate.candidate_search import FactoredSearch
from studies.surrogate.observation import Observation
from studies.surrogate.recorded_observations import ObservationModel
from studies.win_probability import WinProbability

MAX_REPEATS = 256
"""Number of duplicate proposals in a row after which a space counts as exhausted; each has another seed."""

MODEL_REPEATS = 8
"""Number of duplicate proposals of the sampler after which proposals are random: a model repeats its favourite."""

_DEFAULT_MODEL = ObservationModel()
_NO_INITIAL_DESIGN = InitialDesign()


class SpaceExhausted(Exception):  # noqa: N818 - not an error: a study that has tried everything is finished
    """All configurations that were found have been tried."""


class Proposer:
    """Proposals of one study: the initial design first, then those of the sampler.

    The number of a trial is its index in the study, so proposals must be recorded in the order they are made.

    Attributes:
        space: Search space of the study.
        trials: Observations of all trials in their current state, in the order of their numbers.
        model: Observation model of the study.
        left_out: Reasons why published methods were left out, by name.
    """

    def __init__(
        self,
        space: SearchSpace,
        *,
        sampler: str | Sampler,
        seed: int,
        initial_design: InitialDesign = _NO_INITIAL_DESIGN,
        model: ObservationModel = _DEFAULT_MODEL,
    ) -> None:
        """Start with an empty history.

        Args:
            space: Search space of the study.
            sampler: Sampler, its name in ``SAMPLERS``, or a ``module:Class``.
            seed: Seed of the study.
            initial_design: First trials of the study.
            model: Observation model of the study.

        Raises:
            LaunchError: If there is no sampler of that name.
        """
        self.space = space
        self._sampler = sampler_of(sampler) if isinstance(sampler, str) else sampler
        study = space, seed, initial_design.warm_start, model
        self._sampler_of_proposal, self._random_of_proposal = self._sampler.of(*study), SAMPLERS["random"].of(*study)
        self._study = study
        self._distributions = distributions(space)
        self._parameters: dict[int, Mapping[str, object] | None] = {}
        self._frozen_cache: dict[int, tuple[Observation, FrozenTrial]] = {}
        self._fingerprints: set[str] = set()
        starts = [space.suggest(start.proposal) for start in initial_design.warm_start.starts]
        self._starts = {candidate.fingerprint: candidate for candidate in starts}
        self._published = list(initial_design.published)
        self._first_rates = initial_design.rates(space.options.learning_rates)
        self.model = model
        self.trials: list[Observation] = []
        self._last_end = 0.0
        self.left_out: dict[str, str] = {}

    @property
    def next_number(self) -> int:
        """Number of the next trial."""
        return len(self.trials)

    @property
    def is_initial_design(self) -> bool:
        """Whether the initial design has not been proposed completely."""
        return bool(self._starts or self._published)

    def history(self) -> list[FrozenTrial]:
        """Return the trials that the sampler receives, in the order of their numbers."""
        return list(self._frozen(self._visible()))

    def replay(self, trials: Iterable[TrialRecord], readings: Mapping[int, Sequence[Reading]]) -> None:
        """Load the trials of a ledger into a new proposer.

        Args:
            trials: All trials of the study, in the order of their numbers.
            readings: Readings by trial number.
        """
        for trial in trials:
            self.trials.append(self.model.observation(trial, readings.get(trial.number, ())))
            self._mark_tried(trial.fingerprint, trial.method)
        self._last_end = max((one.ended_at for one in self.trials), default=0.0)

    def propose(self) -> Candidate:
        """Return a candidate that was not tried before and record it as the next running trial.

        Raises:
            SpaceExhausted: If ``MAX_REPEATS`` proposals in a row were duplicates, or if there are published methods
                alone.
        """
        number = self.next_number
        candidate = next(iter(self._starts.values()), None)
        while candidate is None and self._published:
            candidate = self._first_of_method(self._published[0])
        if candidate is None and not self.space.trees:
            raise SpaceExhausted("the study has nothing but its published methods.")
        if candidate is None:
            candidate = self._proposed(number)
        self.trials.append(Observation.of(candidate, number=number, state=TrialState.RUNNING))
        self._mark_tried(candidate.fingerprint, candidate.method)
        return candidate

    def add_replicate(self, trial: TrialRecord) -> None:
        """Record a replicate as the next running trial."""
        self.trials.append(replace(self.model.observation(trial), state=TrialState.RUNNING))
        self._mark_tried(trial.fingerprint, trial.method)

    def add_reading(self, number: int, step: int, score: float, loss: float | None = None) -> None:
        """Record a reading of an unfinished trial; ignore a second one at the same step."""
        trial = self.trials[number]
        if all(one.step != step for one in trial.readings):
            measured = self.model.measured(step, score, loss)
            self.trials[number] = replace(trial, readings=(*trial.readings, measured))

    def end_trial(
        self, number: int, state: TrialState, score: float | None = None, *, size: float | None = None
    ) -> None:
        """Record the final state; ``score`` of complete trials, and ``size`` of studies with a size goal.

        Trials must end in the order of the ledger's end times, since the surrogate reads them in that order.
        """
        values = None if score is None else (score, *(() if size is None else (size,)))
        self._last_end += 1
        self.trials[number] = replace(self.trials[number], state=state, values=values, ended_at=self._last_end)

    def win_probabilities(self, numbers: Sequence[int]) -> Mapping[int, WinProbability]:
        """Return the probability that each trial beats its rival; trials with too little data are left out."""
        return self._search.win_probabilities(self.trials, numbers)

    @cached_property
    def _search(self) -> FactoredSearch:
        sampler = self._sampler_of_proposal(0, 0)
        return sampler.search if isinstance(sampler, FactoredSampler) else factored_search(*self._study)

    def _first_of_method(self, method: str) -> Candidate | None:
        """Return the first trial of a published method; None if it is left out."""
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
    def _proposed(self, number: int) -> Candidate:
        """Return a new proposal of the sampler."""
        states = [one.state for one in self._visible()] if self._sampler.startup else []
        is_early = states.count(TrialState.COMPLETE) + states.count(TrialState.PRUNED) < self._sampler.startup
        for retry in range(MAX_REPEATS):
            is_random = is_early or retry >= MODEL_REPEATS
            sampler = (self._random_of_proposal if is_random else self._sampler_of_proposal)(number, retry)
            storage = ProposalStorage(
                directions_of(self.model.goal),
                lambda: self._frozen(visible_trials(self._visible())),
                self.trials,
                number=number,
            )
            candidate = self.space.suggest(storage.study(sampler).ask())
            if candidate.fingerprint not in self._fingerprints:
                return candidate
        raise SpaceExhausted(f"{MAX_REPEATS} proposals in a row had been tried before.")

    def _visible(self) -> list[Observation]:
        """Return the trials that the sampler may receive."""
        return [
            one
            for one in self.trials
            if one.method is None or (self._sampler.sees_published and self._parameters_of(one) is not None)
        ]

    def _parameters_of(self, trial: Observation) -> Mapping[str, object] | None:
        """Return the parameters with which the space proposes a published method; None if it cannot."""
        if trial.number not in self._parameters:
            self._parameters[trial.number] = complete_parameters(self.space, trial)
        return self._parameters[trial.number]

    def _frozen(self, trials: Iterable[Observation]) -> Iterator[FrozenTrial]:
        """Yield trials in Optuna's form, reusing those that have not changed since the last proposal."""
        before, self._frozen_cache = self._frozen_cache, {}
        for trial in trials:
            known = before.get(trial.number)
            if known is None or known[0] is not trial:
                known = trial, self._frozen_trial(trial)
            self._frozen_cache[trial.number] = known
            yield known[1]

    def _frozen_trial(self, trial: Observation) -> FrozenTrial:
        parameters = trial.proposal if trial.method is None else self._parameters_of(trial) or {}
        # parameters with a single value are not sampled
        parameters = {name: value for name, value in parameters.items() if not self._distributions[name].single()}
        return frozen_trial(trial, parameters, self._distributions, is_scored=self.model.goal is None)

    def _mark_tried(self, fingerprint: str, method: str | None) -> None:
        self._fingerprints.add(fingerprint)
        if fingerprint in self._starts:
            del self._starts[fingerprint]
        elif method in self._published:
            self._published.remove(method)
        elif method is None:
            # the remaining initial design could not be tried
            self._starts.clear()
            self._published.clear()
