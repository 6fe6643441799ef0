"""The keeper: leases, decisions, takeovers, and late or repeated calls. On SQLite and PostgreSQL."""

import errno
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from studies.errors import FencedError, LaunchError, StudiesError
from studies.ledger.database import Database
from studies.ledger.invariants import violations
from studies.ledger.ledger import Ledger
from studies.pruning.rungs import Protected, Rule, RungPlan
from studies.records import ArtefactRecord, EventKind, TrialState
from studies.runtime.artefacts import attempt_folder, describe_file, is_whole
from studies.runtime.keeper import MAX_CRASHES, StudyKeeper
from studies.runtime.messages import Decision, Lease, WorkerReport
from studies.runtime.roster import MAX_LOSSES
from studies.runtime.study_plan import StudyPlan
from studies.runtime.trial_queue import AHEAD_PER
from studies.search.initial_design import InitialDesign
from studies.verification import replay_violations
from trial_runner.example_losses import ExampleLosses
from trial_runner.requests import Reading


def reading(trial: int, step: int, score: float) -> Reading:
    return Reading(trial=trial, step=step, score=score, metrics={"accuracy": score}, train_loss=0.5, seconds=0.1)


def report(lease: Lease, step: int, score: float, artefact: ArtefactRecord | None = None) -> WorkerReport:
    trial = lease.request.trial
    return WorkerReport(
        trial=trial, attempt=lease.request.attempt, reading=reading(trial, step, score), artefact=artefact
    )


def written(plan: StudyPlan, lease: Lease, step: int) -> ArtefactRecord:
    """A snapshot file, and its record."""
    folder = attempt_folder(plan.artefacts, lease.request.trial, lease.request.attempt)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"step-{step}.json"
    path.write_text(str(step))
    return describe_file(path, trial=lease.request.trial, kind="snapshot", step=step)


def take(keeper: StudyKeeper, count: int, worker: str = "w/1") -> list[Lease]:
    return list(keeper.exchange(worker, [], count).leases)


def tell(keeper: StudyKeeper, *reports: WorkerReport, worker: str = "w/1") -> list[Decision]:
    return list(keeper.exchange(worker, reports, 0).decisions)


@contextmanager
def opened(plan: StudyPlan) -> Iterator[tuple[Ledger, int]]:
    with Ledger.open(plan.storage_url) as ledger:
        yield ledger, ledger.study(plan.study).id


def broken(plan: StudyPlan, keeper: StudyKeeper, now: datetime | None = None) -> list[str]:
    with opened(plan) as (ledger, key):
        return violations(ledger, key, rung_steps=plan.rungs.steps, now=now) + list(
            replay_violations(ledger, key, keeper.proposer)
        )


def states(plan: StudyPlan) -> list[str]:
    with opened(plan) as (ledger, key):
        return [trial.state.value for trial in ledger.trials(key)]


def test_leases_are_recorded_as_running_before_they_are_given(new_plan, keep, storage_url):
    plan = new_plan(storage_url)
    keeper = keep(plan)
    leases = take(keeper, 3)
    assert [(one.request.trial, one.request.attempt) for one in leases] == [(0, 1), (1, 1), (2, 1)]
    assert states(plan) == ["running"] * 3
    assert broken(plan, keeper) == []


def test_a_trial_that_a_person_stops_fails_and_frees_its_slot(new_plan, keep, storage_url, monkeypatch):
    monkeypatch.setattr("studies.runtime.keeper._HEED_SECONDS", 0.0)
    plan = new_plan(storage_url)
    keeper = keep(plan)
    first, second = take(keeper, 2)
    with opened(plan) as (ledger, key):
        ledger.annotate(key, EventKind.STOP, "", 1)
        ledger.annotate(key, EventKind.STOP, "", 0)
        ledger.annotate(key, EventKind.NOTE, "no stop", None)
    assert tell(keeper, report(first, 2, 0.5)) == [Decision.ABANDON]
    with opened(plan) as (ledger, key):
        ended = ledger.trial(key, 0)
    assert (ended.state, ended.reason) == (TrialState.FAILED, "a person stopped it at step 0")
    assert states(plan) == ["failed", "failed", "running"]  # its place is taken at once
    assert tell(keeper, report(second, 2, 0.5)) == [Decision.ABANDON]
    assert not keeper.is_drained
    assert broken(plan, keeper) == []


