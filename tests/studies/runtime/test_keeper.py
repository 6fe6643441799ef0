"""The keeper: leases, decisions, takeovers, and late or repeated calls. On SQLite and PostgreSQL."""

import errno
import os
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from support.best_share import BestShare
from support.kept_study import report
from support.simulated_search import proposals

from studies.errors import FencedError, LaunchError, StudiesError
from studies.ledger.database import Database
from studies.ledger.ledger import Ledger
from studies.pruning.rungs import Protected, Rule, RungPlan
from studies.records import ArtefactRecord, EventKind, TrialReport, TrialState
from studies.runtime.artefacts import attempt_folder, describe_file, is_whole
from studies.runtime.keeper import MAX_CRASHES
from studies.runtime.messages import Decision
from studies.runtime.roster import MAX_LOSSES
from studies.runtime.trial_queue import AHEAD_PER
from studies.search.initial_design import InitialDesign
from trial_runner.example_losses import ExampleLosses
from trial_runner.requests import TrialRequest


@pytest.fixture
def checks_stop_requests_at_once(monkeypatch):
    """Check requests to stop at every call of the keeper."""
    monkeypatch.setattr("studies.runtime.keeper.STOP_REQUEST_SECONDS", 0.0)


def test_leases_are_recorded_as_running_before_they_are_given(storage_url, begin):
    study = begin(storage_url)
    requests = study.take(3)
    assert [(one.trial, one.attempt) for one in requests] == [(0, 1), (1, 1), (2, 1)]
    assert study.states == ["running"] * 3


def test_a_trial_that_a_person_stops_fails_and_frees_its_slot(storage_url, begin, checks_stop_requests_at_once):
    study = begin(storage_url)
    first, second = study.take(2)
    with study.opened() as (ledger, key):
        ledger.annotate(key, EventKind.STOP, "", 1)
        ledger.annotate(key, EventKind.STOP, "", 0)
        ledger.annotate(key, EventKind.NOTE, "no stop", None)
    assert study.tell(report(first, 2, 0.5)) == [Decision.ABANDON]
    ended = study.trials[0]
    assert (ended.state, ended.reason) == (TrialState.FAILED, "stopped by a user at step 0")
    assert study.states == ["failed", "failed", "running"]  # its place is taken at once
    assert study.tell(report(second, 2, 0.5)) == [Decision.ABANDON]
    assert not study.keeper.is_drained


def test_a_study_that_a_person_stops_ends_its_launch_and_no_later_one(storage_url, begin, checks_stop_requests_at_once):
    study = begin(storage_url)
    study.take(2)
    with study.opened() as (ledger, key):
        ledger.annotate(key, EventKind.STOP, "")
    assert study.keeper.heartbeat("w/1")
    study.keeper.leave("w/1", [])
    assert study.keeper.status().drained == "stopped by a user"
    assert study.states == ["queued", "queued"]
    study.take_over()
    assert not study.keeper.heartbeat("w/2")
    assert len(study.take(2, "w/2")) == 2


def test_the_last_trials_are_left_for_the_other_workers_too(begin):
    study = begin(target_trials=7)
    for worker in ("a/1", "b/1"):
        study.keeper.join(worker)
    counts = [len(study.take(4, worker)) for worker in ("a/1", "b/1", "a/1", "b/1", "a/1", "a/1")]
    assert counts == [4, 2, 1, 0, 0, 0]


def test_freed_slot_is_filled_in_the_same_exchange(begin):
    study = begin()
    answer = study.keeper.exchange("w/1", [report(study.take(1)[0], 16, 0.5)], 0)
    assert answer.decisions == (Decision.STOP,)
    assert [one.trial for one in answer.requests] == [1]
    failure = TrialReport(trial=1, attempt=1, state=TrialState.FAILED, reason="the loss is nan at step 2")
    assert len(study.keeper.exchange("w/1", [failure], 1).requests) == 1


