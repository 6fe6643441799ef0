import hashlib
import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from support.violations import violations

from studies.consistency import record_violations
from studies.ledger import files
from studies.ledger.files import MARKER, identity
from studies.ledger.invariants import Records


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


CLOSED = "the attempt that closes it must be"
OPENED = "its open attempts must be"
SATISFY = "all {} must satisfy {}; got 1 that do not"
LAST = "readings SET {} WHERE step = 20"
EARLIER = "readings SET attempt = {} WHERE step = 10 AND attempt = 1"
BREAKS = {
    "a gap": (
        "UPDATE trials SET number = 9 WHERE number = 4",
        "trial numbers must be [0, 1, 2, 3, 4]; got [0, 1, 2, 3, 9]",
    ),
    "complete without score": (
        "UPDATE trials SET score = NULL WHERE number = 0",
        SATISFY.format("trials", "(state = 'complete') = (score IS NOT NULL)"),
    ),
    "pruned without reason": (
        "UPDATE trials SET reason = NULL WHERE number = 1",
        SATISFY.format("trials", "(state IN ('pruned', 'failed')) = (reason IS NOT NULL)"),
    ),
    "terminal without end": (
        "UPDATE trials SET ended_at = NULL WHERE number = 2",
        SATISFY.format("trials", "(state IN ('complete', 'pruned', 'failed')) = (ended_at IS NOT NULL)"),
    ),
    "score changed later": (
        "UPDATE trials SET score = 0.9 WHERE number = 0",
        "trial 0: its steps and scores must be those of its last reading",
    ),
    "state changed later": ("UPDATE trials SET state = 'failed' WHERE number = 1", f"trial 1: {CLOSED} [(2, 'failed'"),
    "reopened": (
        "UPDATE trials SET state = 'queued', reason = NULL, ended_at = NULL WHERE number = 2",
        f"trial 2: {CLOSED} []; got [(2, 'failed'",
    ),
    "closed by nobody": (
        "UPDATE attempts SET ending = 'lost' WHERE ending = 'failed'",
        f"trial 2: {CLOSED} [(2, 'failed'",
    ),
    "closed twice": (
        f"UPDATE attempts SET ending = 'failed' WHERE attempt = 1 AND {attempt_of(2)}",
        f"trial 2: {CLOSED} [(2, 'failed'",
    ),
    "running without attempt": (
        "UPDATE attempts SET ending = 'lost', ended_at = started_at WHERE ended_at IS NULL",
        f"trial 3: {OPENED} [2]; got []",
    ),
    "open attempt of a queued trial": (
        f"UPDATE attempts SET ending = NULL, ended_at = NULL WHERE {attempt_of(4)}",
        f"trial 4: {OPENED} []; got [1]",
    ),
    "lease in the past": (
        "UPDATE attempts SET lease_expires_at = started_at WHERE ended_at IS NULL",
        "trial 3: it must have a live lease while it runs; got ['v']",
    ),
    "attempt missing": (
        f"DELETE FROM attempts WHERE attempt = 1 AND {attempt_of(3)}",
        "trial 3: its attempts must be numbered from 1 to 2; got [2]",
    ),
    "reading missing": (
        "DELETE FROM readings WHERE step = 20",
        "trial 0: its steps and scores must be those of its last reading",
    ),
    "step below one": (f"UPDATE {LAST.format('step = -5')}", SATISFY.format("readings", "step >= 1")),
    "reading by an earlier attempt": (f"UPDATE {EARLIER.format(2)}", None),
    "reading by an attempt that is not there": (
        f"UPDATE {EARLIER.format(3)}",
        "trial 0: the attempts of its readings must ascend, [2, 3]; got [3, 2]",
    ),
    "wrong rung": (f"UPDATE {LAST.format('rung = NULL')}", "got ['None in place of 1 at step 20 of trial 0']"),
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
    if expected is None:  # but for the rules that stood in the way
        assert [line for line in found if not line.startswith("the schema's ")] == []
    else:
        assert any(expected in line for line in found), found


def test_without_rung_steps_one_step_belongs_to_one_rung(search, without_guards):
    without_guards("UPDATE readings SET rung = 1 WHERE attempt = 1")
    found = violations(search.ledger, search.id)
    assert any("readings must be of the rungs of their steps" in line for line in found), found


def test_other_rungs_than_those_recorded_are_found(search):
    (line,) = violations(search.ledger, search.id, rung_steps=(5, 10))
    assert line.count(" in place of ") == 4


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


def test_missing_and_repeated_trial_numbers_are_found(search):
    """Test records, since the databases refuse a repeated number."""
    records = search.ledger.read(lambda link: Records.of(link, search.id))
    trials = records.trials
    lines = record_violations(replace(records, trials=(trials[0], replace(trials[1], number=0), *trials[2:])))
    assert "trial numbers must be [0, 1, 2, 3, 4]; got [0, 0, 2, 3, 4]" in lines