def test_a_study_that_a_person_stops_ends_its_launch_and_no_later_one(new_plan, keep, storage_url, monkeypatch):
    monkeypatch.setattr("studies.runtime.keeper._HEED_SECONDS", 0.0)
    plan = new_plan(storage_url)
    keeper = keep(plan)
    take(keeper, 2)
    with opened(plan) as (ledger, key):
        ledger.annotate(key, EventKind.STOP, "")
    assert keeper.heartbeat("w/1")
    keeper.leave("w/1", [])
    assert keeper.standing().drained == "a person stopped it"
    assert states(plan) == ["queued", "queued"]
    later = keep(plan)
    assert not later.heartbeat("w/2")
    assert len(take(later, 2, "w/2")) == 2
    assert broken(plan, later) == []


def test_the_last_trials_are_left_for_the_other_workers_too(new_plan, keep):
    keeper = keep(new_plan(target_trials=7))
    for worker in ("a/1", "b/1"):
        keeper.join(worker)
    lent = [len(take(keeper, 4, worker)) for worker in ("a/1", "b/1", "a/1", "b/1", "a/1", "a/1")]
    assert lent == [4, 2, 1, 0, 0, 0]


def test_the_slot_of_a_trial_that_stops_is_filled_in_the_same_exchange(new_plan, keep):
    keeper = keep(new_plan())
    first = take(keeper, 1)[0]
    answer = keeper.exchange("w/1", [report(first, 16, 0.5)], 0)
    assert answer.decisions == (Decision.STOP,)
    assert [one.request.trial for one in answer.leases] == [1]


def test_the_slot_of_a_failed_trial_is_not_counted_twice(new_plan, keep):
    keeper = keep(new_plan())
    first = take(keeper, 1)[0]
    failure = WorkerReport(trial=0, attempt=first.request.attempt, failure="the loss is nan at step 2")
    assert len(keeper.exchange("w/1", [failure], 1).leases) == 1


def test_an_exchange_is_recorded_in_one_transaction_or_not_at_all(new_plan, keep, monkeypatch):
    plan = new_plan()
    keeper = keep(plan)
    first, second, third = take(keeper, 3)
    writes, real = [], Database.write
    monkeypatch.setattr(Database, "write", lambda self, work: writes.append(work) or real(self, work))
    assert tell(keeper, report(first, 4, 0.5), report(second, 4, 0.6)) == [Decision.GO_ON] * 2
    assert len(writes) == 1
    monkeypatch.undo()
    unknown = ArtefactRecord(trial=third.request.trial, kind="?", step=8, path="", sha256="0" * 64, size_bytes=1)
    with pytest.raises(StudiesError):
        tell(keeper, report(first, 8, 0.5), report(third, 8, 0.5, unknown))
    with opened(plan) as (ledger, key):
        assert [(one.trial, one.step) for one in ledger.readings(key)] == [(0, 4), (1, 4)]


def test_what_is_reported_of_a_trial_that_has_just_ended_is_abandoned(new_plan, keep):
    plan = new_plan()
    keeper = keep(plan)
    (lease,) = take(keeper, 1)
    again = WorkerReport(trial=lease.request.trial, attempt=lease.request.attempt)
    assert tell(keeper, report(lease, plan.training.steps, 0.5), again) == [Decision.STOP, Decision.ABANDON]
    assert broken(plan, keeper) == []


def test_trials_are_proposed_ahead_of_need_where_many_run_and_wait_in_the_ledger(new_plan, keep, storage_url):
    plan = new_plan(storage_url, target_trials=90)
    keeper = keep(plan)
    take(keeper, AHEAD_PER - 1)
    assert not keeper.prepare()
    take(keeper, AHEAD_PER + 1, worker="other/1")
    assert [keeper.prepare() for _ in range(3)] == [True, True, False]
    assert states(plan) == ["running"] * 2 * AHEAD_PER + ["queued"] * 2
    assert broken(plan, keeper) == []
    again = keep(plan)  # a takeover queues all
    assert not again.prepare()
    numbers = [one.request.trial for one in take(again, 2 * AHEAD_PER + 3)]
    assert numbers == list(range(2 * AHEAD_PER + 3))
    assert broken(plan, again) == []
    again.drain("enough")
    assert not again.prepare()


