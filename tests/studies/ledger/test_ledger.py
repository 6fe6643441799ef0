import json
import sqlite3
import subprocess
import sys
import threading
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from studies.errors import FencedError, StorageError, StudiesError, UnknownStudyError
from studies.ledger import keeper_writes
from studies.ledger.ledger import Ledger
from studies.records import TrialOutline, TrialRecord, TrialState, TrialTally
from studies.records.trial import PROPOSED

IN_AN_HOUR = timedelta(hours=1)


def states(kept):
    return [trial.state for trial in kept.ledger.trials(kept.id)]


def test_a_study_comes_back_as_it_was_created(ledger, values):
    created = ledger.create_study(values.study())
    found = ledger.study("sst2")
    assert found == created
    assert found.specification == {"task": {"name": "docstrings"}, "trials": 8}
    assert found.epoch == 0
    assert found.created_at.utcoffset() == timedelta(0)
    assert abs(found.created_at - datetime.now(UTC)) < timedelta(minutes=1)


def test_studies_are_listed_oldest_first(ledger, values):
    for name in ("b", "a", "c"):
        ledger.create_study(values.study(name=name))
    assert [study.name for study in ledger.studies()] == ["b", "a", "c"]


def test_a_study_name_is_given_once(ledger, values):
    ledger.create_study(values.study())
    with pytest.raises(StudiesError, match="must be unique; got 'sst2'"):
        ledger.create_study(values.study())
    assert len(ledger.studies()) == 1


def test_an_unknown_study_is_answered_with_those_that_exist(ledger, values):
    with pytest.raises(UnknownStudyError, match="it contains none"):
        ledger.study("sst3")
    ledger.create_study(values.study(name="smoke"))
    ledger.create_study(values.study())
    with pytest.raises(UnknownStudyError, match=r"no study 'sst3' in .*; it contains: smoke, sst2\."):
        ledger.study("sst3")


def test_a_trial_comes_back_as_it_was_added(kept, values):
    added = kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(0), values.trial(1, attention=None)])
    assert kept.ledger.trials(kept.id) == added
    first = kept.ledger.trial(kept.id, 0)
    assert first == added[0]
    assert (first.state, first.attempt, first.study_id) == (TrialState.QUEUED, 0, kept.id)
    assert replace(first, created_at=None) == values.trial(0)
    assert added[1].attention is None


def test_added_trial_has_only_its_proposal(kept, values):
    end = {"state": TrialState.COMPLETE, "score": 0.9, "reason": "why", "ended_at": datetime(2026, 1, 1, tzinfo=UTC)}
    ignored = {**end, "study_id": 9, "steps": 5, "last_score": 0.9, "attempt": 3, "created_at": end["ended_at"]}
    assert {*ignored, *PROPOSED} == {one.name for one in fields(TrialRecord)}
    (added,) = kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(0, **ignored)])
    assert added.study_id == kept.id
    assert abs(added.created_at - datetime.now(UTC)) < timedelta(minutes=1)
    assert replace(added, created_at=None) == values.trial(0)


def test_the_order_of_json_keys_is_kept_because_the_replay_needs_it(kept, values):
    kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(0, proposal={"z": 1, "a": 2, "m": 3})])
    assert list(kept.ledger.trial(kept.id, 0).proposal) == ["z", "a", "m"]


def test_trials_are_added_and_leased_in_one_transaction(kept, values):
    added = kept.ledger.add_trials(
        kept.id, kept.epoch, [values.trial(0), values.trial(1)], worker="w", lease_seconds=100
    )
    assert [(trial.state, trial.attempt) for trial in added] == [(TrialState.RUNNING, 1)] * 2
    assert kept.ledger.trials(kept.id) == added
    attempts = kept.ledger.attempts(kept.id)
    facts = [(attempt.trial, attempt.attempt, attempt.worker, attempt.ending) for attempt in attempts]
    assert facts == [(0, 1, "w", None), (1, 1, "w", None)]
    assert attempts[0].lease_expires_at - attempts[0].started_at == timedelta(seconds=100)


def test_adding_a_trial_again_counts_as_done(kept, values):
    first = kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(0)], worker="w")
    again = kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(0), values.trial(1)], worker="w")
    assert again[0] == first[0]
    assert [trial.number for trial in again] == [0, 1]
    assert kept.ledger.trials(kept.id) == again
    assert len(kept.ledger.attempts(kept.id)) == 2


