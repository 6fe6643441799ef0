"""One worker in the launching process: what a single configuration does to it ends neither launch nor study."""

import os
import sys
import time
from pathlib import Path

import pytest
from support import trivial_launch
from support.processes import run_python
from support.trivial_runner import TrivialFactory, TrivialRunner, score_at
from support.violations import violations

from studies.errors import LaunchError
from studies.launch.launch import launch
from studies.ledger.ledger import Ledger
from studies.records import TrialRecord, TrialState

TRIALS = 8


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'ledger.db'}"


def launched(tmp_path: Path, url: str, factory: TrivialFactory) -> bool:
    study = trivial_launch.specification(tmp_path / "artefacts", "inline", TRIALS)
    return launch(study, storage_url=url, factory=factory).finished


def killed_launch(tmp_path: Path, url: str, *, deadly: int) -> int:
    """Return the exit status of a launch in its own process, which a trial ends."""
    arguments = [url, tmp_path / "artefacts", "inline", TRIALS, 0, f"deadly={deadly}", "rule=median"]
    return run_python(trivial_launch.__file__, *arguments, PYTHONPATH=os.pathsep.join(sys.path)).returncode


def assert_only_failed(url: str, number: int, reason: str) -> None:
    with Ledger.open(url, read_only=True) as ledger:
        key = ledger.study("trivial").id
        trials: list[TrialRecord] = ledger.trials(key)
        assert violations(ledger, key) == []
    assert [trial.number for trial in trials if trial.state is TrialState.FAILED] == [number]
    assert (trials[number].attempt, trials[number].reason) == (3, f"lost 3 times in a row without a reading; {reason}")
    assert len(trials) == TRIALS
    assert all(trial.state.is_terminal for trial in trials)
    for trial in trials:
        assert trial.score in (None, score_at(trial.seed, 16))


@pytest.mark.parametrize(("number", "step"), [(5, 3), (1, 6)], ids=["at once", "after readings"])
def test_a_trial_that_raises_fails_alone_in_the_same_launch(tmp_path, url, number, step):
    assert launched(tmp_path, url, TrivialFactory(raises_at={number: step}))
    assert_only_failed(url, number, f"the last: crashed: MemoryError: trial {number} is too large")


def test_when_all_trials_raise_the_launch_ends_with_the_last_text(tmp_path, url):
    with pytest.raises(LaunchError, match="workers crashed 5 times in a row; the last error: MemoryError: trial"):
        launched(tmp_path, url, TrivialFactory(raises_at=dict.fromkeys(range(TRIALS), 3)))


@pytest.mark.slow
def test_a_trial_that_kills_its_process_fails_alone_after_three_launches(tmp_path, url):
    assert [killed_launch(tmp_path, url, deadly=1) for _ in range(3)] == [9, 9, 9]
    assert launched(tmp_path, url, TrivialFactory(dies_at={1: 3}))
    assert_only_failed(url, 1, "the last: its launch ended with it")


def test_a_study_is_held_while_its_backbone_is_being_loaded(tmp_path, url):
    held_until = []

    def load(threads: int) -> TrivialRunner:
        """Block until the hold was renewed."""
        deadline = time.monotonic() + 60
        while len(set(held_until)) < 2:
            assert time.monotonic() < deadline
            with Ledger.open(url, read_only=True) as ledger:
                hold = ledger.holder(ledger.study("trivial").id)
            assert hold is not None
            held_until.append(hold.until)
            time.sleep(0.05)
        return TrivialRunner()

    study = trivial_launch.specification(tmp_path / "artefacts", "inline", TRIALS)
    assert launch(study, storage_url=url, factory=load, lease_seconds=1.5).finished
    assert len(set(held_until)) == 2
