"""The fleet on Ray: what cannot start is said in one line, and a trial that kills its worker fails alone."""

import os
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.trivial_runner import TrivialRunner

from studies.backends import tune
from studies.backends.driver_process import Ended, Started
from studies.errors import LaunchError
from studies.launch.execution import LaunchResult
from studies.launch.launch import launch
from studies.ledger.ledger import Ledger
from studies.records import TrialRecord
from studies.study_file import specification_from_mapping
from trial_runner.errors import BackboneError
from trial_runner.requests import PackRunner, TrialRequest

TESTS = Path(__file__).parents[2]
BACKBONE = TESTS / "data" / "backbones" / "roberta_base"


@pytest.fixture(autouse=True)
def importable_by_workers(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS.parent), str(TESTS)]))


def launched(tmp_path: Path, factory: object) -> LaunchResult:
    study = specification_from_mapping(
        {
            "name": "trivial",
            "backbone": str(BACKBONE),
            "task": {"name": "docstrings"},
            "budget": "0.5%",
            "trials": 6,
            "training": {"steps": 8},
            "pruning": {"first_rung_steps": None},
            "search": {"sampler": "random", "published": "none"},
            "fleet": {"backend": "ray", "pack": 1, "workers": 2, "artefacts": str(tmp_path / "artefacts")},
        }
    )
    return launch(study, storage_url=f"sqlite:///{tmp_path / 'ledger.db'}", factory=factory)  # type: ignore[arg-type]


def trials_of(tmp_path: Path) -> list[TrialRecord]:
    with Ledger.open(f"sqlite:///{tmp_path / 'ledger.db'}", read_only=True) as ledger:
        return ledger.trials(ledger.study("trivial").id)


def no_backbone(threads: int) -> PackRunner:
    raise BackboneError("the weights of the backbone must be readable; got a damaged file.")


def no_sense(threads: int) -> PackRunner:
    raise ValueError("this is a bug")


def kill_at_trial_2(request: TrialRequest, step: int) -> None:
    if request.trial == 2:
        os._exit(1)


@dataclass(frozen=True)
class Poisoned:
    """Trial 2 takes its worker's process down."""

    def __call__(self, threads: int) -> PackRunner:
        return TrivialRunner(on_step=kill_at_trial_2)


def by_value(function):
    """Lets workers have what this file defines without importing it."""
    import sys

    from ray import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[function.__module__])
    return function


@pytest.mark.parametrize(("last", "said"), [("a damaged file", "a damaged file"), ("", "its gcs_server was lost")])
def test_a_last_word_is_heard_though_ray_is_gone_with_the_driver_that_said_it(monkeypatch, last, said):
    """On a busy machine the launching process sees who has ended before it takes in what was said before that."""
    heard = iter([Started(processes={"gcs_server": 1}), *[None] * 5, Ended(error=LaunchError(last)) if last else "end"])

    def hear(seconds: float) -> Any:
        word = next(heard)
        if word == "end":
            raise EOFError
        return word

    monkeypatch.setattr(tune, "is_alive", lambda pid: False)
    # it was still ending when its Ray was gone
    driver: Any = SimpleNamespace(hear=hear, ends_within=lambda seconds: seconds > 1)
    order: Any = SimpleNamespace(plan=SimpleNamespace(lease_seconds=60.0), address=None)
    watch: Any = SimpleNamespace(is_due=lambda: False, reason_to_stop=lambda: "")
    with pytest.raises(LaunchError, match=said):
        tune._Supervisor(driver, order, watch).run()


@pytest.mark.slow
def test_a_backbone_that_workers_cannot_load_ends_the_launch_with_one_line(tmp_path):
    with pytest.raises(LaunchError, match="must be readable; got a damaged file") as ended:
        launched(tmp_path, by_value(no_backbone))
    assert "\n" not in str(ended.value)
    assert trials_of(tmp_path) == []


@pytest.mark.slow
def test_workers_that_crash_again_and_again_end_the_launch(tmp_path):
    with pytest.raises(LaunchError, match="crashed 5 times in a row; the last said: ValueError: this is a bug"):
        launched(tmp_path, by_value(no_sense))


@pytest.mark.slow
def test_a_trial_that_kills_its_worker_fails_alone(tmp_path):
    by_value(kill_at_trial_2)
    assert launched(tmp_path, Poisoned()).finished
    trials = trials_of(tmp_path)
    assert [trial.state.value for trial in trials] == ["complete"] * 2 + ["failed"] + ["complete"] * 3
    assert trials[2].reason is not None
    assert "lost 3 times in a row without a reading" in trials[2].reason
