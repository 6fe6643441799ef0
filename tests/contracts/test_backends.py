"""Contract of every backend: it runs the workers of a study, and no end of a launch loses data."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
from support.small_study import small_study
from support.trivial_runner import TrivialFactory, score_at

from studies.backends import BACKENDS
from studies.errors import FencedError
from studies.launch.execution import LaunchResult
from studies.launch.launch import launch
from studies.ledger.ledger import Ledger
from studies.records import TrialRecord, TrialState
from studies.runtime.progress import Progress
from studies.study_file import Specification
from studies.study_file.sections import Fleet
from studies.verification import verify

TESTS = Path(__file__).parents[1]
STEPS = 16
SLOW = ("ray",)

pytestmark = pytest.mark.parametrize(
    "backend", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in BACKENDS]
)


@pytest.fixture(autouse=True)
def importable_by_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS.parent), str(TESTS)]))


class Study:
    """A study of trivial trials that a backend runs."""

    def __init__(self, folder: Path, backend: str) -> None:
        self.folder, self.backend = folder, backend
        self.url = f"sqlite:///{folder / 'ledger.db'}"

    def specification(self, trials: int, **fleet: object) -> Specification:
        given = {"backend": self.backend, "workers": 2, **fleet}
        search = {"sampler": "random", "published": ["bitfit"]}
        return small_study(self.folder, trials=trials, steps=STEPS, first_rung=None, search=search, fleet=given)

    def launch(
        self,
        trials: int = 8,
        *,
        factory: TrivialFactory = TrivialFactory(),  # noqa: B008 - a value
        observer: Callable[[Progress], None] | None = None,
        **fleet: object,
    ) -> LaunchResult:
        return launch(
            self.specification(trials, **fleet),
            storage_url=self.url,
            factory=factory,
            observer=observer,
            lease_seconds=20,
        )

    def trials(self) -> list[TrialRecord]:
        with Ledger.open(self.url, read_only=True) as ledger:
            return ledger.trials(ledger.study("trivial").id)

    def check_is_whole(self) -> None:
        """Check that every trial has its undisturbed score, and that the ledger is in order."""
        with Ledger.open(self.url, read_only=True) as ledger:
            assert verify(ledger, "trivial") == []
        for trial in self.trials():
            assert trial.state is TrialState.COMPLETE
            assert trial.score == score_at(trial.seed, STEPS)


@pytest.fixture
def study(tmp_path: Path, backend: str) -> Study:
    return Study(tmp_path, backend)


def test_a_study_file_can_name_it(backend):
    assert backend in get_args(Fleet.model_fields["backend"].annotation)


def test_it_runs_every_trial_to_its_end_once_and_shows_how_far_it_is(study):
    observed: list[Progress] = []
    result = study.launch(observer=observed.append)
    assert (result.finished, result.is_interrupted) == (True, False)
    assert result.reason == "finished: all 8 trials have ended"
    assert [trial.number for trial in study.trials()] == list(range(8))
    study.check_is_whole()
    assert (observed[-1].ended, observed[-1].running) == (8, ())
    assert [one.ended for one in observed] == sorted(one.ended for one in observed)
    before = study.trials()
    assert study.launch().reason == "already finished: all 8 trials have ended"
    assert study.trials() == before


def test_a_trial_that_fails_fails_alone(study):
    assert study.launch(factory=TrivialFactory(fails_at={3: 5})).finished
    assert [trial.number for trial in study.trials() if trial.state is TrialState.FAILED] == [3]
    others = [trial for trial in study.trials() if trial.number != 3]
    assert [trial.score for trial in others] == [score_at(trial.seed, STEPS) for trial in others]


def test_exhausted_time_budget_checkpoints_trials_for_next_launch(study):
    slow = TrivialFactory(step_seconds=0.05)
    first = study.launch(40, factory=slow, time_budget=0.5)
    assert (first.finished, first.is_interrupted) == (False, False)
    assert "the time budget of 0.5 s is exhausted" in first.reason
    assert TrialState.RUNNING not in {trial.state for trial in study.trials()}
    begun = {trial.number: trial.fingerprint for trial in study.trials()}
    assert study.launch(40).finished
    study.check_is_whole()
    assert begun.items() <= {trial.number: trial.fingerprint for trial in study.trials()}.items()


def test_launch_superseded_by_another_keeper_stops_writing(study):
    taken: list[int] = []

    def steal(progress: Progress) -> None:
        if progress.running and not taken:
            with Ledger.open(study.url) as ledger:
                taken.append(ledger.take_over(ledger.study("trivial").id, "a thief"))

    with pytest.raises(FencedError, match="study 'trivial' was taken over"):
        study.launch(40, factory=TrivialFactory(step_seconds=0.02), observer=steal)
    assert taken
    assert study.launch(40).finished
    study.check_is_whole()
