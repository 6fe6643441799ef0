"""Trackers, each with its real package and without a network."""

import importlib.util
import json
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest
from support.ledger_query import query_study
from support.missing_programs import skip_without
from support.trivial_launch import specification
from support.trivial_runner import TrivialFactory

from studies.errors import LaunchError
from studies.launch.launch import launch
from studies.observer import named_observer
from studies.records import Reading, TrialRecord
from studies.trackers import PACKAGES, TRACKERS

TRIALS = 4


def tracked(name: str, folder: Path) -> tuple[list[TrialRecord], dict[int, list[Reading]]]:
    """Launch a study with a tracker; its trials and readings."""
    if importlib.util.find_spec(PACKAGES[name]) is None:
        skip_without(PACKAGES[name], f"pip install 'deltaspace[{name}]'")
    url = f"sqlite:///{folder / 'ledger.db'}"
    study, factory = specification(folder / "artefacts", "inline", TRIALS), TrivialFactory(fails_at={2: 7})
    result = launch(study, storage_url=url, factory=factory, observers=[named_observer(name, TRACKERS)])
    assert (result.finished, result.observer_errors) == (True, ())
    return query_study(
        url, "trivial", lambda ledger, found: (ledger.trials(found.id), ledger.readings_by_trial(found.id))
    )


def test_every_tracker_is_tested_here():
    assert set(PACKAGES) == set(TRACKERS)


def test_tensorboard_has_a_run_per_trial_with_every_curve(tmp_path, monkeypatch):
    monkeypatch.setenv("TENSORBOARD_LOGDIR", str(tmp_path / "runs"))
    trials, readings = tracked("tensorboard", tmp_path)
    from tensorboardX.event_file_writer import EventFileWriter  # noqa: F401 - it is the real package
    from tensorboardX.proto.event_pb2 import Event

    for trial in trials:
        [file] = (tmp_path / "runs" / "trivial" / f"trial-{trial.number}").iterdir()
        points: dict[str, list[tuple[int, float]]] = {}
        data, at = file.read_bytes(), 0
        while at < len(data):  # length in 8 bytes, 4 of its check, the event, 4 of its check
            size = int.from_bytes(data[at : at + 8], "little")
            event = Event.FromString(data[at + 12 : at + 12 + size])
            at += 16 + size
            for value in event.summary.value:
                if value.WhichOneof("value") == "simple_value":
                    points.setdefault(value.tag, []).append((event.step, value.simple_value))
        expected = [(reading.step, pytest.approx(reading.score)) for reading in readings.get(trial.number, [])]
        assert points.get("score", []) == expected
        assert ("final_score" in points) == (trial.score is not None)


@pytest.mark.slow
def test_mlflow_has_an_experiment_per_study_and_a_run_per_trial(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    trials, readings = tracked("mlflow", tmp_path)
    import mlflow

    client = mlflow.MlflowClient()
    experiment = client.get_experiment_by_name("trivial")
    runs = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
    assert set(runs) == {f"trial-{trial.number}" for trial in trials}
    for trial in trials:
        run = runs[f"trial-{trial.number}"]
        assert run.data.params["stored_parameters"] == str(trial.stored_parameters)
        assert run.info.status == ("FAILED" if trial.state == "failed" else "FINISHED")
        history = client.get_metric_history(run.info.run_id, "score")
        expected = [(one.step, one.score) for one in readings.get(trial.number, [])]
        assert [(point.step, point.value) for point in history] == expected


@pytest.mark.slow
def test_weights_and_biases_has_a_run_per_trial_offline(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    trials, _ = tracked("wandb", tmp_path)
    runs = list((tmp_path / "wandb").glob("offline-run-*"))
    assert len(runs) == len(trials)
    written = [file.read_bytes() for run in runs for file in run.glob("*.wandb")]
    for trial in trials:
        [own] = [content for content in written if f"trial-{trial.number}".encode() in content]
        assert b"trivial" in own  # their group
        assert b"train_loss" in own


def test_trackio_has_a_run_per_trial(tmp_path, monkeypatch):
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    trials, readings = tracked("trackio", tmp_path)
    import sqlite3

    [file] = (tmp_path / "trackio").glob("trivial*.db")
    link = sqlite3.connect(file)
    rows = link.execute("SELECT run_name, step, metrics FROM metrics ORDER BY run_name, step").fetchall()
    link.close()
    found: dict[str, list[tuple[int, float]]] = {}
    for run, step, metrics in rows:
        found.setdefault(run, []).append((step, json.loads(metrics)["score"]))
    assert {f"trial-{trial.number}" for trial in trials} >= set(found)
    assert found == {f"trial-{of}": [(one.step, one.score) for one in readings[of]] for of in readings}


@pytest.mark.parametrize(
    ("installed", "listed"), [((), "none"), (("trackio",), "trackio"), (("trackio", "mlflow"), "mlflow, trackio")]
)
def test_missing_tracker_error_names_installed_ones_and_the_extra(installed, listed, monkeypatch):
    for name, package in PACKAGES.items():
        module = ModuleType(package)
        module.__spec__ = ModuleSpec(package, None)
        monkeypatch.setitem(sys.modules, package, module if name in installed else None)
    for name in set(TRACKERS).difference(installed):
        with pytest.raises(LaunchError) as caught:
            named_observer(name, TRACKERS)
        assert str(caught.value) == (
            f"cannot report to {name}: the package {PACKAGES[name]} is not installed (installed trackers: {listed}). "
            f"Run: pip install 'deltaspace[{name}]'"
        )
