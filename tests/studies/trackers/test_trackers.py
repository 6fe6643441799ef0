"""Trackers, each with its real package and without a network; one that is not installed is skipped, and said."""

import importlib.util
from pathlib import Path

import pytest
from support.trivial_launch import specification
from support.trivial_runner import TrivialFactory

from studies.errors import LaunchError
from studies.launching import launch
from studies.observing import named_observer
from studies.store.ledger import Ledger
from studies.store.records import ReadingRecord, TrialRecord
from studies.trackers import TRACKERS
from studies.trackers import facts as tracker_facts

TRIALS = 4
PACKAGES = {"tensorboard": "tensorboardX"}


def tracked(name: str, folder: Path) -> tuple[list[TrialRecord], dict[int, list[ReadingRecord]]]:
    """Launch a study with a tracker; its trials and readings."""
    if importlib.util.find_spec(PACKAGES[name]) is None:
        pytest.skip(f"{PACKAGES[name]} is not installed: pip install 'deltaspace[{name}]'")
    url = f"sqlite:///{folder / 'ledger.db'}"
    result = launch(
        specification(folder / "artefacts", "inline", TRIALS),
        storage_url=url,
        factory=TrivialFactory(fails_at={2: 7}),
        observers=[named_observer(name, TRACKERS)],
    )
    assert result.finished
    assert result.complaints == ()
    with Ledger.open(url, read_only=True) as ledger:
        study = ledger.study("trivial")
        return ledger.trials(study.id), ledger.readings_by_trial(study.id)


def test_every_tracker_is_tested_here() -> None:
    assert set(PACKAGES) == set(TRACKERS)


def test_tensorboard_has_a_run_per_trial_with_every_curve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_tracker_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(tracker_facts, "import_module", missing)
    for name in TRACKERS:
        with pytest.raises(LaunchError, match=rf"not installed. Run: pip install 'deltaspace\[{name}\]'"):
            named_observer(name, TRACKERS)
