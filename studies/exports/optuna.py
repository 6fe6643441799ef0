"""A study as a database of Optuna, which stock Optuna and its dashboard open."""

import json
import warnings
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, distribution_to_json
from optuna.storages import RDBStorage
from optuna.storages._rdb import models
from optuna.trial import FrozenTrial
from sqlalchemy import insert

from search_space.codec import configuration_to_json
from studies.analysis.ranks import ranking_of
from studies.errors import StudiesError, WishError
from studies.ledger.ledger import Ledger
from studies.records import StudyRecord, TrialState
from studies.search.optuna_history import STATES, directions_of, distributions, frozen_trial, whole_path
from studies.search.optuna_logging import quiet_optuna
from studies.study_file.recorded_specification import recorded_space, recorded_specification
from studies.surrogate.recorded_observations import ObservationModel
from trial_runner.files import whole_file

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
BATCH = 1000
Rows = dict[Any, list[dict[str, Any]]]


def export_optuna(ledger: Ledger, study: str, file: Path) -> int:
    """Write all trials of a study to a new SQLite file, under the study's own name.

    States, parameters, intermediate values and scores are Optuna's; what else is known stands in user attributes.

    Args:
        file: Must not exist.

    Returns:
        How many trials there are.

    Raises:
        StudiesError: If there is no such study, or the file is there already or cannot be written.
    """
    record = ledger.study(study)
    _check_is_new(file)
    trials = list(_frozen_trials(ledger, record))
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(file) as place, quiet_optuna():
            place.touch()  # SQLite would make it with a mode of its own
            _write(ledger, record, trials, place)
            _check_is_new(file)
    except OSError as error:
        raise StudiesError(f"an Optuna database must be written; got: {error}. Choose another place.") from error
    return len(trials)


def optuna_study(ledger: Ledger, name: str) -> optuna.Study:
    """All trials of a study as a study in Optuna's memory.

    Raises:
        UnknownStudyError: If there is no study of that name.
    """
    record = ledger.study(name)
    trials = list(_frozen_trials(ledger, record))
    with quiet_optuna():
        return _filled(ledger, record, trials, storage=None)


def _check_is_new(file: Path) -> None:
    if file.exists() or file.is_symlink():
        raise WishError(f"an export must go to a new place; {file} is there already. Choose another or remove it.")


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
    # Optuna's own best trial goes by one score; this is the one of the leaderboard
    found = {"specification": dict(record.specification), "best_trial_by_estimate": best.number if best else None}
    for name, value in ({name: getattr(record, name) for name in _OF_STUDY} | found).items():
        study.set_user_attr(name, value)
    if storage is None:
        study.add_trials(trials)
    else:
        add_trials(storage, storage.get_study_id_from_name(record.name), trials)
    return study


def _frozen_trials(ledger: Ledger, record: StudyRecord) -> Iterator[FrozenTrial]:
    """Every trial with its own state, and all that Optuna has no place for.

    A published method has its whole path through the space: of rates alone nothing of importance can be learned.
    """
    goal = recorded_specification(record).goal(record.budget_parameters)
    space, readings = recorded_space(record), ledger.readings_by_trial(record.id)
    spaces, model = distributions(space), ObservationModel(goal=goal)
    for trial in ledger.trials(record.id):
        seen = model.observation(trial, readings.get(trial.number, ()))
        path = None if trial.method is None else whole_path(space, seen)
        frozen = frozen_trial(seen, path or trial.proposal, spaces, is_scored=goal is None)
        frozen.state = _STATES[trial.state]
        frozen.datetime_start, frozen.datetime_complete = trial.created_at, trial.ended_at
        frozen.user_attrs = {name: getattr(trial, name) for name in _OF_TRIAL}
        frozen.user_attrs["configuration"] = configuration_to_json(trial.configuration)
        if goal is not None:
            frozen.user_attrs["readings"] = {str(one.step): one.score for one in readings.get(trial.number, ())}
        yield frozen


def add_trials(storage: RDBStorage, study_id: int, trials: Sequence[FrozenTrial]) -> None:
    """Write the trials of a study that has none, as Optuna would."""
    texts: dict[BaseDistribution, str] = {}
    with storage.engine.begin() as connection:
        for first in range(0, len(trials), BATCH):
            rows: Rows = {}
            for trial in trials[first : first + BATCH]:
                for model, row in _rows(trial, study_id, texts):
                    rows.setdefault(model, []).append(row)
            for model, found in rows.items():
                connection.execute(insert(model.__table__), found)


def _rows(
    trial: FrozenTrial, study_id: int, texts: dict[BaseDistribution, str]
) -> Iterator[tuple[Any, dict[str, Any]]]:
    of_trial = {"trial_id": trial.number + 1}
    yield (
        models.TrialModel,
        of_trial
        | {
            "number": trial.number,
            "study_id": study_id,
            "state": trial.state,
            "datetime_start": _utc(trial.datetime_start),
            "datetime_complete": _utc(trial.datetime_complete),
        },
    )
    for objective, value in enumerate(trial.values or ()):
        stored, kind = models.TrialValueModel.value_to_stored_repr(value)
        yield models.TrialValueModel, of_trial | {"objective": objective, "value": stored, "value_type": kind}
    for name, value in trial.params.items():
        distribution = trial.distributions[name]
        if distribution not in texts:
            texts[distribution] = distribution_to_json(distribution)
        number = distribution.to_internal_repr(value)
        row = {"param_name": name, "param_value": number, "distribution_json": texts[distribution]}
        yield models.TrialParamModel, of_trial | row
    for step, value in trial.intermediate_values.items():
        read, sort = models.TrialIntermediateValueModel.intermediate_value_to_stored_repr(value)
        row = {"step": step, "intermediate_value": read, "intermediate_value_type": sort}
        yield models.TrialIntermediateValueModel, of_trial | row
    for model, attributes in (
        (models.TrialUserAttributeModel, trial.user_attrs),
        (models.TrialSystemAttributeModel, trial.system_attrs),
    ):
        for key, value in attributes.items():
            yield model, of_trial | {"key": key, "value_json": json.dumps(value)}


def _utc(time: datetime | None) -> datetime | None:
    """As Optuna stores times: in UTC, without saying so."""
    return None if time is None else time.astimezone(UTC).replace(tzinfo=None)