def test_a_number_never_changes_its_configuration(kept, values):
    kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(0)])
    with pytest.raises(StudiesError, match="trial 0 must keep its configuration fingerprint-0; got other"):
        kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(0, fingerprint="other")])


@pytest.mark.parametrize("numbers", [[1], [0, 2], [1, 0], [0, 0]])
def test_numbers_leave_no_gap(kept, values, numbers):
    with pytest.raises(StudiesError, match="must continue at number 0 without a gap"):
        kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(number) for number in numbers])
    assert kept.ledger.trials(kept.id) == []


def test_a_configuration_is_in_a_study_once(kept, values):
    kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(0)])
    with pytest.raises(StorageError, match=r"refuses the record .*fingerprint.*Nothing was written"):
        kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(1), values.trial(2, fingerprint="fingerprint-0")])
    assert len(kept.ledger.trials(kept.id)) == 1


def test_trials_can_be_filtered_by_state(kept, values):
    kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(number) for number in range(4)])
    kept.ledger.lease_all(kept.id, kept.epoch, [2], "w")
    queued = kept.ledger.trials(kept.id, states=[TrialState.QUEUED])
    assert [trial.number for trial in queued] == [0, 1, 3]
    both = kept.ledger.trials(kept.id, states={TrialState.QUEUED, TrialState.RUNNING})
    assert [trial.number for trial in both] == [0, 1, 2, 3]
    assert kept.ledger.trials(kept.id, states=[]) == []
    counts = kept.ledger.state_counts(kept.id)
    assert counts == dict.fromkeys(TrialState, 0) | {TrialState.QUEUED: 3, TrialState.RUNNING: 1}


def test_outlines_can_begin_at_a_number(kept, values):
    added = kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(number) for number in range(5)])
    assert kept.ledger.outlines(kept.id, 3) == [TrialOutline.of(trial) for trial in added[3:]]


def test_tally_counts_states_and_names_the_best(kept, values):
    other = kept.ledger.create_study(values.study(name="other"))
    empty = TrialTally(counts=dict.fromkeys(TrialState, 0), best=None, ended_at=None)
    assert kept.ledger.tally(other.id) == empty
    kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(number) for number in range(5)], worker="w")
    epoch = kept.ledger.take_over(other.id, "another")
    kept.ledger.add_trials(other.id, epoch, [values.trial(0)])
    ends = ((0, 0.75, values.complete), (1, 0.5, values.complete), (2, 0.9, values.pruned))
    for number, score, outcome in ends:
        readings = [values.reading(number, 5, score=score)]
        final = {**outcome, "score": score} if "score" in outcome else outcome
        assert kept.ledger.settle(kept.id, kept.epoch, number, 1, readings=readings, **final) == ()
    trials = kept.ledger.trials(kept.id)
    assert kept.ledger.tally(kept.id) == TrialTally(
        counts=kept.ledger.state_counts(kept.id),
        best=0.75,  # what was pruned has no final score
        ended_at=max(trial.ended_at for trial in trials if trial.ended_at),
    )
    assert kept.ledger.tally(other.id) == replace(empty, counts=empty.counts | {TrialState.QUEUED: 1})


def test_an_unknown_trial_is_answered_with_the_numbers_that_exist(kept, values):
    with pytest.raises(StudiesError, match="no trial 5; the study has none yet"):
        kept.ledger.trial(kept.id, 5)
    kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(0), values.trial(1)])
    with pytest.raises(StudiesError, match="no trial 5; the study has 0 to 1"):
        kept.ledger.trial(kept.id, 5)


def test_only_a_queued_trial_is_leased(kept, values):
    kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(0)])
    lease = kept.ledger.lease_all(kept.id, kept.epoch, [0], "w", 30)[0]
    assert (lease.trial, lease.attempt, lease.worker) == (0, 1, "w")
    assert kept.ledger.attempts(kept.id, 0) == [lease]
    assert kept.ledger.lease_all(kept.id, kept.epoch, [0], "other", 30)[0] is None
    assert kept.ledger.lease_all(kept.id, kept.epoch, [1], "other", 30)[0] is None
    assert kept.ledger.attempts(kept.id) == [lease]


