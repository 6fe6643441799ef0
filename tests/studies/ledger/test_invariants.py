import hashlib
import json
import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from support.violations import violations

from studies.ledger import files
from studies.ledger.files import MARKER, identity
from studies.ledger.invariants import Records, record_violations


@pytest.fixture
def search(kept, values, tmp_path):
    """Trial 0 complete in its second attempt, 1 pruned, 2 failed, 3 running with a snapshot, 4 queued after a loss."""
    ledger, key = kept.ledger, (kept.id, kept.epoch)
    ledger.add_trials(*key, [values.trial(number) for number in range(5)], worker="w", lease_seconds=600)
    ledger.settle(*key, 0, 1, readings=[values.reading(0, 10, rung=0)])
    ledger.release(*key, "w", "gone")
    for number in range(4):
        ledger.lease_all(*key, [number], "v", 600)
    second = {"attempt": 2}
    final = values.reading(0, 20, score=0.75, rung=1, **second)
    ledger.settle(*key, 0, 2, readings=[final], **values.complete)
    ledger.settle(*key, 1, 2, readings=[values.reading(1, 10, rung=0, **second)], **values.pruned)
    ledger.settle(*key, 2, 2, **values.failed)
    (study,) = (one for one in ledger.studies() if one.id == kept.id)
    file = tmp_path / "sst2" / "trial-3" / "attempt-2" / "snapshot"
    file.parent.mkdir(parents=True)
    (tmp_path / "sst2" / MARKER).write_text(json.dumps(identity(study)))
    file.write_bytes(b"tensors")
    digest = hashlib.sha256(b"tensors").hexdigest()
    snapshot = values.artefact(3, 10, path=str(file), sha256=digest, size_bytes=7)
    ledger.settle(*key, 3, 2, readings=[values.reading(3, 10, rung=0, **second)], artefact=snapshot)
    return kept


@pytest.fixture
def without_guards(storage_url, tamper):
    """Run SQL without triggers, constraints and foreign keys."""

    def run(*statements):
        if storage_url.startswith("postgresql"):
            drops = [DROP_CHECKS.format(table=table) for table in ("trials", "attempts", "readings")]
            role = "SET session_replication_role ="
            tamper(f"{role} replica", *drops, *statements, f"{role} origin")
        else:
            file = storage_url.removeprefix("sqlite:///")
            with closing(sqlite3.connect(file)) as connection, connection:
                connection.execute("PRAGMA ignore_check_constraints = ON")
                for statement in (*DROPS, *statements):
                    connection.execute(statement)

    return run


DROPS = ("DROP TRIGGER trials_are_final", "DROP INDEX uq_attempts_one_open", "DROP INDEX uq_attempts_one_final")
DROP_CHECKS = """
DO $$ DECLARE name text; BEGIN
  FOR name IN SELECT conname FROM pg_constraint WHERE conrelid = '{table}'::regclass AND contype = 'c' LOOP
    EXECUTE 'ALTER TABLE {table} DROP CONSTRAINT ' || name;
  END LOOP;
  DROP INDEX IF EXISTS uq_attempts_one_open, uq_attempts_one_final;
END $$
"""


def attempt_of(trial):
    return f"trial_id = (SELECT id FROM trials WHERE number = {trial})"


