"""A study as a database that stock Optuna opens."""

import json
import shutil
from pathlib import Path

import optuna
import pytest
from optuna.trial import FrozenTrial
from support.ledger_query import query_study
from support.small_study import small_study
from support.trivial_runner import TrivialFactory

from deltaspace.commands.main import main
from search_space.codec import configuration_to_json
from studies.launch.launch import launch
from studies.ledger.ledger import Ledger
from studies.records import Reading, TrialRecord, TrialState
from studies.study_file import Specification

STATES = {TrialState.COMPLETE: "COMPLETE", TrialState.PRUNED: "PRUNED", TrialState.FAILED: "FAIL"}


def specification(folder: Path, sampler: str) -> Specification:
    search = {"sampler": sampler, "published": ["mam_adapter", "lora_qv"]}
    return small_study(folder, trials=20, search=search)


@pytest.fixture(scope="module", params=["random", "nsga2"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Launch a study to its end and return its storage; its sampler may ignore published methods."""
    folder = tmp_path_factory.mktemp("ended")
    url = f"sqlite:///{folder / 'ledger.db'}"
    assert launch(specification(folder, request.param), storage_url=url, factory=TrivialFactory()).finished
    return url


def recorded(url: str) -> tuple[list[TrialRecord], list[Reading]]:
    return query_study(url, "trivial", lambda ledger, study: (ledger.trials(study.id), ledger.readings(study.id)))


def test_stock_optuna_loads_every_trial_as_it_was(url, tmp_path, capsys):
    file = tmp_path / "away" / "trials.db"
    assert main(["export", "trivial", str(file), "--format", "optuna", "--storage", url]) == 0
    assert f"20 trials of trivial are in {file}" in capsys.readouterr().out
    assert [path.name for path in file.parent.iterdir()] == ["trials.db"]
    study = optuna.load_study(study_name="trivial", storage=f"sqlite:///{file}")
    trials, readings = recorded(url)
    assert len(study.trials) == len(trials) == 20
    assert {trial.state for trial in trials} >= {TrialState.COMPLETE, TrialState.PRUNED}
    for ours, theirs in zip(trials, study.trials, strict=True):
        assert_same(ours, theirs, {one.step: one.score for one in readings if one.trial == ours.number})
    best = min(
        (trial for trial in trials if trial.score is not None), key=lambda trial: (-(trial.score or 0.0), trial.number)
    )
    assert study.best_value == best.score
    assert study.direction is optuna.study.StudyDirection.MAXIMIZE
    assert study.user_attrs["metric"] == "accuracy"
    assert study.user_attrs["specification"]["trials"] == 20
    assert study.metric_names == ["accuracy"]
    study.ask()  # it goes on from there


def test_published_method_has_the_spaces_own_parameters(url, tmp_path):
    from optuna.importance import FanovaImportanceEvaluator, get_param_importances

    from search_space.codec import configuration_from_json
    from studies.study_file.recorded_specification import recorded_space

    assert main(["export", "trivial", str(tmp_path / "trials.db"), "--format", "optuna", "--storage", url]) == 0
    study = optuna.load_study(study_name="trivial", storage=f"sqlite:///{tmp_path / 'trials.db'}")
    space = query_study(url, "trivial", lambda _, study: recorded_space(study))
    published = [trial for trial in study.trials if trial.user_attrs["method"]]
    assert {trial.user_attrs["method"] for trial in published} == {"mam_adapter", "lora_qv"}
    for trial in published:
        assert len(trial.params) > 4
        again = space.suggest(trial.params)
        assert again.configuration == configuration_from_json(trial.user_attrs["configuration"])
        assert set(trial.distributions) == set(trial.params)
    names = set.intersection(*(set(trial.params) for trial in study.trials))
    shared = [name for name in names if len({trial.params[name] for trial in study.trials}) > 1]
    assert shared  # decisions that all trials have, the published ones too
    importances = get_param_importances(study, evaluator=FanovaImportanceEvaluator(seed=0), params=shared)
    assert set(importances) == set(shared)


def assert_same(ours: TrialRecord, theirs: FrozenTrial, readings: dict[int, float]) -> None:
    assert theirs.number == ours.number
    assert theirs.state.name == STATES[ours.state]
    assert theirs.value == ours.score
    if ours.method is None:
        assert theirs.params == ours.proposal
    assert theirs.intermediate_values == readings
    for name in ("description", "method", "stored_parameters", "reason"):
        assert theirs.user_attrs[name] == getattr(ours, name)
    assert theirs.user_attrs["configuration"] == json.loads(json.dumps(configuration_to_json(ours.configuration)))


def test_unfinished_trials_are_exported_too(url, tmp_path):
    from studies.exports.optuna import export_optuna

    shutil.copy(url.removeprefix("sqlite:///"), tmp_path / "copy.db")
    with Ledger.open(f"sqlite:///{tmp_path / 'copy.db'}") as ledger:
        study = ledger.study("trivial")
        last, epoch = ledger.trials(study.id)[-1], ledger.take_over(study.id, "test")
        new = [last.again(number=number, fingerprint=str(number)) for number in (20, 21)]
        ledger.add_trials(study.id, epoch, new[:1], worker="worker-0")
        ledger.add_trials(study.id, epoch, new[1:])
        assert export_optuna(ledger, "trivial", tmp_path / "open.db") == 22
    found = optuna.load_study(study_name="trivial", storage=f"sqlite:///{tmp_path / 'open.db'}")
    assert [trial.state.name for trial in found.trials[20:]] == ["RUNNING", "WAITING"]
    assert found.trials[20].datetime_complete is None


def test_existing_file_is_refused_and_kept(url, tmp_path, capsys):
    (tmp_path / "mine.db").write_text("mine")
    assert main(["export", "trivial", str(tmp_path / "mine.db"), "--format", "optuna", "--storage", url]) == 2
    assert "is there already" in capsys.readouterr().err
    assert (tmp_path / "mine.db").read_text() == "mine"