def test_an_exchange_is_recorded_in_one_transaction_or_not_at_all(begin, monkeypatch):
    study = begin()
    first, second, third = study.take(3)
    writes, real = [], Database.write
    monkeypatch.setattr(Database, "write", lambda self, work: writes.append(work) or real(self, work))
    assert study.tell(report(first, 4, 0.5), report(second, 4, 0.6)) == [Decision.GO_ON] * 2
    assert len(writes) == 1
    monkeypatch.undo()
    unknown = ArtefactRecord(trial=third.trial, kind="?", step=8, path="", sha256="0" * 64, size_bytes=1)
    with pytest.raises(StudiesError):
        study.tell(report(first, 8, 0.5), report(third, 8, 0.5, unknown))
    with study.opened() as (ledger, key):
        assert [(one.trial, one.step) for one in ledger.readings(key)] == [(0, 4), (1, 4)]


def test_trials_are_proposed_ahead_of_need(storage_url, begin):
    study = begin(storage_url, target_trials=90)
    study.take(AHEAD_PER - 1)
    assert not study.keeper.prepare()
    study.take(AHEAD_PER + 1, worker="other/1")
    assert [study.keeper.prepare() for _ in range(3)] == [True, True, False]
    assert study.states == ["running"] * 2 * AHEAD_PER + ["queued"] * 2
    study.take_over()  # a takeover queues all
    assert not study.keeper.prepare()
    numbers = [one.trial for one in study.take(2 * AHEAD_PER + 3)]
    assert numbers == list(range(2 * AHEAD_PER + 3))
    study.keeper.drain("enough")
    assert not study.keeper.prepare()


def test_rungs_prune_and_published_methods_are_protected(storage_url, begin):
    study = begin(storage_url, initial_design=InitialDesign(published=("bitfit",)))
    published, good, bad = study.take(3)
    assert study.tell(report(good, 4, 0.9), report(published, 4, 0.1)) == [Decision.GO_ON, Decision.GO_ON]
    assert study.tell(report(bad, 4, 0.2)) == [Decision.STOP]
    pruned = study.trials[2]
    assert (pruned.state, pruned.score) == (TrialState.PRUNED, None)
    assert pruned.reason == "rung 0 (4 steps): 0.2 below the cut 0.9"


def test_a_rung_that_was_passed_stays_passed_in_the_next_attempt(begin):
    study = begin()
    low, *others = study.take(4)
    assert study.tell(report(low, 4, 0.1)) == [Decision.GO_ON]
    study.tell(*(report(one, 4, 0.9) for one in others))
    study.take_over()
    (request,) = [one for one in study.take(4) if one.trial == low.trial]
    assert request.attempt == 2
    assert study.tell(report(request, 4, 0.1)) == [Decision.GO_ON]


def test_takeover_requeues_running_trials_first(storage_url, begin):
    study = begin(storage_url)
    first, second = study.take(2)
    study.tell(report(second, 4, 0.5, study.written(second, 4)))
    study.tell(report(second, 8, 0.6, study.written(second, 8)))
    study.take_over()
    assert study.states == ["queued", "queued"]
    answer = study.keeper.exchange("w/1", [], 3)
    requests = answer.requests
    assert [(one.trial, one.attempt) for one in requests] == [(0, 2), (1, 2), (2, 1)]
    assert [(one.trial, one.step) for one in answer.snapshots] == [(1, 8), (1, 4)]
    assert requests[1].seed == second.seed
    assert requests[1].configuration == second.configuration
    assert requests[0].learning_rates == first.learning_rates


def test_earlier_keeper_is_fenced(storage_url, begin):
    study = begin(storage_url)
    earlier, (request,) = study.keeper, study.take(1)
    study.take_over()
    with pytest.raises(FencedError):
        earlier.exchange("w/1", [report(request, 16, 0.5)], 0)
    with pytest.raises(FencedError):
        earlier.heartbeat("w/1")
    assert study.states == ["queued"]


def test_a_late_report_of_an_earlier_attempt_is_abandoned(storage_url, begin):
    study = begin(storage_url, target_trials=1)
    request = study.take(1)[0]
    study.take_over()
    study.take(1, "w/2")
    artefact = study.written(request, 16)
    assert study.tell(report(request, 16, 0.9, artefact)) == [Decision.ABANDON]
    assert study.states == ["running"]
    assert not Path(artefact.path).exists()


