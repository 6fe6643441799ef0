"""A worker with a pack: slots are refilled, trials go on from snapshots, and one bad trial harms no other."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from support.best_share import BestShare
from support.kept_study import KeptStudy
from support.trivial_runner import TrivialRunner, score_at

from studies.backends.trial_files import FilesInFolder
from studies.backends.worker import PackWorker
from studies.errors import FencedError, LaunchError
from studies.pruning.rungs import RungPlan
from studies.records import TrialReport, TrialState
from studies.runtime.messages import WorkerAnswer
from trial_runner.requests import TrialRequest


@pytest.fixture
def one_step_at_a_time(monkeypatch):
    """Return control to the worker after every step."""
    monkeypatch.setattr("studies.backends.worker.CHUNK_SECONDS", 0.0)


def worker_of(study: KeptStudy, runner: TrivialRunner, **given: object) -> PackWorker:
    settings = {"name": "w/1", "keeper": study.keeper, "slots": 1, "should_leave": lambda: False} | given
    return PackWorker(runner=runner, files=FilesInFolder(runner, study.plan.artefacts), **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("slots", [1, 3, 20])
def test_worker_ends_every_trial_at_any_pack_size(begin, slots):
    study = begin(target_trials=12)
    assert worker_of(study, TrivialRunner(), slots=slots).work()
    assert [trial.number for trial in study.trials] == list(range(12))
    assert {*study.states} == {"complete", "pruned"}
    for trial in study.trials:
        assert trial.score == (score_at(trial.seed, 16) if trial.state is TrialState.COMPLETE else None)
        assert (trial.state is TrialState.PRUNED) == str(trial.reason).startswith("rung ")
        assert (trial.state is TrialState.PRUNED) != (study.plan.artefacts / f"trial-{trial.number}").exists()


def test_complete_trial_keeps_only_its_delta(begin):
    study = begin(target_trials=1)
    worker_of(study, TrivialRunner()).work()
    kept = study.artefacts
    assert [(one.kind, one.step) for one in kept] == [("delta", 16)]
    assert [str(path) for path in study.plan.artefacts.glob("trial-*/*/*")] == [kept[0].path]


@pytest.mark.parametrize(
    ("how", "number", "reason"),
    [
        ({"refused": frozenset({2})}, 2, "trial 2 cannot be attached."),
        ({"fails_at": {0: 6}}, 0, "the loss is nan at step 6"),
        ({"scores": {3: float("nan")}}, 3, "score is nan at step 4"),
    ],
)
def test_a_bad_trial_fails_alone_with_its_reason_and_is_not_tried_again(begin, how, number, reason):
    study, runner = begin(), TrivialRunner(**how)
    worker_of(study, runner, slots=4).work()
    failed = [(one.number, one.reason, one.attempt) for one in study.trials if one.state is TrialState.FAILED]
    assert failed == [(number, reason, 1)]
    assert runner.admitted.count((number, 1)) == ("refused" not in how)


@pytest.mark.parametrize("fails_at", [{0: 6}, {0: 1, 1: 5, 2: 3}])
def test_reports_of_a_worker_do_not_depend_on_a_clock(begin, monkeypatch, fails_at):
    reported: list[list[tuple[int, int | None]]] = []
    for seconds in (0.0, 60.0):
        monkeypatch.setattr("studies.backends.worker.CHUNK_SECONDS", seconds)
        study = begin(study=f"chunks-{seconds:g}")
        reported.append([])
        exchange = study.keeper.exchange

        def noting(worker, reports, free_slots, *, exchange=exchange, mine=reported[-1]):
            mine.extend((one.trial, one.reading.step if one.reading else None) for one in reports)
            mine.append((-1, free_slots))
            return exchange(worker, reports, free_slots)

        monkeypatch.setattr(study.keeper, "exchange", noting)
        worker_of(study, TrivialRunner(fails_at=fails_at), slots=3).work()
    assert reported[0] == reported[1]
    assert {trial for trial, step in reported[0] if step is None} == set(fails_at)


def leaves_at(runner: TrivialRunner, trial: int, step: int) -> Callable[[], bool]:
    """Build a check that is true once a trial has reached a step."""
    reached: list[bool] = []

    def note(request, at):
        if (request.trial, at) == (trial, step):
            reached.append(True)

    runner.on_step = note
    return lambda: bool(reached)


def test_a_worker_that_leaves_lays_its_trials_aside_where_they_stand(begin, one_step_at_a_time):
    study = begin(target_trials=3, rungs=RungPlan(steps=(4, 8), rule=BestShare(3)))
    runner = TrivialRunner()
    assert worker_of(study, runner, slots=2, should_leave=leaves_at(runner, 0, 6)).work()
    assert [trial.state for trial in study.trials] == [TrialState.QUEUED] * 2
    newest = study.artefacts[-1]
    assert (newest.kind, newest.step) == ("snapshot", 6)


@pytest.mark.parametrize(("damaged", "restored"), [(0, [(0, 2, 6)]), (1, [(0, 2, 4)]), (2, [])])
def test_resumed_trial_reaches_the_same_score(begin, one_step_at_a_time, damaged, restored):
    study = begin(target_trials=1)
    runner = TrivialRunner()
    worker_of(study, runner, should_leave=leaves_at(runner, 0, 6)).work()
    snapshots = study.artefacts
    assert [one.step for one in snapshots] == [4, 6]
    for snapshot in snapshots[2 - damaged :]:
        Path(snapshot.path).write_text("{")
    study.take_over()
    again = TrivialRunner()
    worker_of(study, again).work()
    trial = study.trials[0]
    assert again.restored == restored
    assert trial.score == score_at(trial.seed, 16)


def test_full_disk_ends_the_launch_without_loss(begin):
    class FullDisk(TrivialRunner):
        def save(self, snapshot, folder):
            raise OSError(28, "No space left on device")

    study = begin(target_trials=2)
    with pytest.raises(LaunchError, match="No space left on device"):
        worker_of(study, FullDisk()).work()
    study.take_over()
    worker_of(study, TrivialRunner()).work()
    assert [trial.state.is_terminal for trial in study.trials] == [True, True]


def test_a_worker_returns_in_time_and_goes_on_with_the_trials_in_its_slots(begin):
    study = begin(target_trials=2)
    runner = TrivialRunner(step_seconds=0.01)
    worker = worker_of(study, runner, slots=2)
    rounds = 1
    while not worker.work(0.02):
        rounds += 1
    assert rounds > 1
    assert runner.admitted == [(0, 1), (1, 1)]


def test_snapshots_between_measurements_are_handed_in_and_change_no_trial(
    begin, tmp_path, one_step_at_a_time, monkeypatch
):
    plain = begin(f"sqlite:///{tmp_path / 'plain.db'}", study="plain")
    worker_of(plain, TrivialRunner(), slots=2).work()
    study, between = begin(), []
    exchange = study.keeper.exchange

    def overhear(worker: str, reports: Sequence[TrialReport], free_slots: int) -> WorkerAnswer:
        if reports and all(report.reading is None and report.state is TrialState.RUNNING for report in reports):
            assert free_slots == 0
            between.extend((one.trial, one.artefact.step) for one in reports if one.artefact is not None)
        return exchange(worker, reports, free_slots)

    monkeypatch.setattr(study.keeper, "exchange", overhear)
    worker_of(study, TrivialRunner(), slots=2, snapshot_seconds=0.0).work()
    measured = set(study.plan.training.evaluate_at_steps)
    ends = {trial.number: trial.steps for trial in study.trials}
    assert {(0, 1), (0, 2), (0, 3)} <= set(between)
    assert all(step not in measured and step < ends[trial] for trial, step in between)
    outcomes = [(trial.fingerprint, trial.state, trial.score, trial.steps) for trial in study.trials]
    assert outcomes == [(trial.fingerprint, trial.state, trial.score, trial.steps) for trial in plain.trials]


def test_a_trial_goes_on_from_a_snapshot_between_measurements(begin, one_step_at_a_time):
    study = begin(target_trials=1)

    def pull_the_plug(request: TrialRequest, step: int) -> None:
        if (request.attempt, step) == (1, 3):
            raise SystemError

    runner = TrivialRunner(on_step=pull_the_plug)
    with pytest.raises(SystemError):
        worker_of(study, runner, snapshot_seconds=0.0).work()
    study.keeper.crash("w/1", "lost")
    worker_of(study, runner, name="w/2").work()
    assert runner.restored == [(0, 2, 2)]
    assert [trial.score for trial in study.trials] == [score_at(study.trials[0].seed, 16)]


def test_worker_drops_an_attempt_when_it_gets_the_next_one(begin):
    """Test the loss of trial 2 while trial 1 waits to be measured again."""
    study = begin(target_trials=3, rungs=RungPlan(steps=(4, 8)))

    def lose(request: TrialRequest, step: int) -> None:
        if (request.trial, request.attempt, step) == (2, 1, 6):
            study.keeper.crash("w/1", "thought lost")

    runner = TrivialRunner(fails_at={0: 2}, on_step=lose)
    assert worker_of(study, runner, slots=2).work()
    assert runner.restored == [(1, 2, 8), (2, 2, 4)]
    assert [trial.attempt for trial in study.trials] == [1, 2, 2]
    assert [trial.score for trial in study.trials[1:]] == [score_at(trial.seed, 16) for trial in study.trials[1:]]


def test_superseded_launch_reports_takeover_not_missing_files(begin):
    study = begin(target_trials=2)

    class TakenOver(TrivialRunner):
        def save(self, snapshot, folder):
            study.take_over()
            raise FileNotFoundError(2, "No such file or directory")

    with pytest.raises(FencedError):
        worker_of(study, TakenOver()).work()