CLOSED = "one attempt closes a terminal trial, none another; got"
OPENED = "a running trial has its newest attempt open and no other has; got"
LAST = "readings SET {} WHERE step = 20"
EARLIER = "readings SET attempt = {} WHERE step = 10 AND attempt = 1"
BREAKS = {
    "a gap": ("UPDATE trials SET number = 9 WHERE number = 4", "missing [4]"),
    "complete without score": ("UPDATE trials SET score = NULL WHERE number = 0", "trial 0: a score belongs"),
    "pruned without reason": ("UPDATE trials SET reason = NULL WHERE number = 1", "trial 1: a reason belongs"),
    "terminal without end": ("UPDATE trials SET ended_at = NULL WHERE number = 2", "2: a terminal trial has an end"),
    "score changed later": ("UPDATE trials SET score = 0.9 WHERE number = 0", "score must be that of its last reading"),
    "state changed later": ("UPDATE trials SET state = 'failed' WHERE number = 1", "1: its row changed after its end"),
    "reopened": (
        "UPDATE trials SET state = 'queued', reason = NULL, ended_at = NULL WHERE number = 2",
        f"trial 2: {CLOSED} queued, closed 1 times",
    ),
    "closed by nobody": (
        "UPDATE attempts SET ending = 'lost' WHERE ending = 'failed'",
        f"trial 2: {CLOSED} failed, closed 0 times",
    ),
    "closed twice": (
        f"UPDATE attempts SET ending = 'failed' WHERE attempt = 1 AND {attempt_of(2)}",
        f"trial 2: {CLOSED} failed, closed 2 times",
    ),
    "running without attempt": (
        "UPDATE attempts SET ending = 'lost', ended_at = started_at WHERE ended_at IS NULL",
        f"trial 3: {OPENED} running, open []",
    ),
    "open attempt of a queued trial": (
        f"UPDATE attempts SET ending = NULL, ended_at = NULL WHERE {attempt_of(4)}",
        f"trial 4: {OPENED} queued, open [1]",
    ),
    "lease in the past": (
        "UPDATE attempts SET lease_expires_at = started_at WHERE ended_at IS NULL",
        "trial 3: it runs without a live lease",
    ),
    "attempt missing": (
        f"DELETE FROM attempts WHERE attempt = 1 AND {attempt_of(3)}",
        "attempts must be 1 to 2; got [2]",
    ),
    "reading missing": ("DELETE FROM readings WHERE step = 20", "0: its progress must be that of its last reading"),
    "step below one": (f"UPDATE {LAST.format('step = -5')}", "trial 0: steps of readings must ascend from 1"),
    "reading by an earlier attempt": (f"UPDATE {EARLIER.format(2)}", None),
    "reading by an attempt that is not there": (
        f"UPDATE {EARLIER.format(3)}",
        "trial 0: attempts of readings must ascend within 1 to 2; got [3, 2]",
    ),
    "wrong rung": (f"UPDATE {LAST.format('rung = NULL')}", "0: the reading at step 20 must be of rung 1; got None"),
}


def test_a_sound_ledger_has_no_violations(search):
    assert violations(search.ledger, search.id) == []
    assert violations(search.ledger, search.id, rung_steps=(10, 20)) == []


def test_an_empty_study_has_no_violations(kept):
    assert violations(kept.ledger, kept.id, rung_steps=()) == []


@pytest.mark.parametrize(("statement", "expected"), BREAKS.values(), ids=BREAKS)
def test_each_broken_invariant_is_found(search, without_guards, statement, expected):
    without_guards(statement)
    found = violations(search.ledger, search.id, rung_steps=(10, 20))
    if expected is None:
        assert found == []
    else:
        assert any(expected in line for line in found), found


def test_without_rung_steps_one_step_belongs_to_one_rung(search, without_guards):
    without_guards("UPDATE readings SET rung = 1 WHERE attempt = 1")
    found = violations(search.ledger, search.id)
    assert any("the reading at step 10 must be of rung" in line for line in found), found


def test_other_rungs_than_those_recorded_are_found(search):
    assert len(violations(search.ledger, search.id, rung_steps=(5, 10))) == 4


def test_a_lease_that_ends_is_found_when_its_time_comes(search):
    assert violations(search.ledger, search.id, now=datetime.now(UTC) + timedelta(seconds=300)) == []
    later = violations(search.ledger, search.id, now=datetime.now(UTC) + timedelta(seconds=900))
    assert [line.split(":")[0] for line in later] == ["trial 3"]


def test_a_file_that_is_gone_or_changed_is_found(search, tmp_path):
    file = tmp_path / "sst2" / "trial-3" / "attempt-2" / "snapshot"
    file.write_bytes(b"tensorz")
    [changed] = violations(search.ledger, search.id)
    assert "must have sha256" in changed
    file.unlink()
    [gone] = violations(search.ledger, search.id)
    assert gone == f"trial 3: the snapshot of step 10 must exist; no file {file}"


def test_a_file_in_a_folder_that_is_not_marked_as_the_studys_is_not_read(search, tmp_path, monkeypatch):
    (tmp_path / "sst2" / MARKER).unlink()
    monkeypatch.setattr(files.hashlib, "file_digest", None)
    [line] = violations(search.ledger, search.id)
    file = tmp_path / "sst2" / "trial-3" / "attempt-2" / "snapshot"
    assert line == f"trial 3: {file} must be a file in the study's folder; it is not"


def test_duplicate_number_or_configuration_is_found(search):
    """Test records, since the databases refuse both."""
    records = search.ledger.read(lambda link: Records.of(link, search.id))
    trials = records.trials

    def found(*changed):
        lines = record_violations(replace(records, trials=changed))
        return [line for line in lines if not re.match(r"trial \d+: ", line)]

    again = replace(trials[1], number=0)
    assert found(trials[0], again, *trials[2:]) == ["trial numbers must be 0 to n-1; missing [1], repeated [0]"]
    again = replace(trials[1], fingerprint="fingerprint-0")
    assert found(trials[0], again) == ["a configuration must be tried once; fingerprint-0 is there 2 times"]