def test_renewing_extends_the_leases_of_one_worker_in_one_study(kept, values):
    kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(0), values.trial(1)], worker="a", lease_seconds=1)
    kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(2)], worker="b", lease_seconds=1)
    other = kept.ledger.create_study(values.study(name="other")).id
    other_epoch = kept.ledger.take_over(other, "keeper")
    kept.ledger.add_trials(other, other_epoch, [values.trial(0)], worker="a", lease_seconds=1)
    kept.ledger.settle(kept.id, kept.epoch, 1, 1, **values.failed)
    assert kept.ledger.renew(kept.id, kept.epoch, "a", 7200) == 1
    soon = datetime.now(UTC) + IN_AN_HOUR
    late = [attempt.lease_expires_at > soon for attempt in kept.ledger.attempts(kept.id)]
    assert late == [True, False, False]
    assert kept.ledger.attempts(other)[0].lease_expires_at < soon


def test_a_released_attempt_is_lost_and_its_trial_becomes_the_next_attempt(kept, values):
    kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(0)], worker="a")
    kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(1)], worker="b")
    assert kept.ledger.release(kept.id, kept.epoch, "a", "its process died") == [0]
    assert states(kept) == [TrialState.QUEUED, TrialState.RUNNING]
    [lost] = kept.ledger.attempts(kept.id, 0)
    assert lost.ending == "lost"
    assert lost.ended_at is not None
    assert kept.ledger.lease_all(kept.id, kept.epoch, [0], "b")[0].attempt == 2
    assert [attempt.attempt for attempt in kept.ledger.attempts(kept.id, 0)] == [1, 2]
    assert kept.ledger.release(kept.id, kept.epoch, "a", "gone") == []
    assert kept.ledger.release(kept.id, kept.epoch, "b", "gone") == [0, 1]
    lost = [(event.kind, event.trial, event.text) for event in kept.ledger.events(kept.id)[-2:]]
    assert lost == [("lost", 0, "attempt 2 on b: gone"), ("lost", 1, "attempt 1 on b: gone")]


def test_recovering_takes_back_everything_that_runs(kept, values):
    kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(0), values.trial(1)], worker="a")
    kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(2)], worker="b")
    kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(3)])
    kept.ledger.settle(kept.id, kept.epoch, 1, 1, **values.failed)
    epoch = kept.ledger.take_over(kept.id, "second")
    assert kept.ledger.release(kept.id, epoch, None, "its keeper was replaced") == [0, 2]
    assert states(kept) == [TrialState.QUEUED, TrialState.FAILED, TrialState.QUEUED, TrialState.QUEUED]
    assert kept.ledger.release(kept.id, epoch, None, "its keeper was replaced") == []


def test_taking_over_counts_up_and_leaves_an_event(kept):
    assert kept.epoch == 1
    assert kept.ledger.take_over(kept.id, "second") == 2
    assert kept.ledger.study("sst2").epoch == 2
    assert [event.text for event in kept.ledger.events(kept.id)] == ["keeper 1 is keeper", "keeper 2 is second"]


WRITES = {
    "add_trials": lambda kept, values: kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(2)]),
    "add_known": lambda kept, values: kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(0)]),
    "lease": lambda kept, values: kept.ledger.lease_all(kept.id, kept.epoch, [1], "w")[0],
    "renew": lambda kept, values: kept.ledger.renew(kept.id, kept.epoch, "w", 9999),
    "release": lambda kept, values: kept.ledger.release(kept.id, kept.epoch, "w", "gone"),
    "settle": lambda kept, values: kept.ledger.settle(kept.id, kept.epoch, 0, 1, **values.complete),
    "report": lambda kept, values: kept.ledger.settle(kept.id, kept.epoch, 0, 1, readings=[values.reading(0, 5)]),
    "record_event": lambda kept, values: kept.ledger.record_event(kept.id, "note", "late", epoch=kept.epoch),
}


def test_fenced_keeper_cannot_write(kept, values):
    kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(0)], worker="w")
    kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(1)])
    kept.ledger.settle(kept.id, kept.epoch, 0, 1, artefact=values.artefact(0, 5))
    kept.ledger.take_over(kept.id, "second")
    before = kept.everything()
    for verb, write in WRITES.items():
        with pytest.raises(FencedError, match="study 'sst2' was taken over by keeper 2; this is keeper 1"):
            write(kept, values)
        assert kept.everything() == before, verb


