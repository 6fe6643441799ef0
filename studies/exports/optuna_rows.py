"""Trials as rows of Optuna's own tables: its storage adds one trial at a time, which a large study cannot wait for."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from optuna.distributions import BaseDistribution, distribution_to_json
from optuna.storages import RDBStorage
from optuna.storages._rdb import models
from optuna.trial import FrozenTrial
from sqlalchemy import insert

BATCH = 1000

Rows = dict[Any, list[dict[str, Any]]]


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
