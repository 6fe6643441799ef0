"""Export of a study as an Optuna database, for Optuna and its dashboard."""

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import optuna
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial

from search_space.codec import configuration_to_json
from studies.analysis.ranks import ranking_of
from studies.errors import StudiesError
from studies.ledger.ledger import Ledger
from studies.records import StudyRecord, TrialState
from studies.search.optuna_history import STATES, complete_parameters, directions_of, distributions, frozen_trial
from studies.search.optuna_logging import quiet_optuna
from studies.study_file.recorded_specification import recorded_space, recorded_specification
from trial_runner.files import check_is_new, whole_file

_STATES = {**STATES, TrialState.QUEUED: optuna.trial.TrialState.WAITING}


_OF_STUDY = ("metric", "backbone", "backbone_parameters", "budget_parameters", "seed")
_OF_TRIAL = (
    "description",
    "origin",
    "method",
    "reason",
    "seed",
    "attention_share",
    "stored_parameters",
    "extra_flops",
    "trained_parameters",
    "head_parameters",
)


def export_optuna(ledger: Ledger, study: str, file: Path) -> int:
    """Write all trials of a study to a new SQLite file under the study's name.

    States, parameters, intermediate values and scores are Optuna's; other fields are user attributes.

    Args:
        ledger: Ledger of the study.
        study: Name of the study.
        file: File that must not exist.

    Returns:
        Number of trials.

    Raises:
        StudiesError: If there is no such study, or the file cannot be written.
        RunnerError: If the file exists.
    """
    record = ledger.study(study)
    check_is_new(file)
    trials = list(_frozen_trials(ledger, record))
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(file) as place, quiet_optuna():
            place.touch()  # SQLite would create it with another mode
            _write(ledger, record, trials, place)
            check_is_new(file)
    except OSError as error:
        raise StudiesError(f"cannot write the Optuna database {file}: {error}. Choose another file.") from error
    return len(trials)


def optuna_study(ledger: Ledger, name: str) -> optuna.Study:
    """Return all trials of a study as an Optuna study in memory.

    Raises:
        UnknownStudyError: If there is no study of that name.
    """
    record = ledger.study(name)
    trials = list(_frozen_trials(ledger, record))
    with quiet_optuna():
        return _filled(ledger, record, trials, storage=None)


def _write(ledger: Ledger, record: StudyRecord, trials: Sequence[FrozenTrial], file: Path) -> None:
    storage = RDBStorage(f"sqlite:///{file}")
    try:
        _filled(ledger, record, trials, storage)
    finally:
        storage.remove_session()
        storage.engine.dispose()


def _filled(
    ledger: Ledger, record: StudyRecord, trials: Sequence[FrozenTrial], storage: RDBStorage | None
) -> optuna.Study:
    best = ranking_of(ledger, record).best
    goal = recorded_specification(record).goal(record.budget_parameters)
    study = optuna.create_study(storage=storage, study_name=record.name, directions=directions_of(goal))
    names = [record.metric] if goal is None else [record.metric, goal.objective.value]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study.set_metric_names(names)
    if goal is not None:
        study.set_user_attr("values", names)
    # Optuna's best trial has the highest single score; this is the leaderboard's
    found = {"specification": dict(record.specification), "best_trial_by_estimate": best.number if best else None}
    for name, value in ({name: getattr(record, name) for name in _OF_STUDY} | found).items():
        study.set_user_attr(name, value)
    study.add_trials(trials)
    return study


def _frozen_trials(ledger: Ledger, record: StudyRecord) -> Iterator[FrozenTrial]:
    """Return every trial with its state and its user attributes.

    A published method has all its parameters of the space, since learning rates alone say little about importance.
    """
    goal = recorded_specification(record).goal(record.budget_parameters)
    space, readings = recorded_space(record), ledger.readings_by_trial(record.id)
    spaces = distributions(space)
    for trial in ledger.trials(record.id):
        path = None if trial.method is None else complete_parameters(space, trial)
        frozen = frozen_trial(trial, readings.get(trial.number, ()), path or trial.proposal, spaces, goal)
        frozen.state = _STATES[trial.state]
        frozen.datetime_start, frozen.datetime_complete = trial.created_at, trial.ended_at
        frozen.user_attrs = {name: getattr(trial, name) for name in _OF_TRIAL}
        frozen.user_attrs["configuration"] = configuration_to_json(trial.configuration)
        if goal is not None:
            frozen.user_attrs["readings"] = {str(one.step): one.score for one in readings.get(trial.number, ())}
        yield frozen
