"""A worker with a pack: slots are refilled, trials go on from snapshots, and one bad trial harms no other."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from support.best_share import BestShare
from support.trivial_runner import TrivialRunner, score_at

from studies.backends.trial_files import FilesInFolder
from studies.backends.worker import PackWorker
from studies.errors import FencedError, LaunchError
from studies.ledger.invariants import violations
from studies.ledger.ledger import Ledger
from studies.pruning.rungs import RungPlan
from studies.records import TrialRecord, TrialState
from studies.runtime.keeper import StudyKeeper
from studies.runtime.messages import WorkerAnswer, WorkerReport
from studies.runtime.study_plan import StudyPlan
from studies.verification import replay_violations
from trial_runner.requests import TrialRequest


@pytest.fixture
def one_step_at_a_time(monkeypatch):
    """The worker looks up after every step."""
    monkeypatch.setattr("studies.backends.worker.CHUNK_SECONDS", 0.0)


def worker_of(keeper: StudyKeeper, plan: StudyPlan, runner: TrivialRunner, **given: object) -> PackWorker:
    settings: dict[str, object] = {"name": "w/1", "slots": 1, "should_leave": lambda: False} | given
    files = FilesInFolder(runner, plan.artefacts)
    return PackWorker(keeper=keeper, runner=runner, files=files, **settings)  # type: ignore[arg-type]


def recorded(plan: StudyPlan) -> list[TrialRecord]:
    with Ledger.open(plan.storage_url) as ledger:
        return ledger.trials(ledger.study(plan.study).id)


def broken(plan: StudyPlan, keeper: StudyKeeper) -> list[str]:
    with Ledger.open(plan.storage_url) as ledger:
        study = ledger.study(plan.study).id
        found = violations(ledger, study, rung_steps=plan.rungs.steps)
        return [*found, *replay_violations(ledger, study, keeper.proposer)]


@pytest.mark.parametrize("slots", [1, 3, 20])
def test_a_worker_brings_every_trial_to_an_end_whatever_the_size_of_its_pack(new_plan, keep, slots):
    plan = new_plan(target_trials=12)
    keeper = keep(plan)
    assert worker_of(keeper, plan, TrivialRunner(), slots=slots).work()
    trials = recorded(plan)
    assert [trial.number for trial in trials] == list(range(12))
    assert all(trial.state.is_terminal for trial in trials)
    assert {trial.state for trial in trials} == {TrialState.COMPLETE, TrialState.PRUNED}
    assert broken(plan, keeper) == []


def test_final_scores_are_those_of_undisturbed_trials(new_plan, keep):
    plan = new_plan()
    worker_of(keep(plan), plan, TrivialRunner()).work()
    complete = [trial for trial in recorded(plan) if trial.state is TrialState.COMPLETE]
    assert complete
    assert [trial.score for trial in complete] == [score_at(trial.seed, 16) for trial in complete]


def test_pruned_trials_say_at_which_rung_and_keep_no_files(new_plan, keep):
    plan = new_plan(target_trials=12)
    worker_of(keep(plan), plan, TrivialRunner()).work()
    pruned = [trial for trial in recorded(plan) if trial.state is TrialState.PRUNED]
    assert pruned
    assert all(trial.reason is not None and trial.reason.startswith("rung ") for trial in pruned)
    assert not any((plan.artefacts / f"trial-{trial.number}").exists() for trial in pruned)


def test_a_complete_trial_keeps_its_delta_and_nothing_else(new_plan, keep):
    plan = new_plan(target_trials=1)
    worker_of(keep(plan), plan, TrivialRunner()).work()
    with Ledger.open(plan.storage_url) as ledger:
        kept = ledger.artefacts(ledger.study(plan.study).id)
    assert [(one.kind, one.step) for one in kept] == [("delta", 16)]
    assert [str(path) for path in plan.artefacts.glob("trial-*/*/*")] == [kept[0].path]


def test_a_trial_that_cannot_be_attached_fails_alone(new_plan, keep):
    plan = new_plan()
    worker_of(keep(plan), plan, TrivialRunner(refused=frozenset({2})), slots=3).work()
    trials = recorded(plan)
    assert trials[2].state is TrialState.FAILED
    assert trials[2].reason == "trial 2 cannot be attached."
    assert [trial.number for trial in trials if trial.state is TrialState.FAILED] == [2]


def test_a_diverging_trial_fails_with_reason_and_step_and_is_not_tried_again(new_plan, keep):
    plan = new_plan()
    runner = TrivialRunner(fails_at={0: 6})
    keeper = keep(plan)
    worker_of(keeper, plan, runner, slots=2).work()
    failed = recorded(plan)[0]
    assert (failed.state, failed.reason, failed.attempt) == (TrialState.FAILED, "the loss is nan at step 6", 1)
    assert runner.admitted.count((0, 1)) == 1
    assert broken(plan, keeper) == []


@pytest.mark.parametrize("fails_at", [{0: 6}, {0: 1, 1: 5, 2: 3}])
def test_what_a_worker_hands_in_and_when_depends_on_no_clock(new_plan, keep, monkeypatch, fails_at):
    told: list[list[tuple[int, int | None]]] = []
    for seconds in (0.0, 60.0):
        monkeypatch.setattr("studies.backends.worker.CHUNK_SECONDS", seconds)
        plan = new_plan(study=f"chunks-{seconds:g}")
        keeper = keep(plan)
        told.append([])
        exchange = keeper.exchange

        def noting(worker, reports, free_slots, *, exchange=exchange, mine=told[-1]):
            mine.extend((one.trial, one.reading.step if one.reading else None) for one in reports)
            mine.append((-1, free_slots))
            return exchange(worker, reports, free_slots)

        monkeypatch.setattr(keeper, "exchange", noting)
        worker_of(keeper, plan, TrivialRunner(fails_at=fails_at), slots=3).work()
    assert told[0] == told[1]
    assert {trial for trial, step in told[0] if step is None} == set(fails_at)


def test_a_score_that_is_not_a_number_fails_the_trial(new_plan, keep):
    plan = new_plan()
    worker_of(keep(plan), plan, TrivialRunner(scores={3: float("nan")}), slots=4).work()
    trial = recorded(plan)[3]
    assert (trial.state, trial.reason) == (TrialState.FAILED, "score is nan at step 4")


def leaves_at(runner: TrivialRunner, trial: int, step: int) -> Callable[[], bool]:
    """Wants to leave once a trial has reached a step."""
    reached: list[bool] = []

    def note(request, at):
        if (request.trial, at) == (trial, step):
            reached.append(True)

    runner.on_step = note
    return lambda: bool(reached)


def test_a_worker_that_leaves_lays_its_trials_aside_where_they_stand(new_plan, keep, one_step_at_a_time):
    plan = new_plan(target_trials=3, rungs=RungPlan(steps=(4, 8), reduction=3, rule=BestShare()))
    runner = TrivialRunner()
    keeper = keep(plan)
    assert worker_of(keeper, plan, runner, slots=2, should_leave=leaves_at(runner, 0, 6)).work()
    assert [trial.state for trial in recorded(plan)] == [TrialState.QUEUED] * 2
    with Ledger.open(plan.storage_url) as ledger:
        newest = ledger.artefacts(ledger.study(plan.study).id, 0)[-1]
    assert (newest.kind, newest.step) == ("snapshot", 6)
    assert broken(plan, keeper) == []


def test_a_trial_that_was_laid_aside_ends_with_the_score_of_one_that_was_not(new_plan, keep, one_step_at_a_time):
    plan = new_plan(target_trials=1)
    runner = TrivialRunner()
    worker_of(keep(plan), plan, runner, should_leave=leaves_at(runner, 0, 6)).work()
    again = TrivialRunner()
    worker_of(keep(plan), plan, again).work()
    trial = recorded(plan)[0]
    assert again.restored == [(0, 2, 6)]
    assert trial.score == score_at(trial.seed, 16)


def damage(path: str) -> None:
    Path(path).write_text("{")


@pytest.mark.parametrize(("damaged", "restored"), [(1, [(0, 2, 4)]), (2, [])])
def test_damaged_snapshots_are_passed_over_for_older_ones_and_then_for_the_start(
    new_plan, keep, one_step_at_a_time, damaged, restored
):
    plan = new_plan(target_trials=1)
    runner = TrivialRunner()
    worker_of(keep(plan), plan, runner, should_leave=leaves_at(runner, 0, 6)).work()
    with Ledger.open(plan.storage_url) as ledger:
        snapshots = ledger.artefacts(ledger.study(plan.study).id, 0)
    assert [one.step for one in snapshots] == [4, 6]
    for snapshot in snapshots[-damaged:]:
        damage(snapshot.path)
    again = TrivialRunner()
    keeper = keep(plan)
    worker_of(keeper, plan, again).work()
    trial = recorded(plan)[0]
    assert again.restored == restored
    assert trial.score == score_at(trial.seed, 16)
    assert broken(plan, keeper) == []


def test_a_full_disk_ends_the_launch_with_one_line_and_loses_nothing(new_plan, keep):
    class FullDisk(TrivialRunner):
        def save(self, snapshot, folder):
            raise OSError(28, "No space left on device")

    plan = new_plan(target_trials=2)
    with pytest.raises(LaunchError, match="No space left on device"):
        worker_of(keep(plan), plan, FullDisk()).work()
    worker_of(keep(plan), plan, TrivialRunner()).work()
    assert [trial.state.is_terminal for trial in recorded(plan)] == [True, True]


def test_a_worker_returns_in_time_and_goes_on_with_the_trials_in_its_slots(new_plan, keep):
    plan = new_plan(target_trials=2)
    runner = TrivialRunner(step_seconds=0.01)
    worker = worker_of(keep(plan), plan, runner, slots=2)
    rounds = 1
    while not worker.work(0.02):
        rounds += 1
    assert rounds > 1
    assert runner.admitted == [(0, 1), (1, 1)]


class Overheard:
    """A keeper, and what is handed in to it between two measurements."""

    def __init__(self, keeper: StudyKeeper) -> None:
        self._keeper = keeper
        self.between: list[tuple[int, int]] = []

    def exchange(self, worker: str, reports: Sequence[WorkerReport], free_slots: int) -> WorkerAnswer:
        if reports and all(report.reading is None and report.failure is None for report in reports):
            assert free_slots == 0
            self.between += [(one.trial, one.artefact.step) for one in reports if one.artefact is not None]
        return self._keeper.exchange(worker, reports, free_slots)

    def __getattr__(self, name: str) -> object:
        return getattr(self._keeper, name)


def test_snapshots_between_measurements_are_handed_in_and_change_no_trial(new_plan, keep, tmp_path, one_step_at_a_time):
    plain = new_plan(f"sqlite:///{tmp_path / 'plain.db'}", study="plain")
    worker_of(keep(plain), plain, TrivialRunner(), slots=2).work()
    plan = new_plan()
    keeper = Overheard(keep(plan))
    worker_of(keeper, plan, TrivialRunner(), slots=2, snapshot_seconds=0.0).work()  # type: ignore[arg-type]
    measured = set(plan.training.evaluate_at_steps)
    ends = {trial.number: trial.steps for trial in recorded(plan)}
    assert {(0, 1), (0, 2), (0, 3)} <= set(keeper.between)
    assert all(step not in measured and step < ends[trial] for trial, step in keeper.between)
    told = [(trial.fingerprint, trial.state, trial.score, trial.steps) for trial in recorded(plan)]
    assert told == [(trial.fingerprint, trial.state, trial.score, trial.steps) for trial in recorded(plain)]
    assert broken(plan, keeper._keeper) == []


def test_a_trial_goes_on_from_a_snapshot_between_measurements(new_plan, keep, one_step_at_a_time):
    plan = new_plan(target_trials=1)

    def pull_the_plug(request: TrialRequest, step: int) -> None:
        if (request.attempt, step) == (1, 3):
            raise SystemError

    keeper = keep(plan)
    runner = TrivialRunner(on_step=pull_the_plug)
    with pytest.raises(SystemError):
        worker_of(keeper, plan, runner, snapshot_seconds=0.0).work()
    keeper.crash("w/1", "lost")
    worker_of(keeper, plan, runner, name="w/2").work()
    assert runner.restored == [(0, 2, 2)]
    assert [trial.score for trial in recorded(plan)] == [score_at(recorded(plan)[0].seed, 16)]


def test_a_launch_that_was_taken_over_says_so_rather_than_that_its_files_are_gone(new_plan, keep):
    plan = new_plan(target_trials=2)

    class TakenOver(TrivialRunner):
        def save(self, snapshot, folder):
            keep(plan)
            raise FileNotFoundError(2, "No such file or directory")

    with pytest.raises(FencedError):
        worker_of(keep(plan), plan, TakenOver()).work()