def test_rungs_prune_and_published_methods_are_protected(new_plan, keep, storage_url):
    plan = new_plan(storage_url, opening=InitialDesign(published=("bitfit",)))
    keeper = keep(plan)
    published, good, bad = take(keeper, 3)
    assert tell(keeper, report(good, 4, 0.9), report(published, 4, 0.1)) == [Decision.GO_ON, Decision.GO_ON]
    assert tell(keeper, report(bad, 4, 0.2)) == [Decision.STOP]
    with opened(plan) as (ledger, key):
        pruned = ledger.trial(key, 2)
    assert (pruned.state, pruned.score) == (TrialState.PRUNED, None)
    assert pruned.reason == "rung 0 (4 steps): 0.2 below the cut 0.9"
    assert broken(plan, keeper) == []


def test_a_rung_that_was_passed_stays_passed_in_the_next_attempt(new_plan, keep):
    plan = new_plan()
    keeper = keep(plan)
    low, *others = take(keeper, 4)
    assert tell(keeper, report(low, 4, 0.1)) == [Decision.GO_ON]
    tell(keeper, *(report(one, 4, 0.9) for one in others))
    again = keep(plan)
    (lease,) = [one for one in take(again, 4) if one.request.trial == low.request.trial]
    assert lease.request.attempt == 2
    assert tell(again, report(lease, 4, 0.1)) == [Decision.GO_ON]
    assert broken(plan, again) == []


def test_a_takeover_queues_what_ran_and_gives_it_out_first_with_its_snapshots(new_plan, keep, storage_url):
    plan = new_plan(storage_url)
    keeper = keep(plan)
    first, second = take(keeper, 2)
    tell(keeper, report(second, 4, 0.5, written(plan, second, 4)))
    tell(keeper, report(second, 8, 0.6, written(plan, second, 8)))
    again = keep(plan)
    assert states(plan) == ["queued", "queued"]
    leases = take(again, 3)
    assert [(one.request.trial, one.request.attempt) for one in leases] == [(0, 2), (1, 2), (2, 1)]
    assert [one.step for one in leases[1].snapshots] == [8, 4]
    assert leases[1].request.seed == second.request.seed
    assert leases[1].request.configuration == second.request.configuration
    assert leases[0].request.learning_rates == first.request.learning_rates
    assert broken(plan, again) == []


def test_an_earlier_keeper_is_fenced_and_writes_nothing(new_plan, keep, storage_url):
    plan = new_plan(storage_url)
    earlier = keep(plan)
    lease = take(earlier, 1)[0]
    keep(plan)
    with pytest.raises(FencedError):
        tell(earlier, report(lease, 16, 0.5))
    with pytest.raises(FencedError):
        earlier.heartbeat("w/1")
    assert states(plan) == ["queued"]


def test_a_late_report_of_an_earlier_attempt_is_abandoned(new_plan, keep, storage_url):
    plan = new_plan(storage_url, target_trials=1)
    lease = take(keep(plan), 1)[0]
    keeper = keep(plan)
    take(keeper, 1, "w/2")
    artefact = written(plan, lease, 16)
    assert tell(keeper, report(lease, 16, 0.9, artefact)) == [Decision.ABANDON]
    assert states(plan) == ["running"]
    assert not Path(artefact.path).exists()
    assert broken(plan, keeper) == []


def test_a_report_that_is_repeated_is_recorded_once(new_plan, keep, storage_url):
    plan = new_plan(storage_url, target_trials=1)
    keeper = keep(plan)
    lease = take(keeper, 1)[0]
    assert tell(keeper, report(lease, 16, 0.5)) == [Decision.STOP]
    assert tell(keeper, report(lease, 16, 0.7)) == [Decision.ABANDON]
    with opened(plan) as (ledger, key):
        assert ledger.trial(key, 0).score == 0.5
        assert len(ledger.readings(key)) == 1


def test_a_repeated_report_after_a_takeover_does_not_delete_the_file_it_brought(new_plan, keep):
    plan = new_plan()
    keeper = keep(plan)
    lease = take(keeper, 1)[0]
    artefact = written(plan, lease, 4)
    tell(keeper, report(lease, 4, 0.5, artefact))
    assert tell(keep(plan), report(lease, 4, 0.5, artefact)) == [Decision.ABANDON]
    assert is_whole(artefact)


def test_another_incarnation_of_a_worker_takes_its_place(new_plan, keep, storage_url):
    plan = new_plan(storage_url)
    keeper = keep(plan)
    keeper.join("w/1")
    lease = take(keeper, 1, "w/1")[0]
    keeper.join("w/2")
    assert states(plan) == ["queued"]
    assert keeper.heartbeat("w/1")
    answer = keeper.exchange("w/1", [report(lease, 16, 0.9)], 5)
    assert answer.decisions == (Decision.ABANDON,)
    assert (answer.leases, answer.is_over) == ((), True)
    again = take(keeper, 1, "w/2")[0]
    assert (again.request.trial, again.request.attempt) == (0, 2)
    assert broken(plan, keeper) == []