def test_a_report_that_is_repeated_is_recorded_once(storage_url, begin):
    study = begin(storage_url, target_trials=1)
    request = study.take(1)[0]
    again = TrialReport(trial=0, attempt=1)
    assert study.tell(report(request, 16, 0.5), again) == [Decision.STOP, Decision.ABANDON]
    assert study.tell(report(request, 16, 0.7)) == [Decision.ABANDON]
    with study.opened() as (ledger, key):
        assert ledger.trial(key, 0).score == 0.5
        assert len(ledger.readings(key)) == 1


@pytest.mark.parametrize("times", [1, 2])
def test_progress_counts_a_repeated_report_once(new_plan, keep, times):
    """Repeat the call of a worker after a lost answer."""
    now = [0.0]
    keeper = keep(new_plan(target_trials=2), clock=lambda: now[0])
    first, second = keeper.exchange("w/1", [], 2).requests
    now[0] = 8.0
    for _ in range(times):
        answer = keeper.exchange("w/1", [report(first, 8, 0.5), report(second, 8, 0.6)], 0)
        assert list(answer.decisions) == [Decision.GO_ON] * 2
    progress = keeper.progress()
    # 16 steps of both took 8 seconds, and 16 are left
    assert progress.left.seconds == pytest.approx(8.0)
    assert [(one.number, one.step, one.score) for one in progress.running] == [(0, 8, 0.5), (1, 8, 0.6)]
    assert [len(keeper.history.readings(number)) for number in (0, 1)] == [1, 1]
    now[0] = 16.0
    ending = [report(first, 16, 0.5), report(second, 16, 0.6)]
    keeper.exchange("w/1", ending, 0)
    if times > 1:
        assert list(keeper.exchange("w/1", ending, 0).decisions) == [Decision.ABANDON] * 2
    ended = keeper.progress()
    assert (ended.ended, ended.ended_here, ended.counts[TrialState.RUNNING]) == (2, 2, 0)
    assert [one.number for one in ended.just_ended] == [0, 1]


def test_repeated_report_after_takeover_keeps_its_file(begin):
    study = begin()
    request = study.take(1)[0]
    artefact = study.written(request, 4)
    study.tell(report(request, 4, 0.5, artefact))
    study.take_over()
    assert study.tell(report(request, 4, 0.5, artefact)) == [Decision.ABANDON]
    assert is_whole(artefact)


def test_another_incarnation_of_a_worker_takes_its_place(storage_url, begin):
    study = begin(storage_url)
    study.keeper.join("w/1")
    request = study.take(1, "w/1")[0]
    study.keeper.join("w/1")  # twice
    assert study.states == ["running"]
    study.keeper.join("w/2")
    assert study.states == ["queued"]
    assert study.keeper.heartbeat("w/1")
    answer = study.keeper.exchange("w/1", [report(request, 16, 0.9)], 5)
    assert answer.decisions == (Decision.ABANDON,)
    assert (answer.requests, answer.is_over) == ((), True)
    again = study.take(1, "w/2")[0]
    assert (again.trial, again.attempt) == (0, 2)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["", "ended for want of memory"])
def test_a_silent_worker_loses_its_trials_and_a_heartbeat_keeps_them(loss, storage_url, begin):
    study = begin(storage_url, lease_seconds=2.5)  # a look at a database may take a second
    study.keeper.join("silent/1")
    study.keeper.join("w/1")
    study.take(1, "silent/1")
    study.take(1, "w/1")
    if loss:  # and nobody has taken its place yet
        study.keeper.ended("silent", loss)
    until = time.monotonic() + 60
    while study.states != ["queued", "running"]:
        assert time.monotonic() < until
        time.sleep(0.01)
        heard_at = datetime.now(UTC)
        study.keeper.heartbeat("w/1")
    assert study.broken(heard_at) == [], "whatever time a look at the database takes"
    assert study.event_texts("lost") == [f"attempt 1 on silent/1: {loss or 'silent for 2.5 s'}"]


