"""What is written as rows is what Optuna's storage would have written one by one."""

import math
from datetime import UTC, datetime

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial, TrialState, create_trial

from studies.exports import optuna as optuna_export
from studies.exports.optuna import add_trials

DISTRIBUTIONS = {
    "form": CategoricalDistribution(["lowrank", None, 4]),
    "rate": FloatDistribution(1e-4, 1e-1, log=True),
    "width": IntDistribution(1, 64),
}


def trials() -> list[FrozenTrial]:
    params = {"form": None, "rate": 0.1 + 0.2 - 0.25, "width": 7}
    found = [
        create_trial(
            state=TrialState.COMPLETE,
            values=[0.75, -3.0],
            params=params,
            distributions=DISTRIBUTIONS,
            intermediate_values={2: 0.5, 4: math.inf, 8: 0.75},
            user_attrs={"description": "größer", "configuration": {"edits": [1, None]}},
            system_attrs={"fixed": [1]},
        ),
        create_trial(state=TrialState.PRUNED, params={"form": 4}, distributions={"form": DISTRIBUTIONS["form"]}),
        create_trial(state=TrialState.FAIL, values=None),
        create_trial(state=TrialState.WAITING),
        create_trial(state=TrialState.RUNNING, intermediate_values={1: -math.inf}),
    ]
    for number, trial in enumerate(found):
        trial.number = number
        trial.datetime_start = datetime(2026, 3, 1, 12, number, tzinfo=UTC)
        ended_at = datetime(2026, 3, 1, 13, number, 5, 678901, tzinfo=UTC)
        trial.datetime_complete = ended_at if trial.state.is_finished() else None
    return found


def test_a_study_is_the_same_however_it_was_written(tmp_path, monkeypatch):
    monkeypatch.setattr(optuna_export, "BATCH", 2)
    read = []
    for name in ("theirs", "ours"):
        storage = RDBStorage(f"sqlite:///{tmp_path / name}.db")
        study = optuna.create_study(storage=storage, study_name="s", directions=["maximize", "minimize"])
        if name == "theirs":
            study.add_trials(trials())
        else:
            add_trials(storage, storage.get_study_id_from_name("s"), trials())
        read.append(optuna.load_study(study_name="s", storage=f"sqlite:///{tmp_path / name}.db").trials)
        storage.remove_session()
        storage.engine.dispose()
    assert len(read[0]) == 5
    assert read[0] == read[1]
    assert [trial.user_attrs for trial in read[0]] == [trial.user_attrs for trial in read[1]]


def test_a_study_goes_on_where_the_rows_end(tmp_path):
    storage = RDBStorage(f"sqlite:///{tmp_path / 'ours.db'}")
    study = optuna.create_study(storage=storage, study_name="s", directions=["maximize", "minimize"])
    add_trials(storage, storage.get_study_id_from_name("s"), trials())
    assert study.ask().number == 3  # the one that waits
    assert study.ask().number == 5
    storage.remove_session()
    storage.engine.dispose()