def test_joining_twice_loses_nothing(new_plan, keep):
    plan = new_plan()
    keeper = keep(plan)
    keeper.join("w/1")
    take(keeper, 1)
    keeper.join("w/1")
    assert states(plan) == ["running"]


@pytest.mark.parametrize("known", ["", "ended for want of memory"])
def test_a_silent_worker_loses_its_trials_and_a_heartbeat_keeps_them(known, new_plan, keep, storage_url):
    plan = new_plan(storage_url, lease_seconds=2.5)  # a look at a database may take a second
    keeper = keep(plan)
    keeper.join("silent/1")
    keeper.join("w/1")
    take(keeper, 1, "silent/1")
    take(keeper, 1, "w/1")
    if known:  # and nobody has taken its place yet
        keeper.ended("silent", known)
    until = time.monotonic() + 60
    while states(plan) != ["queued", "running"]:
        assert time.monotonic() < until
        time.sleep(0.01)
        heard_at = datetime.now(UTC)
        keeper.heartbeat("w/1")
    assert broken(plan, keeper, heard_at) == [], "whatever time a look at the database takes"
    with opened(plan) as (ledger, key):
        assert [event.text for event in ledger.events(key) if event.kind == "lost"] == [
            f"attempt 1 on silent/1: {known or 'silent for 2.5 s'}"
        ]


def test_a_pause_of_the_keeper_is_no_silence_of_its_workers(new_plan, keep, storage_url):
    plan = new_plan(storage_url, lease_seconds=0.6)
    keeper = keep(plan)
    for worker in ("w/1", "v/1"):
        keeper.join(worker)
        take(keeper, 1, worker)
    time.sleep(0.8)  # the keeper's process is stopped, or its database locked
    assert not keeper.standing().is_done
    keeper.heartbeat("w/1")
    assert states(plan) == ["running", "running"]
    with opened(plan) as (ledger, key):
        lasts = {attempt.worker: attempt.lease_expires_at for attempt in ledger.attempts(key)}
    assert lasts["w/1"] > lasts["v/1"], "who is heard again has its leases renewed at once"


def test_a_trial_that_is_lost_again_and_again_fails(new_plan, keep, storage_url):
    plan = new_plan(storage_url)
    keeper = keep(plan)
    for incarnation in range(MAX_LOSSES + 1):
        keeper.join(f"w/{incarnation}")
        take(keeper, 1, f"w/{incarnation}")
    with opened(plan) as (ledger, key):
        trial = ledger.trial(key, 0)
    assert trial.state is TrialState.FAILED
    assert trial.reason is not None
    assert trial.reason.startswith("lost 3 times in a row")
    assert trial.attempt == MAX_LOSSES
    assert states(plan) == ["failed", "running"]
    assert broken(plan, keeper) == []


def test_a_reading_between_two_losses_makes_the_count_begin_again(new_plan, keep):
    plan = new_plan()
    keeper = keep(plan)
    for incarnation in range(MAX_LOSSES + 2):
        keeper.join(f"w/{incarnation}")
        lease = take(keeper, 1, f"w/{incarnation}")[0]
        tell(keeper, report(lease, incarnation + 1, 0.5), worker=f"w/{incarnation}")
    assert states(plan) == ["running"]


def test_losses_are_counted_over_launches_and_the_trial_fails_at_the_next(new_plan, keep, storage_url):
    plan = new_plan(storage_url)
    for launch in range(MAX_LOSSES):
        assert [one.request.attempt for one in take(keep(plan), 1)] == [launch + 1]
    keeper = keep(plan)
    with opened(plan) as (ledger, key):
        trial = ledger.trial(key, 0)
        assert ledger.losses(key) == {}
    assert (trial.state, trial.attempt) == (TrialState.FAILED, MAX_LOSSES)
    assert trial.reason == "lost 3 times in a row without a reading; the last: its launch ended with it"
    assert [one.request.trial for one in take(keeper, 1)] == [1]
    assert broken(plan, keeper) == []