def test_a_pause_of_the_keeper_is_no_silence_of_its_workers(storage_url, begin):
    study = begin(storage_url, lease_seconds=0.6)
    study.is_checked = False  # v/1 is not heard again
    for worker in ("w/1", "v/1"):
        study.keeper.join(worker)
        study.take(1, worker)
    time.sleep(0.8)  # the keeper's process is stopped, or its database locked
    assert not study.keeper.status().is_done
    study.keeper.heartbeat("w/1")
    assert study.states == ["running", "running"]
    with study.opened() as (ledger, key):
        lasts = {attempt.worker: attempt.lease_expires_at for attempt in ledger.attempts(key)}
    assert lasts["w/1"] > lasts["v/1"], "who is heard again has its leases renewed at once"


def test_a_trial_that_is_lost_again_and_again_fails(storage_url, begin):
    study = begin(storage_url)
    for incarnation in range(MAX_LOSSES + 1):
        study.keeper.join(f"w/{incarnation}")
        study.take(1, f"w/{incarnation}")
    assert str(study.trials[0].reason).startswith("lost 3 times in a row")
    assert study.trials[0].attempt == MAX_LOSSES
    assert study.states == ["failed", "running"]


def test_a_reading_between_two_losses_makes_the_count_begin_again(begin):
    study = begin()
    for incarnation in range(MAX_LOSSES + 2):
        study.keeper.join(f"w/{incarnation}")
        request = study.take(1, f"w/{incarnation}")[0]
        study.tell(report(request, incarnation + 1, 0.5), worker=f"w/{incarnation}")
    assert study.states == ["running"]


def test_losses_are_counted_over_launches_and_the_trial_fails_at_the_next(storage_url, begin):
    study = begin(storage_url)
    for launch in range(MAX_LOSSES):
        assert [one.attempt for one in study.take(1)] == [launch + 1]
        study.take_over()
    trial = study.trials[0]
    assert study.losses == {}
    assert (trial.state, trial.attempt) == (TrialState.FAILED, MAX_LOSSES)
    assert trial.reason == "lost 3 times in a row without a reading; the last: its launch ended with it"
    assert [one.trial for one in study.take(1)] == [1]


def test_losses_over_launches_that_a_reading_separates_do_not_add_up(storage_url, begin):
    study = begin(storage_url)
    for launch in range(MAX_LOSSES + 2):
        study.tell(report(study.take(1)[0], launch + 1, 0.5))
        assert study.losses == {}
        study.take_over()
        assert study.losses == {0: 1}
    assert study.states == ["queued"]


def test_repeated_step_does_not_reset_the_count(begin):
    study = begin()
    study.tell(report(study.take(1)[0], 4, 0.5))
    for _ in range(MAX_LOSSES):
        study.keeper.crash("w/1", "out of memory")
        for request in study.take(1):
            study.tell(report(request, 4, 0.5))
    assert study.states[0] == "failed"


def test_trials_laid_aside_launch_after_launch_are_not_lost(storage_url, begin):
    study = begin(storage_url)
    for _ in range(MAX_LOSSES + 1):
        assert len(study.take(2)) == 2
        study.keeper.leave("w/1", ())
        study.take_over()
    study.take(2)
    study.take_over()
    assert study.states == ["queued", "queued"]
    assert study.losses == {0: 1, 1: 1}


def test_suspect_trial_is_leased_alone_until_its_first_reading(begin):
    study = begin()
    for _ in range(MAX_LOSSES - 1):
        study.take(2)
        study.take_over()
    (suspect,) = study.take(2)
    assert suspect.trial == 0
    assert study.take(1) == []
    answer = study.keeper.exchange("w/1", [report(suspect, 4, 0.5)], 1)
    assert [one.trial for one in answer.requests] == [2]
    (other,) = study.take(2, "w/2")
    assert other.trial == 1


def test_crashes_in_a_row_end_the_launch_with_the_last_text(begin):
    study = begin()
    for _ in range(MAX_CRASHES - 1):
        study.keeper.crash("w/1", "out of memory")
    with pytest.raises(LaunchError, match="crashed 5 times in a row; the last error: out of memory"):
        study.keeper.crash("w/1", "out of memory")
    assert study.keeper.is_drained
    assert study.keeper.status().halted is not None


