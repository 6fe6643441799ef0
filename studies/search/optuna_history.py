"""The trials of a study as Optuna's samplers see them, without a database of Optuna's."""

import copy
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from datetime import UTC, datetime

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.samplers import BaseSampler
from optuna.samplers._ga import BaseGASampler
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
"""A replay knows times that others do not, and no proposal may depend on them."""

LARGEST = 1_000
"""Trials with a result, up to which a sampler is shown all."""

BEST = 250
"""The complete trials with the highest scores that stay in view; good for TPE are at most the 25 best."""

STATES: Mapping[TrialState, optuna.trial.TrialState] = {
    TrialState.QUEUED: optuna.trial.TrialState.RUNNING,
    TrialState.RUNNING: optuna.trial.TrialState.RUNNING,
    TrialState.COMPLETE: optuna.trial.TrialState.COMPLETE,
    TrialState.PRUNED: optuna.trial.TrialState.PRUNED,
    TrialState.FAILED: optuna.trial.TrialState.FAIL,
}


def distributions(space: SearchSpace) -> dict[str, BaseDistribution]:
    """The parameters of a space as Optuna knows them."""
    return {
        name: CategoricalDistribution(values)
        if isinstance(values, tuple)
        else FloatDistribution(values.low, values.high, log=values.log)
        for name, values in space.parameters().items()
    }


def directions_of(goal: SizeGoal | None) -> list[StudyDirection]:
    """What Optuna makes of the values of a trial: the score first, and then what is to be small."""
    return [StudyDirection.MAXIMIZE] if goal is None else [StudyDirection.MAXIMIZE, StudyDirection.MINIMIZE]


def whole_path(space: SearchSpace, trial: Observation) -> dict[str, str | float] | None:
    """The parameters with which a space proposes a trial; None if it cannot."""
    rates = {ATTENTION: trial.attention_learning_rate, FFN: trial.ffn_learning_rate}
    known = {side: rate for side, rate in rates.items() if rate is not None}
    return space.parameters_of(trial.configuration, peak_lrs=known)


def frozen_trial(
    trial: Observation, parameters: Mapping[str, object], spaces: Mapping[str, BaseDistribution], *, is_scored: bool
) -> FrozenTrial:
    """A trial as Optuna knows it.

    Args:
        trial: The trial.
        parameters: Those that are to be seen of it.
        spaces: Where each parameter is drawn from, by name.
        is_scored: Whether the score is its only value.
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
        # Optuna knows no readings of several values
        intermediate_values={one.step: one.score for one in trial.readings} if is_scored else {},
    )


def in_view(trials: Sequence[Observation]) -> list[Observation]:
    """The trials that a sampler is shown.

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
    """What a sampler is shown for one proposal: the trials so far, which never change, and the one it is asked for.

    What a sampler writes is kept for this proposal alone, so that a study that is continued proposes the same.

    Attributes:
        observations: The trials so far as the model of the search knows them.
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
        """Begin before the trial is asked for.

        Args:
            directions: Of the values of a trial.
            trials: Gives those so far, in the order of their numbers; it is called when a sampler looks at them.
            observations: Those so far, as the model of the search knows them.
            number: Of the trial that is asked for.
        """
        super().__init__()
        self.create_new_study(directions, _NAME)
        self.observations = observations
        self._trials = trials
        self._known: list[FrozenTrial] | None = None
        self._number = number
        self._asked: FrozenTrial | None = None

    def study(self, sampler: BaseSampler) -> Study:
        """Of Optuna, which asks a sampler."""
        if isinstance(sampler, BaseGASampler) and sampler.population_size:
            complete = (one for one in self._all() if one.state is optuna.trial.TrialState.COMPLETE)
            for place, trial in enumerate(complete):
                trial.system_attrs = {sampler._get_generation_key(): place // sampler.population_size}
        return Study(_NAME, self, sampler)

    def create_new_trial(self, study_id: int, template_trial: FrozenTrial | None = None) -> int:
        """The trial that is asked for."""
        self._asked = optuna.trial.create_trial(state=optuna.trial.TrialState.RUNNING)
        self._asked.number = self._asked._trial_id = self._number
        return self._number

    def set_trial_param(
        self, trial_id: int, param_name: str, param_value_internal: float, distribution: BaseDistribution
    ) -> None:
        """Keep a parameter of the trial that is asked for."""
        trial = copy.copy(self._get_trial(trial_id))
        trial.params = {**trial.params, param_name: distribution.to_external_repr(param_value_internal)}
        trial.distributions = {**trial.distributions, param_name: distribution}
        self._set_trial(trial_id, trial)

    def get_all_trials(
        self, study_id: int, deepcopy: bool = True, states: Container[optuna.trial.TrialState] | None = None
    ) -> list[FrozenTrial]:
        """Those so far, and the one that is asked for."""
        if states == (optuna.trial.TrialState.WAITING,):
            return []
        trials = [*self._all(), *(() if self._asked is None else (self._asked,))]
        found = trials if states is None else [one for one in trials if one.state in states]
        return copy.deepcopy(found) if deepcopy else found

    def _all(self) -> list[FrozenTrial]:
        if self._known is None:
            self._known = list(self._trials())
        return self._known

    def _get_trial(self, trial_id: int) -> FrozenTrial:
        if self._asked is not None and trial_id == self._number:
            return self._asked
        return next(one for one in self._all() if one.number == trial_id)

    def _set_trial(self, trial_id: int, trial: FrozenTrial) -> None:
        self._asked = trial

    def _check_trial_id(self, trial_id: int) -> None:
        """Every number that is asked for is a trial's."""
