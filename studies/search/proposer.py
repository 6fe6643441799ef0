"""Proposals of a study: published methods first, then those of an Optuna sampler, one trial at a time.

A proposal is a function of the history of the study and of the trial's number, and nothing else is kept but caches.
Every proposal has a sampler of its own, seeded by the study's seed and that number. So a continued study proposes what
an uninterrupted one would have proposed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from optuna.trial import FrozenTrial

from search_space.errors import BudgetError, InvalidEditError
from search_space.space.space import Candidate, SearchSpace
from studies.history.history import StudyHistory
from studies.objectives import SizeGoal
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
from studies.search.samplers import SAMPLERS, Sampler, sampler_of

MAX_REPEATS = 256
"""Number of duplicate proposals in a row after which a space counts as exhausted; each has another seed."""

MODEL_REPEATS = 8
"""Number of duplicate proposals of the sampler after which proposals are random: a model repeats its favourite."""

_NO_INITIAL_DESIGN = InitialDesign()


class SpaceExhausted(Exception):  # noqa: N818 - not an error: a study that has tried everything is finished
    """All configurations that were found have been tried."""


class Proposer:
    """Proposals of one study: the initial design first, then those of the sampler.

    Attributes:
        space: Search space of the study.
        left_out: Reasons why published methods were left out, by name.
    """

    def __init__(
        self,
        space: SearchSpace,
        *,
        sampler: str | Sampler,
        seed: int,
        initial_design: InitialDesign = _NO_INITIAL_DESIGN,
        goal: SizeGoal | None = None,
    ) -> None:
        """Prepare the proposals of a study.

        Args:
            space: Search space of the study.
            sampler: Sampler, its name in ``SAMPLERS``, or a ``module:Class``.
            seed: Seed of the study.
            initial_design: First trials of the study.
            goal: Size to be minimized beside the score; None for the score alone.

        Raises:
            LaunchError: If there is no sampler of that name.
        """
        self.space = space
        self.left_out: dict[str, str] = {}
        self._goal = goal
        self._sampler = sampler_of(sampler) if isinstance(sampler, str) else sampler
        study = space, seed, initial_design.warm_start, goal
        self._of_proposal, self._random_of_proposal = self._sampler.of(*study), SAMPLERS["random"].of(*study)
        self._design = initial_design
        starts = [space.suggest(start.proposal) for start in initial_design.warm_start.starts]
        self._starts = {candidate.fingerprint: candidate for candidate in starts}
        self._distributions = distributions(space)
        self._first_of_method: dict[str, Candidate | str] = {}
        self._parameters: dict[str, Mapping[str, object] | None] = {}
        self._frozen: dict[int, tuple[TrialRecord, tuple[Reading, ...], FrozenTrial]] = {}

    def propose(self, history: StudyHistory) -> Candidate:
        """Return a candidate for the next trial that was not tried before.

        Raises:
            SpaceExhausted: If ``MAX_REPEATS`` proposals in a row were duplicates, or if there are published methods
                alone.
        """
        candidate = self.next_of_design(history)
        return self.sampled(history) if candidate is None else candidate

    def visible(self, history: StudyHistory) -> list[FrozenTrial]:
        """Return the trials that the sampler receives, in the order of their numbers."""
        return list(self._as_frozen(self._visible(history), history))

    def next_of_design(self, history: StudyHistory) -> Candidate | None:
        """Return the next trial of the initial design; None after its end, or once the search has begun."""
        starts, published = dict(self._starts), list(self._design.published)
        for trial in history:
            if trial.fingerprint in starts:
                del starts[trial.fingerprint]
            elif trial.method in published:
                published.remove(trial.method)
            elif trial.method is None:
                return None
        if starts:
            return next(iter(starts.values()))
        for method in published:
            first = self._published(method)
            if isinstance(first, Candidate) and not history.has_fingerprint(first.fingerprint):
                return first
            self.left_out[method] = first if isinstance(first, str) else "another trial is the same."
        return None

    def _published(self, method: str) -> Candidate | str:
        """Return a published method at the learning rates that are tried first, or the reason why it does not fit."""
        if method not in self._first_of_method:
            rates = self._design.rates(self.space.options.learning_rates)
            try:
                self._first_of_method[method] = self.space.suggest_published(method, rates)
            except (BudgetError, InvalidEditError) as error:
                self._first_of_method[method] = str(error)
        return self._first_of_method[method]

    @quiet_optuna()
    def sampled(self, history: StudyHistory) -> Candidate:
        """Return a new proposal of the sampler; see `propose`."""
        if not self.space.is_searched:
            raise SpaceExhausted("the study has nothing but its published methods.")
        number = len(history)
        states = [one.state for one in self._visible(history)] if self._sampler.startup else []
        is_early = states.count(TrialState.COMPLETE) + states.count(TrialState.PRUNED) < self._sampler.startup
        for retry in range(MAX_REPEATS):
            is_random = is_early or retry >= MODEL_REPEATS
            sampler = (self._random_of_proposal if is_random else self._of_proposal)(history, number, retry)
            storage = ProposalStorage(
                directions_of(self._goal),
                lambda: self._as_frozen(visible_trials(self._visible(history)), history),
                number=number,
            )
            trial = storage.study(sampler).ask()
            candidate = sampler.candidate if isinstance(sampler, FactoredSampler) else None
            candidate = self.space.suggest(trial) if candidate is None else candidate
            if not history.has_fingerprint(candidate.fingerprint):
                return candidate
        raise SpaceExhausted(f"{MAX_REPEATS} proposals in a row had been tried before.")

    def _visible(self, history: StudyHistory) -> list[TrialRecord]:
        """Return the trials that the sampler may receive."""
        sees_published = self._sampler.sees_published or self.space.options.methods
        return [
            one for one in history if one.method is None or (sees_published and self._parameters_of(one) is not None)
        ]

    def _parameters_of(self, trial: TrialRecord) -> Mapping[str, object] | None:
        """Return the parameters with which the space proposes a published method; None if it cannot."""
        if trial.fingerprint not in self._parameters:
            self._parameters[trial.fingerprint] = complete_parameters(self.space, trial)
        return self._parameters[trial.fingerprint]

    def _as_frozen(self, trials: Iterable[TrialRecord], history: StudyHistory) -> Iterator[FrozenTrial]:
        """Yield trials in Optuna's form, reusing those that have not changed since the last proposal."""
        before, self._frozen = self._frozen, {}
        for trial in trials:
            readings, known = history.readings(trial.number), before.get(trial.number)
            if known is None or known[0] is not trial or known[1] is not readings:
                known = trial, readings, self._frozen_trial(trial, readings)
            self._frozen[trial.number] = known
            yield known[2]

    def _frozen_trial(self, trial: TrialRecord, readings: Sequence[Reading]) -> FrozenTrial:
        parameters = trial.proposal if trial.method is None else self._parameters_of(trial) or {}
        # parameters with a single value are not sampled
        parameters = {name: value for name, value in parameters.items() if not self._distributions[name].single()}
        return frozen_trial(trial, readings, parameters, self._distributions, self._goal)