def test_leaving_lays_trials_aside_and_is_no_loss(storage_url, begin):
    study = begin(storage_url)
    for _ in range(MAX_LOSSES + 1):
        request = study.take(1)[0]
        last = TrialReport(trial=0, attempt=request.attempt, artefact=study.written(request, 3))
        study.keeper.leave("w/1", [last])
        assert study.states == ["queued"]
    assert [one.step for one in study.keeper.exchange("w/1", [], 1).snapshots] == [3]


def test_drained_keeper_leases_no_trials_and_ends_workers(begin):
    study = begin()
    request = study.take(1)[0]
    study.keeper.drain("the time budget is used up")
    assert study.keeper.heartbeat("w/1")
    answer = study.keeper.exchange("w/1", [report(request, 4, 0.5)], 3)
    assert (answer.requests, answer.is_over) == ((), True)
    assert answer.decisions == (Decision.GO_ON,)
    status = study.keeper.status()
    assert not status.is_done
    assert status.summary == "stopped after 0 of 8 trials: the time budget is used up"


def test_an_error_of_the_ledger_halts_the_keeper(begin, monkeypatch):
    study = begin()
    request = study.take(1)[0]

    def locked(*args: object, **named: object) -> None:
        raise StudiesError("the database is locked by another process.")

    monkeypatch.setattr(Ledger, "settle_all", locked)
    with pytest.raises(StudiesError, match="locked"):
        study.tell(report(request, 4, 0.5))
    monkeypatch.undo()
    with pytest.raises(StudiesError, match="locked"):
        study.take(1)
    study.take_over()
    assert [one.attempt for one in study.take(1)] == [2]


def test_unrecorded_files_are_removed_at_takeover_and_end(begin):
    study = begin()
    request = study.take(1)[0]
    kept = study.written(request, 4)
    study.tell(report(request, 4, 0.5, kept))
    orphan = study.written(request, 7)
    foreign = study.plan.artefacts / "notes.txt"
    foreign.write_text("not ours")
    for sweep in (study.take_over, lambda: study.keeper.finish("finished")):
        sweep()
        assert is_whole(kept)
        assert not is_whole(orphan)
        assert foreign.exists()
        assert study.written(request, 7) == orphan  # a late one


def test_file_outside_the_studys_folder_is_left_alone(begin, tmp_path):
    study = begin(target_trials=1)
    request = study.take(1)[0]
    study.tell(report(request, 4, 0.5, study.written(request, 4)))
    outside = tmp_path / "elsewhere" / "trial-0" / "attempt-1" / "precious"
    outside.parent.mkdir(parents=True)
    outside.write_text("mine")
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as link, link:
        assert link.execute("UPDATE artefacts SET path = ?", (str(outside),)).rowcount == 1
    study.take_over()
    answer = study.keeper.exchange("w/1", [], 1)
    (request,) = answer.requests
    assert (request.attempt, answer.snapshots) == (2, ())
    file = describe_file(outside, trial=0, kind="snapshot", step=4)
    assert study.tell(report(replace(request, attempt=1), 4, 0.5, file)) == [Decision.ABANDON]
    assert study.tell(report(request, 8, 0.5), report(request, 16, 0.5)) == [Decision.GO_ON, Decision.STOP]
    assert outside.read_text() == "mine"
    assert study.artefacts == []
    assert study.event_texts("undeleted") == [
        f"{outside} cannot be deleted: it lies outside the study's folder, and is not read either"
    ]


def test_a_sweep_does_not_follow_a_link_out_of_the_studys_folder(begin, tmp_path):
    study = begin()
    request = study.take(1)[0]
    outside = tmp_path / "elsewhere" / "precious"
    outside.parent.mkdir()
    outside.write_text("mine")
    place = attempt_folder(study.plan.artefacts, request.trial, request.attempt)
    place.parent.mkdir()
    place.symlink_to(outside.parent)
    study.take_over()
    assert outside.read_text() == "mine"


def test_a_takeover_takes_no_file_from_a_worker_of_another_launch(begin):
    study = begin()
    request = study.take(1)[0]
    fresh = study.written(request, 4)
    study.keeper.finish("a sweep while the worker has not handed its file in yet")
    assert is_whole(fresh)
    assert study.tell(report(request, 4, 0.5, fresh)) == [Decision.GO_ON]


