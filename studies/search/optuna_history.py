"""History of a study in Optuna's form, without a database of Optuna."""

import copy
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.samplers import BaseGASampler, BaseSampler
from optuna.storages import BaseStorage
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial

from search_space.space.points import ATTENTION, FFN
from search_space.space.space import METHOD, SearchSpace
from studies.objectives import SizeGoal
from studies.records import Reading, TrialRecord, TrialState

_NAME, _STUDY = "proposal", 0
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


def complete_parameters(space: SearchSpace, trial: TrialRecord) -> Mapping[str, object] | None:
    """Return the parameters with which a space proposes a trial; None if it cannot."""
    if space.options.methods:
        return trial.proposal
    rates = {ATTENTION: trial.attention_learning_rate, FFN: trial.ffn_learning_rate}
    present = {side: rate for side, rate in rates.items() if rate is not None}
    return space.parameters_of(trial.configuration, peak_lrs=present)


def frozen_trial(
    trial: TrialRecord,
    readings: Sequence[Reading],
    parameters: Mapping[str, object],
    spaces: Mapping[str, BaseDistribution],
    goal: SizeGoal | None,
) -> FrozenTrial:
    """Return a trial in Optuna's form.

    Args:
        trial: Trial of the history.
        readings: Its readings.
        parameters: Visible parameters.
        spaces: Distribution of each parameter, by name.
        goal: Size to be minimized beside the score; None for the score alone.
    """
    size = () if goal is None else (goal.size(trial),)
    return FrozenTrial(
        number=trial.number,
        trial_id=trial.number,
        state=STATES[trial.state],
        value=None,
        values=None if trial.score is None else (trial.score, *size),
        datetime_start=_LONG_AGO,
        datetime_complete=_LONG_AGO if trial.state.is_terminal else None,
        params=dict(parameters),
        distributions={name: spaces[name] for name in parameters},
        user_attrs={} if trial.method is None else {METHOD: trial.method},
        system_attrs={},
        # Optuna supports no intermediate values with several objectives
        intermediate_values={one.step: one.score for one in readings} if goal is None else {},
    )


def visible_trials(trials: Sequence[TrialRecord]) -> list[TrialRecord]:
    """Return the trials that a sampler receives.

    These are all while few have a result, then the best, the newest and those that have not ended.
    """
    with_result = (TrialState.COMPLETE, TrialState.PRUNED)
    done = [place for place, one in enumerate(trials) if one.state in with_result]
    if len(done) <= LARGEST:
        return list(trials)
    scores = {place: score for place in done if (score := trials[place].score) is not None}
    best = sorted(scores, key=lambda place: (-scores[place], place))[:BEST]
    kept = {*best, *done[BEST - LARGEST :]}
    return [one for place, one in enumerate(trials) if place in kept or not one.state.is_terminal]


def _refuse(storage: object, *_: object, **__: object) -> Any:
    """Refuse a call that no sampler makes."""
    raise NotImplementedError("the storage of one proposal neither has other studies nor ends trials.")