def test_losses_over_launches_that_a_reading_separates_do_not_add_up(new_plan, keep, storage_url):
    plan = new_plan(storage_url)
    for launch in range(MAX_LOSSES + 2):
        keeper = keep(plan)
        tell(keeper, report(take(keeper, 1)[0], launch + 1, 0.5))
    with opened(plan) as (ledger, key):
        assert ledger.losses(key) == {}
    keeper = keep(plan)
    assert states(plan) == ["queued"]
    with Ledger.open(plan.storage_url) as ledger:
        assert ledger.losses(key) == {0: 1}
    assert broken(plan, keeper) == []


def test_a_step_that_was_measured_before_does_not_make_the_count_begin_again(new_plan, keep):
    plan = new_plan()
    keeper = keep(plan)
    tell(keeper, report(take(keeper, 1)[0], 4, 0.5))
    for _ in range(MAX_LOSSES):
        keeper.crash("w/1", "out of memory")
        for lease in take(keeper, 1):
            tell(keeper, report(lease, 4, 0.5))
    assert states(plan)[0] == "failed"


def test_trials_laid_aside_launch_after_launch_are_not_lost(new_plan, keep, storage_url):
    plan = new_plan(storage_url)
    for _ in range(MAX_LOSSES + 1):
        keeper = keep(plan)
        assert len(take(keeper, 2)) == 2
        keeper.leave("w/1", ())
    take(keep(plan), 2)
    keep(plan)
    assert states(plan) == ["queued", "queued"]
    with opened(plan) as (ledger, key):
        assert ledger.losses(key) == {0: 1, 1: 1}


def test_a_suspect_is_lent_alone_until_it_has_measured(new_plan, keep):
    plan = new_plan()
    for _ in range(MAX_LOSSES - 1):
        take(keep(plan), 2)
    keeper = keep(plan)
    (suspect,) = take(keeper, 2)
    assert suspect.request.trial == 0
    assert take(keeper, 1) == []
    answer = keeper.exchange("w/1", [report(suspect, 4, 0.5)], 1)
    assert [one.request.trial for one in answer.leases] == [2]
    (other,) = take(keeper, 2, "w/2")
    assert other.request.trial == 1
    assert broken(plan, keeper) == []


def test_crashes_in_a_row_end_the_launch_with_the_last_text(new_plan, keep):
    keeper = keep(new_plan())
    for _ in range(MAX_CRASHES - 1):
        keeper.crash("w/1", "out of memory")
    with pytest.raises(LaunchError, match="crashed 5 times in a row; the last said: out of memory"):
        keeper.crash("w/1", "out of memory")
    assert keeper.is_drained
    assert keeper.standing().halted is not None


def test_leaving_lays_trials_aside_and_is_no_loss(new_plan, keep, storage_url):
    plan = new_plan(storage_url)
    keeper = keep(plan)
    for _ in range(MAX_LOSSES + 1):
        lease = take(keeper, 1)[0]
        last = WorkerReport(trial=0, attempt=lease.request.attempt, artefact=written(plan, lease, 3))
        keeper.leave("w/1", [last])
        assert states(plan) == ["queued"]
    assert [one.step for one in take(keeper, 1)[0].snapshots] == [3]


def test_after_draining_nothing_is_lent_and_workers_are_told_to_leave(new_plan, keep):
    plan = new_plan()
    keeper = keep(plan)
    lease = take(keeper, 1)[0]
    keeper.drain("the time budget is used up")
    assert keeper.heartbeat("w/1")
    answer = keeper.exchange("w/1", [report(lease, 4, 0.5)], 3)
    assert (answer.leases, answer.is_over) == ((), True)
    assert answer.decisions == (Decision.GO_ON,)
    standing = keeper.standing()
    assert not standing.is_done
    assert standing.summary == "stopped after 0 of 8 trials: the time budget is used up"


def test_an_error_of_the_ledger_halts_the_keeper(new_plan, keep, monkeypatch):
    plan = new_plan()
    keeper = keep(plan)
    lease = take(keeper, 1)[0]

    def locked(*args: object, **named: object) -> None:
        raise StudiesError("the database is locked by another process.")

    monkeypatch.setattr(Ledger, "settle_all", locked)
    with pytest.raises(StudiesError, match="locked"):
        tell(keeper, report(lease, 4, 0.5))
    monkeypatch.undo()
    with pytest.raises(StudiesError, match="locked"):
        take(keeper, 1)
    again = keep(plan)
    assert [one.request.attempt for one in take(again, 1)] == [2]
    assert broken(plan, again) == []