def test_a_folder_in_the_place_of_a_file_ends_no_launch(storage_url, begin):
    study = begin(storage_url, target_trials=1)
    request = study.take(1)[0]
    kept = study.written(request, 4)
    study.tell(report(request, 4, 0.5, kept))
    Path(kept.path).unlink()
    Path(kept.path).mkdir()
    assert study.tell(report(request, 16, 0.5)) == [Decision.STOP]
    study.keeper.finish("finished")
    assert study.states == ["complete"]
    (text,) = study.event_texts("undeleted")
    assert text.startswith(f"{kept.path} cannot be deleted: ")


def refuse(path: Path, missing_ok: bool = False) -> None:
    """Let no file be deleted, as on a file system that was mounted to be read."""
    raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))


def test_undeletable_file_is_reported_once_and_retried(begin, monkeypatch):
    study = begin(target_trials=1)
    request = study.take(1)[0]
    kept = study.written(request, 4)
    study.tell(report(request, 4, 0.5, kept))
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        assert study.tell(report(request, 16, 0.5)) == [Decision.STOP]
        study.keeper.finish("finished")
    assert study.event_texts("undeleted") == [f"{kept.path} cannot be deleted: {os.strerror(errno.EROFS)}"]
    assert Path(kept.path).exists()
    study.keeper.finish("finished again")
    assert not Path(kept.path).exists()


def test_progress_has_counts_the_best_and_running_trials(begin):
    study = begin(target_trials=3)
    first, second, third = study.take(3)
    study.tell(report(first, 16, 0.5), report(second, 16, 0.7), report(third, 4, 0.6))
    progress = study.keeper.progress()
    assert progress.counts[TrialState.COMPLETE] == 2
    assert progress.counts[TrialState.RUNNING] == 1
    assert (progress.ended, progress.target_trials) == (2, 3)
    assert progress.best is not None
    assert (progress.best.number, progress.best.score) == (1, 0.7)
    assert progress.best.stored_parameters <= progress.budget_parameters
    assert [(one.number, one.step, one.score) for one in progress.running] == [(2, 4, 0.6)]
    assert progress.steps == 16
    assert progress.left is not None
    study.take_over()
    rebuilt = study.keeper.progress()
    assert (rebuilt.best, rebuilt.ended) == (progress.best, 2)
    assert rebuilt.counts[TrialState.QUEUED] == 1
    assert rebuilt.left is None


def test_exhausted_space_ends_a_study_before_its_target(begin, space):
    from search_space.space.space import SearchSpace, SpaceOptions

    options = SpaceOptions(
        attention_forms=(), ffn_forms=("const",), learning_rates={"const": (1e-3, 1e-3)}, published=()
    )
    small = SearchSpace(shape=space.shape, budget=600_000, options=options)
    study = begin(space=small, target_trials=9)
    requests = study.take(9)
    assert len(requests) == 3
    study.tell(*(report(one, 16, 0.5) for one in requests))
    status = study.keeper.status()
    assert status.is_done
    assert status.summary.startswith("finished: 3 trials, and nothing is left to try")


@pytest.mark.parametrize("takes_over", [False, True])
def test_collapsed_protected_method_stops_with_recorded_reason(begin, takes_over):
    rungs = RungPlan(
        steps=(4, 8),
        protected=Protected.ALL,
        stops_collapsed=True,
        guessing_loss=0.7,
    )
    study = begin(target_trials=6, rungs=rungs, initial_design=InitialDesign(published=("lora_qv",)))
    published, *others = study.take(5)

    def of(request: TrialRequest, step: int, loss: float, same: float) -> TrialReport:
        collapsed = report(request, step, 0.5)
        metrics = {"validation_loss": loss, "same_prediction": same}
        return replace(collapsed, reading=replace(collapsed.reading, metrics=metrics, train_loss=loss))

    assert set(study.tell(*(of(request, 4, 0.6, 0.6) for request in others))) == {Decision.GO_ON}
    if takes_over:
        study.take_over()
        (published,) = [one for one in study.take(5) if one.trial == 0]
    assert study.tell(of(published, 4, 0.71, 1.0)) == [Decision.STOP]
    stopped = study.trials[0]
    assert (stopped.state, stopped.method) == (TrialState.PRUNED, "lora_qv")
    reason = "rung 0 (4 steps): collapsed: all its predictions are the same, its loss is 0.71, and guessing has 0.7"
    assert stopped.reason == reason