class ProposalStorage(BaseStorage):
    """Storage of one proposal: the trials so far and the new one.

    Writes of a sampler last for this proposal alone, so that a continued study proposes the same.
    """

    create_new_study = delete_study = get_all_studies = _refuse
    set_trial_state_values = set_trial_intermediate_value = _refuse

    def __init__(
        self, directions: Sequence[StudyDirection], trials: Callable[[], Iterable[FrozenTrial]], *, number: int
    ) -> None:
        """Start before the new trial exists.

        Args:
            directions: Directions of the values of a trial.
            trials: Function that returns the trials so far in the order of their numbers; called when a sampler reads
                them.
            number: Number of the new trial.
        """
        self._directions = list(directions)
        self._trials = trials
        self._frozen: list[FrozenTrial] | None = None
        self._number = number
        self._new_trial: FrozenTrial | None = None
        self._user_attrs: dict[str, Any] = {}
        self._system_attrs: dict[str, Any] = {}

    def study(self, sampler: BaseSampler) -> Study:
        """Return the Optuna study of one proposal."""
        study = Study(_NAME, self, sampler)
        if isinstance(sampler, BaseGASampler) and sampler.population_size:
            complete = [one for one in self._all() if one.state is optuna.trial.TrialState.COMPLETE]
            if complete:
                sampler.get_trial_generation(study, complete[0])  # it stores the generation under its key
                (key,) = complete[0].system_attrs
                for place, trial in enumerate(complete):
                    trial.system_attrs[key] = place // sampler.population_size
        return study

    # ---- the study

    def get_study_id_from_name(self, study_name: str) -> int:
        """Return the key of the only study."""
        return _STUDY

    def get_study_name_from_id(self, study_id: int) -> str:
        """Return the name of the only study."""
        return _NAME

    def get_study_directions(self, study_id: int) -> list[StudyDirection]:
        """Return the directions of the values of a trial."""
        return self._directions

    def get_study_user_attrs(self, study_id: int) -> dict[str, Any]:
        """Return the attributes that the sampler has stored during this proposal."""
        return self._user_attrs

    def get_study_system_attrs(self, study_id: int) -> dict[str, Any]:
        """Return the attributes that the sampler has stored during this proposal."""
        return self._system_attrs

    def set_study_user_attr(self, study_id: int, key: str, value: Any) -> None:
        """Store an attribute for this proposal."""
        self._user_attrs[key] = value

    def set_study_system_attr(self, study_id: int, key: str, value: Any) -> None:
        """Store an attribute for this proposal."""
        self._system_attrs[key] = value

    # ---- its trials

    def create_new_trial(self, study_id: int, template_trial: FrozenTrial | None = None) -> int:
        """Create the new trial."""
        running = optuna.trial.TrialState.RUNNING
        self._new_trial = FrozenTrial(
            number=self._number, trial_id=self._number, state=running, value=None, datetime_start=_LONG_AGO,
            datetime_complete=None, params={}, distributions={}, user_attrs={}, system_attrs={}, intermediate_values={},
        )  # fmt: skip
        return self._number

    def get_trial(self, trial_id: int) -> FrozenTrial:
        """Return the new trial, or one of those so far."""
        if self._new_trial is not None and trial_id == self._number:
            return self._new_trial
        return next(one for one in self._all() if one.number == trial_id)

    def get_all_trials(
        self, study_id: int, deepcopy: bool = True, states: Container[optuna.trial.TrialState] | None = None
    ) -> list[FrozenTrial]:
        """Return the trials so far and the new one."""
        if states == (optuna.trial.TrialState.WAITING,):
            return []
        trials = [*self._all(), *(() if self._new_trial is None else (self._new_trial,))]
        found = trials if states is None else [one for one in trials if one.state in states]
        return copy.deepcopy(found) if deepcopy else found

    def set_trial_param(
        self, trial_id: int, param_name: str, param_value_internal: float, distribution: BaseDistribution
    ) -> None:
        """Store a parameter of the new trial."""
        trial = self.get_trial(trial_id)
        value = distribution.to_external_repr(param_value_internal)
        self._change(params={**trial.params, param_name: value})
        self._change(distributions={**trial.distributions, param_name: distribution})

    def set_trial_user_attr(self, trial_id: int, key: str, value: Any) -> None:
        """Store an attribute of the new trial."""
        self._change(user_attrs={**self.get_trial(trial_id).user_attrs, key: value})

    def set_trial_system_attr(self, trial_id: int, key: str, value: Any) -> None:
        """Store an attribute of the new trial, or of one of those so far."""
        if self._new_trial is not None and trial_id == self._number:
            self._change(system_attrs={**self._new_trial.system_attrs, key: value})
        else:
            self.get_trial(trial_id).system_attrs[key] = value

    def _change(self, **fields: object) -> None:
        """Replace the new trial by one with other fields, since samplers hold the one they were given."""
        trial = copy.copy(self._new_trial)
        for name, value in fields.items():
            setattr(trial, name, value)
        self._new_trial = trial

    def _all(self) -> list[FrozenTrial]:
        if self._frozen is None:
            self._frozen = list(self._trials())
        return self._frozen