def test_files_that_no_record_names_are_removed_at_a_takeover(new_plan, keep):
    plan = new_plan()
    keeper = keep(plan)
    lease = take(keeper, 1)[0]
    kept = written(plan, lease, 4)
    tell(keeper, report(lease, 4, 0.5, kept))
    orphan = written(plan, lease, 7)
    foreign = plan.artefacts / "notes.txt"
    foreign.write_text("not ours")
    keep(plan)
    assert is_whole(kept)
    assert not is_whole(orphan)
    assert foreign.exists()


def test_a_file_outside_the_studys_folder_that_a_ledger_names_is_neither_lent_nor_deleted(new_plan, keep, tmp_path):
    plan = new_plan(target_trials=1)
    keeper = keep(plan)
    lease = take(keeper, 1)[0]
    tell(keeper, report(lease, 4, 0.5, written(plan, lease, 4)))
    outside = tmp_path / "elsewhere" / "trial-0" / "attempt-1" / "precious"
    outside.parent.mkdir(parents=True)
    outside.write_text("mine")
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as link, link:
        assert link.execute("UPDATE artefacts SET path = ?", (str(outside),)).rowcount == 1
    keeper = keep(plan)
    lease = take(keeper, 1)[0]
    assert (lease.request.attempt, lease.snapshots) == (2, ())
    late = report(lease, 4, 0.5, describe_file(outside, trial=0, kind="snapshot", step=4))
    assert tell(keeper, replace(late, attempt=1)) == [Decision.ABANDON]
    assert tell(keeper, report(lease, 8, 0.5), report(lease, 16, 0.5)) == [Decision.GO_ON, Decision.STOP]
    assert outside.read_text() == "mine"
    with opened(plan) as (ledger, key):
        assert ledger.artefacts(key) == []
        told = [event.text for event in ledger.events(key) if event.kind == EventKind.UNDELETED]
    assert told == [f"{outside} cannot be deleted: it lies outside the study's folder, and is not read either"]


def test_a_sweep_does_not_follow_a_link_out_of_the_studys_folder(new_plan, keep, tmp_path):
    plan = new_plan()
    lease = take(keep(plan), 1)[0]
    outside = tmp_path / "elsewhere" / "precious"
    outside.parent.mkdir()
    outside.write_text("mine")
    place = attempt_folder(plan.artefacts, lease.request.trial, lease.request.attempt)
    place.parent.mkdir()
    place.symlink_to(outside.parent)
    keep(plan)
    assert outside.read_text() == "mine"


def test_a_takeover_takes_no_file_from_a_worker_of_another_launch(new_plan, keep):
    plan = new_plan()
    keeper = keep(plan)
    lease = take(keeper, 1)[0]
    fresh = written(plan, lease, 4)
    keeper.finish("a sweep while the worker has not handed its file in yet")
    assert is_whole(fresh)
    assert tell(keeper, report(lease, 4, 0.5, fresh)) == [Decision.GO_ON]
    assert broken(plan, keeper) == []


def test_the_end_of_a_launch_leaves_no_file_that_belongs_to_nothing(new_plan, keep):
    plan = new_plan(target_trials=1)
    late = take(keep(plan), 1)[0]
    keeper = keep(plan)
    lease = take(keeper, 1)[0]
    orphan = written(plan, late, 4)
    tell(keeper, report(lease, 16, 0.5))
    keeper.finish("finished")
    assert not Path(orphan.path).exists()


