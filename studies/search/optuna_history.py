"""History of a study in Optuna's form, without a database of Optuna."""

import copy
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from datetime import UTC, datetime

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.samplers import BaseGASampler, BaseSampler
from optuna.storages import BaseStorage, InMemoryStorage
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial

from search_space.space.points import ATTENTION, FFN
from search_space.space.space import METHOD, SearchSpace
from studies.objectives import SizeGoal
from studies.records import TrialState
from studies.surrogate.observation import Observation

_NAME = "proposal"
_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
"""Start and end time of all trials: proposals must not depend on times, which differ in a replay."""

LARGEST = 1_000
"""Number of trials with a result up to which a sampler receives all."""

BEST = 250
"""Number of complete trials with the highest scores that stay visible; TPE counts at most the best 25 as good."""

STATES: Mapping[TrialState, optuna.trial.TrialState] = {
    TrialState.QUEUED: optuna.trial.TrialState.RUNNING,
    TrialState.RUNNING: optuna.trial.TrialState.RUNNING,
    TrialState.COMPLETE: optuna.trial.TrialState.COMPLETE,
    TrialState.PRUNED: optuna.trial.TrialState.PRUNED,
    TrialState.FAILED: optuna.trial.TrialState.FAIL,
}


def distributions(space: SearchSpace) -> dict[str, BaseDistribution]:
    """Return the parameters of a space as Optuna distributions."""
    return {
        name: CategoricalDistribution(values)
        if isinstance(values, tuple)
        else FloatDistribution(values.low, values.high, log=values.log)
        for name, values in space.parameters().items()
    }


def directions_of(goal: SizeGoal | None) -> list[StudyDirection]:
    """Return the directions of the values of a trial: the score, then the size if there is a size goal."""
    return [StudyDirection.MAXIMIZE] if goal is None else [StudyDirection.MAXIMIZE, StudyDirection.MINIMIZE]


def complete_parameters(space: SearchSpace, trial: Observation) -> dict[str, str | float] | None:
    """Return the parameters with which a space proposes a trial; None if it cannot."""
    rates = {ATTENTION: trial.attention_learning_rate, FFN: trial.ffn_learning_rate}
    present = {side: rate for side, rate in rates.items() if rate is not None}
    return space.parameters_of(trial.configuration, peak_lrs=present)


def frozen_trial(
    trial: Observation, parameters: Mapping[str, object], spaces: Mapping[str, BaseDistribution], *, is_scored: bool
) -> FrozenTrial:
    """Return a trial in Optuna's form.

    Args:
        trial: Observation of the trial.
        parameters: Visible parameters.
        spaces: Distribution of each parameter, by name.
        is_scored: Whether the score is the only value.
    """
    return FrozenTrial(
        number=trial.number,
        trial_id=trial.number,
        state=STATES[trial.state],
        value=None,
        values=trial.values,
        datetime_start=_LONG_AGO,
        datetime_complete=_LONG_AGO if trial.state.is_terminal else None,
        params=dict(parameters),
        distributions={name: spaces[name] for name in parameters},
        user_attrs={} if trial.method is None else {METHOD: trial.method},
        system_attrs={},
        # Optuna supports no intermediate values with several objectives
        intermediate_values={one.step: one.score for one in trial.readings} if is_scored else {},
    )


def visible_trials(trials: Sequence[Observation]) -> list[Observation]:
    """Return the trials that a sampler receives.

    These are all while few have a result, then the best, the newest and those that have not ended.
    """
    with_result = (TrialState.COMPLETE, TrialState.PRUNED)
    done = [place for place, one in enumerate(trials) if one.state in with_result]
    if len(done) <= LARGEST:
        return list(trials)
    scores = {place: one.values[0] for place in done if (one := trials[place]).values}
    best = sorted(scores, key=lambda place: (-scores[place], place))[:BEST]
    kept = {*best, *done[BEST - LARGEST :]}
    return [one for place, one in enumerate(trials) if place in kept or not one.state.is_terminal]


class ProposalStorage(InMemoryStorage):
    """Read-only storage for one proposal: the trials so far and the new one.

    Writes of a sampler last for this proposal alone, so that a continued study proposes the same.

    Attributes:
        observations: Trials so far as the surrogate receives them.
    """

    get_best_trial = BaseStorage.get_best_trial

    def __init__(
        self,
        directions: Sequence[StudyDirection],
        trials: Callable[[], Iterable[FrozenTrial]],
        observations: Sequence[Observation],
        *,
        number: int,
    ) -> None:
        """Start before the new trial exists.

        Args:
            directions: Directions of the values of a trial.
            trials: Function that returns the trials so far in the order of their numbers; called when a sampler reads
                them.
            observations: Trials so far as the surrogate receives them.
            number: Number of the new trial.
        """
        super().__init__()
        self.create_new_study(directions, _NAME)
        self.observations = observations
        self._trials = trials
        self._frozen: list[FrozenTrial] | None = None
        self._number = number
        self._new_trial: FrozenTrial | None = None

    def study(self, sampler: BaseSampler) -> Study:
        """Return the Optuna study of one proposal."""
        if isinstance(sampler, BaseGASampler) and sampler.population_size:
            complete = (one for one in self._all() if one.state is optuna.trial.TrialState.COMPLETE)
            for place, trial in enumerate(complete):
                trial.system_attrs = {sampler._get_generation_key(): place // sampler.population_size}
        return Study(_NAME, self, sampler)

    def create_new_trial(self, study_id: int, template_trial: FrozenTrial | None = None) -> int:
        """Create the new trial."""
        self._new_trial = optuna.trial.create_trial(state=optuna.trial.TrialState.RUNNING)
        self._new_trial.number = self._new_trial._trial_id = self._number
        return self._number

    def set_trial_param(
        self, trial_id: int, param_name: str, param_value_internal: float, distribution: BaseDistribution
    ) -> None:
        """Store a parameter of the new trial."""
        trial = copy.copy(self._get_trial(trial_id))
        trial.params = {**trial.params, param_name: distribution.to_external_repr(param_value_internal)}
        trial.distributions = {**trial.distributions, param_name: distribution}
        self._set_trial(trial_id, trial)

    def get_all_trials(
        self, study_id: int, deepcopy: bool = True, states: Container[optuna.trial.TrialState] | None = None
    ) -> list[FrozenTrial]:
        """Return the trials so far and the new one."""
        if states == (optuna.trial.TrialState.WAITING,):
            return []
        trials = [*self._all(), *(() if self._new_trial is None else (self._new_trial,))]
        found = trials if states is None else [one for one in trials if one.state in states]
        return copy.deepcopy(found) if deepcopy else found

    def _all(self) -> list[FrozenTrial]:
        if self._frozen is None:
            self._frozen = list(self._trials())
        return self._frozen

    def _get_trial(self, trial_id: int) -> FrozenTrial:
        if self._new_trial is not None and trial_id == self._number:
            return self._new_trial
        return next(one for one in self._all() if one.number == trial_id)

    def _set_trial(self, trial_id: int, trial: FrozenTrial) -> None:
        self._new_trial = trial

    def _check_trial_id(self, trial_id: int) -> None:
        """Accept every trial number."""