def test_a_study_that_does_not_exist_cannot_be_kept(ledger, values):
    with pytest.raises(UnknownStudyError, match="no study of id 99"):
        ledger.take_over(99, "keeper")
    with pytest.raises(UnknownStudyError, match="no study of id 99"):
        ledger.add_trials(99, 1, [values.trial(0)])


def test_event_of_a_trial_needs_no_keeper(kept):
    kept.ledger.record_event(kept.id, "note", "half \x00 way \ud800", trial=3)
    event = kept.ledger.events(kept.id)[-1]
    assert (event.kind, event.trial, event.text) == ("note", 3, "half  way ?")
    assert event.at.tzinfo is UTC


def test_studies_do_not_see_each_other(kept, values):
    other = kept.ledger.create_study(values.study(name="other")).id
    epoch = kept.ledger.take_over(other, "keeper")
    kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(0)], worker="w")
    kept.ledger.add_trials(other, epoch, [values.trial(0)], worker="w")
    assert kept.ledger.release(other, epoch, "w", "gone") == [0]
    assert states(kept) == [TrialState.RUNNING]
    assert kept.ledger.release(kept.id, kept.epoch, "w", "gone") == [0]
    assert len(kept.ledger.trials(other)) == 1


def test_a_read_only_ledger_reads_and_refuses_to_write(kept, storage_url, values):
    with Ledger.open(storage_url, read_only=True) as reader:
        assert reader.study("sst2").id == kept.id
        kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(0)])
        assert len(reader.trials(kept.id)) == 1
        with pytest.raises(StorageError):
            reader.add_trials(kept.id, kept.epoch, [values.trial(1)])
    assert len(kept.ledger.trials(kept.id)) == 1


KEEPER = """
import json, runpy, sys
from studies.errors import FencedError
from studies.ledger.ledger import Ledger

conftest, url, study_id = sys.argv[1], sys.argv[2], int(sys.argv[3])
values = runpy.run_path(conftest)["Values"]()
with Ledger.open(url) as ledger:
    epoch = ledger.take_over(study_id, "keeper")
    added, end = 0, "done"
    while epoch == 2 or added < 30:
        number = len(ledger.trials(study_id))
        try:
            ledger.add_trials(study_id, epoch, [values.trial(number, fingerprint=f"{epoch}-{number}")])
        except FencedError:
            end = "fenced"
            break
        added += 1
print(json.dumps([epoch, added, end]))
"""


@pytest.mark.slow
def test_of_two_processes_that_keep_a_study_the_first_is_fenced(kept, storage_url):
    command = [sys.executable, "-c", KEEPER, str(Path(__file__).with_name("conftest.py")), storage_url, str(kept.id)]
    keepers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    printed = sorted(json.loads(keeper.communicate(timeout=60)[0]) for keeper in keepers)
    (first_epoch, first_added, first_end), last = printed
    assert (first_epoch, first_end) == (2, "fenced")
    assert last == [3, 30, "done"]
    trials = kept.ledger.trials(kept.id)
    assert [trial.number for trial in trials] == list(range(first_added + 30))
    epochs = [trial.fingerprint.split("-")[0] for trial in trials]
    assert epochs == ["2"] * first_added + ["3"] * 30


def test_takeover_waits_for_the_end_of_a_write(kept, storage_url):
    epochs = []

    def take_over():
        with Ledger.open(storage_url) as other:
            epochs.append(other.take_over(kept.id, "second"))

    second = threading.Thread(target=take_over)
    with kept.ledger.database.once(writes=True) as connection:
        keeper_writes.check_epoch(connection, kept.id, kept.epoch)
        second.start()
        second.join(timeout=1)
        assert epochs == []
    second.join(timeout=60)
    assert epochs == [2]


def test_a_write_on_sqlite_is_durable_and_ordered(tmp_path):
    with Ledger.open(f"sqlite:///{tmp_path / 'x.db'}") as ledger, ledger.database.once(writes=True) as connection:
        pragma = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous")
        }
        assert pragma == {"journal_mode": "wal", "synchronous": 2}
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 5000
        other = sqlite3.connect(tmp_path / "x.db", timeout=0, isolation_level=None)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        other.close()