def unlink_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no file be deleted, as on a file system that was mounted to be read."""

    def refuse(path: Path, missing_ok: bool = False) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr(Path, "unlink", refuse)


def undeleted(plan: StudyPlan) -> list[str]:
    with opened(plan) as (ledger, key):
        return [event.text for event in ledger.events(key) if event.kind == "undeleted"]


def test_a_folder_in_the_place_of_a_file_ends_no_launch(new_plan, keep, storage_url):
    plan = new_plan(storage_url, target_trials=1)
    keeper = keep(plan)
    lease = take(keeper, 1)[0]
    kept = written(plan, lease, 4)
    tell(keeper, report(lease, 4, 0.5, kept))
    Path(kept.path).unlink()
    Path(kept.path).mkdir()
    assert tell(keeper, report(lease, 16, 0.5)) == [Decision.STOP]
    keeper.finish("finished")
    assert states(plan) == ["complete"]
    (text,) = undeleted(plan)
    assert text.startswith(f"{kept.path} cannot be deleted: ")
    assert broken(plan, keeper) == []


def test_a_file_that_cannot_be_deleted_is_said_once_and_tried_again_at_the_sweep(new_plan, keep, monkeypatch):
    plan = new_plan(target_trials=1)
    keeper = keep(plan)
    lease = take(keeper, 1)[0]
    kept = written(plan, lease, 4)
    tell(keeper, report(lease, 4, 0.5, kept))
    with monkeypatch.context() as patch:
        unlink_refused(patch)
        assert tell(keeper, report(lease, 16, 0.5)) == [Decision.STOP]
        keeper.finish("finished")
    assert undeleted(plan) == [f"{kept.path} cannot be deleted: {os.strerror(errno.EROFS)}"]
    assert Path(kept.path).exists()
    keeper.finish("finished again")
    assert not Path(kept.path).exists()
    assert broken(plan, keeper) == []


def test_progress_counts_names_the_best_and_lists_what_runs(new_plan, keep):
    plan = new_plan(target_trials=3)
    keeper = keep(plan)
    first, second, third = take(keeper, 3)
    tell(keeper, report(first, 16, 0.5), report(second, 16, 0.7), report(third, 4, 0.6))
    progress = keeper.progress()
    assert progress.counts[TrialState.COMPLETE] == 2
    assert progress.counts[TrialState.RUNNING] == 1
    assert (progress.ended, progress.target_trials) == (2, 3)
    assert progress.best is not None
    assert (progress.best.number, progress.best.score) == (1, 0.7)
    assert progress.best.stored_parameters <= progress.budget_parameters
    assert [(one.number, one.step, one.steps, one.last_score) for one in progress.running] == [(2, 4, 16, 0.6)]
    assert progress.seconds_left is not None
    rebuilt = keep(plan).progress()
    assert (rebuilt.best, rebuilt.ended) == (progress.best, 2)
    assert rebuilt.counts[TrialState.QUEUED] == 1
    assert rebuilt.seconds_left is None


def test_a_study_whose_space_is_exhausted_is_done_before_its_target(new_plan, keep, space):
    from search_space.space.space import SearchSpace, SpaceOptions

    options = SpaceOptions(
        attention_forms=(), ffn_forms=("const",), learning_rates={"const": (1e-3, 1e-3)}, published=()
    )
    small = SearchSpace(shape=space.shape, budget=600_000, options=options)
    plan = new_plan(space=small, target_trials=9)
    keeper = keep(plan)
    leases = take(keeper, 9)
    assert len(leases) == 3
    tell(keeper, *(report(one, 16, 0.5) for one in leases))
    standing = keeper.standing()
    assert standing.is_done
    assert standing.summary.startswith("finished: 3 trials, and nothing is left to try")
    assert broken(plan, keeper) == []


@pytest.mark.parametrize("takes_over", [False, True])
def test_a_published_method_that_collapsed_stops_though_it_is_protected_and_the_ledger_says_why(
    new_plan, keep, takes_over
):
    rungs = RungPlan(
        steps=(4, 8),
        reduction=2,
        protected=Protected.ALL,
        rule=Rule.SIGNIFICANCE,
        stops_collapsed=True,
        guessing_loss=0.7,
    )
    plan = new_plan(target_trials=6, rungs=rungs, opening=InitialDesign(published=("lora_qv",)))
    keeper = keep(plan)
    published, *others = take(keeper, 5)

    def of(lease: Lease, step: int, loss: float, same: float) -> WorkerReport:
        told = report(lease, step, 0.5)
        metrics = {"validation_loss": loss, "same_prediction": same}
        return replace(told, reading=replace(told.reading, metrics=metrics, train_loss=loss))

    assert set(tell(keeper, *(of(lease, 4, 0.6, 0.6) for lease in others))) == {Decision.GO_ON}
    if takes_over:
        keeper = keep(plan)
        (published,) = [one for one in take(keeper, 5) if one.request.trial == 0]
    assert tell(keeper, of(published, 4, 0.71, 1.0)) == [Decision.STOP]
    with opened(plan) as (ledger, key):
        stopped = ledger.trial(key, 0)
    assert (stopped.state, stopped.method) == (TrialState.PRUNED, "lora_qv")
    said = "rung 0 (4 steps): collapsed: all its predictions are the same, its loss is 0.71, and guessing has 0.7"
    assert stopped.reason == said
    assert broken(plan, keeper) == []


@pytest.mark.parametrize("takes_over", [False, True])
def test_examples_are_recorded_and_compared_at_rungs_also_after_a_takeover(new_plan, keep, takes_over):
    rungs = RungPlan(steps=(4,), reduction=2, rule=Rule.SIGNIFICANCE, examples=400)
    plan = new_plan(target_trials=6, rungs=rungs)
    keeper = keep(plan)
    leases = take(keeper, 6)
    # two points of 400 examples are no more than noise, but for those that see which examples they are
    rights = [np.arange(400) < right for right in (208, 208, 208, 208, 208, 200)]
    reports = [
        replace(report(lease, 4, right.mean()), examples=ExampleLosses.of(1.0 - right, right))
        for lease, right in zip(leases, rights, strict=True)
    ]
    assert set(tell(keeper, *reports[:5])) == {Decision.GO_ON}
    last = reports[5]
    if takes_over:
        keeper = keep(plan)
        (again,) = [one for one in take(keeper, 6) if one.request.trial == 5]
        last = replace(last, attempt=again.request.attempt)
    assert tell(keeper, last) == [Decision.STOP]
    with opened(plan) as (ledger, key):
        assert [(one.trial, one.step) for one in ledger.examples(key)] == [(trial, 4) for trial in range(6)]
        assert [one.scores.sum() for one in ledger.examples(key)] == [208] * 5 + [200]


def test_the_factored_search_is_told_what_the_ledger_holds_and_a_takeover_proposes_the_same_pack(new_plan, keep):
    rungs = RungPlan(steps=(4, 8), reduction=2, rule=Rule.SIGNIFICANCE, protected=Protected.BEST, examples=200)
    published = ("lora_qv", "mam_adapter", "bitfit", "head_only")
    plan = new_plan(sampler="factored", rungs=rungs, opening=InitialDesign(published=published), target_trials=40)
    keeper = keep(plan)
    held, seen = {lease.request.trial: lease for lease in take(keeper, 4)}, set()
    for _ in range(10):
        reports = []
        for trial, lease in held.items():
            if trial % 7 == 6:
                reports.append(WorkerReport(trial=trial, attempt=1, failure="the loss is nan at step 2"))
            else:
                reports.append(report(lease, 16 if trial in seen else 4, 0.3 + 0.1 * (trial % 5)))
        seen |= {*held}
        answer = keeper.exchange("w/1", reports, sum(one.failure is not None for one in reports))
        told = zip(reports, answer.decisions, strict=True)
        going = {one.trial for one, decision in told if decision is Decision.GO_ON}
        held = {trial: lease for trial, lease in held.items() if trial in going}
        held |= {lease.request.trial: lease for lease in answer.leases}
    assert {*states(plan)} == {"complete", "pruned", "failed", "running"}
    assert broken(plan, keeper) == []
    with opened(plan) as (ledger, key):
        tried = ledger.trials(key)
    later = keep(plan)
    expected = [keeper.proposer.propose().fingerprint for _ in range(3)]
    assert [later.proposer.propose().fingerprint for _ in range(3)] == expected
    assert len({*expected, *(trial.fingerprint for trial in tried)}) == len(tried) + 3


def train_by_chance(keeper: StudyKeeper, leases: dict[int, Lease], trial: int, score: float) -> None:
    """Report a trial rung by rung until it is stopped or has ended."""
    for step, gain in ((4, 0.0), (8, 0.1), (16, 0.2)):
        if tell(keeper, report(leases[trial], step, score + gain)) == [Decision.STOP]:
            return


def by_trial(leases: list[Lease]) -> dict[int, Lease]:
    return {lease.request.trial: lease for lease in leases}


BY_CHANCE = RungPlan(steps=(4, 8), reduction=2, rule=Rule.CHANCE, examples=4000)


def test_by_chance_a_takeover_decides_as_the_keeper_would_have(new_plan, keep):
    def decisions(name: str, *, takes_over: bool) -> list[str | None]:
        opening = InitialDesign(published=("lora_qv", "mam_adapter"))
        plan = new_plan(study=name, sampler="factored", rungs=BY_CHANCE, opening=opening, target_trials=20)
        keeper = keep(plan)
        leases = by_trial(take(keeper, 20))
        for trial in range(20):
            if takes_over and trial == 14:
                keeper = keep(plan)
                leases |= by_trial(take(keeper, 20))
            train_by_chance(keeper, leases, trial, 0.6 if trial < 2 else 0.2 + 0.03 * (trial * 5 % 7))
        with opened(plan) as (ledger, key):
            return [one.reason for one in ledger.trials(key)]

    whole = decisions("whole", takes_over=False)
    assert decisions("broken", takes_over=True) == whole
    assert 0 < sum(one is not None for one in whole[11:]) < 9