@pytest.mark.parametrize("takes_over", [False, True])
def test_examples_of_readings_at_rungs_are_recorded(begin, takes_over):
    study = begin(target_trials=2, rungs=RungPlan(steps=(4,)))
    first, second = study.take(2)
    rights = [np.arange(400) < right for right in (208, 200)]
    examples = [ExampleLosses.of(1.0 - right, right) for right in rights]
    assert study.tell(report(first, 4, 0.52, examples=examples[0])) == [Decision.GO_ON]
    if takes_over:
        study.take_over()
        _, second = study.take(2)
    assert study.tell(report(second, 4, 0.5, examples=examples[1])) == [Decision.GO_ON]
    with study.opened() as (ledger, key):
        kept = [(one.trial, one.step, one.scores.sum()) for one in ledger.examples(key)]
    assert kept == [(0, 4, 208), (1, 4, 200)]


def test_takeover_proposes_the_same_pack(begin):
    rungs = RungPlan(steps=(4, 8), rule=BestShare(), protected=Protected.BEST, examples=200)
    published = ("lora_qv", "mam_adapter", "bitfit", "head_only")
    study = begin(sampler="factored", rungs=rungs, initial_design=InitialDesign(published=published), target_trials=40)
    held, measured = {request.trial: request for request in study.take(4)}, set()
    for _ in range(10):
        reports = []
        for trial, request in held.items():
            if trial % 7 == 6:
                reports.append(
                    TrialReport(trial=trial, attempt=1, state=TrialState.FAILED, reason="the loss is nan at step 2")
                )
            else:
                reports.append(report(request, 16 if trial in measured else 4, 0.3 + 0.1 * (trial % 5)))
        measured |= {*held}
        answer = study.keeper.exchange("w/1", reports, sum(one.state is TrialState.FAILED for one in reports))
        decided = zip(reports, answer.decisions, strict=True)
        going = {one.trial for one, decision in decided if decision is Decision.GO_ON}
        held = {trial: request for trial, request in held.items() if trial in going}
        held |= {request.trial: request for request in answer.requests}
    assert {*study.states} == {"complete", "pruned", "failed", "running"}
    tried, before = study.trials, study.keeper
    study.take_over()
    expected, found = (
        [one.fingerprint for one in proposals(keeper.proposer, 3, keeper.history)] for keeper in (before, study.keeper)
    )
    assert found == expected
    assert len({*expected, *(trial.fingerprint for trial in tried)}) == len(tried) + 3
    study.take_over()


BY_MEDIAN = RungPlan(steps=(4, 8), rule=Rule.MEDIAN, examples=4000)


def test_by_the_median_a_takeover_decides_as_the_keeper_would_have(begin):
    def decisions(name: str, *, takes_over: bool) -> list[str | None]:
        initial_design = InitialDesign(published=("lora_qv", "mam_adapter"))
        study = begin(study=name, sampler="factored", rungs=BY_MEDIAN, initial_design=initial_design, target_trials=20)
        requests = {request.trial: request for request in study.take(20)}
        for trial in range(20):
            if takes_over and trial == 14:
                study.take_over()
                requests |= {request.trial: request for request in study.take(20)}
            score = 0.6 if trial < 2 else 0.2 + 0.03 * (trial * 5 % 7)
            for step, gain in ((4, 0.0), (8, 0.1), (16, 0.2)):
                if study.tell(report(requests[trial], step, score + gain)) == [Decision.STOP]:
                    break
        return [one.reason for one in study.trials]

    whole = decisions("whole", takes_over=False)
    assert decisions("broken", takes_over=True) == whole
    assert 0 < sum(one is not None for one in whole[11:]) < 9
