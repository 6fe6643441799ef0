import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy.exc import StatementError

from studies.errors import StorageError
from studies.ledger.tables import TRIALS, UtcTime

TIME = "'2026-01-01 00:00:00+00:00'"
FIRST = "WHERE number = 0"
ATTEMPT = "INSERT INTO attempts SELECT trial_id, {}, worker, lease_expires_at, started_at, {}"
EXAMPLES = "INSERT INTO examples (trial_id, step, losses) SELECT"
REFUSED = {
    "unknown state": "UPDATE trials SET state = 'done' WHERE number = 0",
    "complete without score": f"UPDATE trials SET state = 'complete', ended_at = {TIME} WHERE number = 0",
    "complete without end": "UPDATE trials SET state = 'complete', score = 1 WHERE number = 0",
    "complete with reason": f"UPDATE trials SET state = 'complete', score = 1, reason = 'x', ended_at = {TIME} {FIRST}",
    "score while running": "UPDATE trials SET score = 1 WHERE number = 0",
    "end while running": f"UPDATE trials SET ended_at = {TIME} WHERE number = 0",
    "reason while running": "UPDATE trials SET reason = 'x' WHERE number = 0",
    "pruned without reason": f"UPDATE trials SET state = 'pruned', ended_at = {TIME} WHERE number = 0",
    "failed with score": f"UPDATE trials SET state = 'failed', reason = 'x', score = 1, ended_at = {TIME} {FIRST}",
    "infinite score": f"UPDATE trials SET state = 'complete', score = 9e999, ended_at = {TIME} WHERE number = 0",
    "running without attempt": "UPDATE trials SET attempt = 0 WHERE number = 0",
    "steps without score": "UPDATE trials SET steps = 5 WHERE number = 0",
    "number twice": "UPDATE trials SET number = 1 WHERE number = 0",
    "negative number": "UPDATE trials SET number = -1 WHERE number = 0",
    "fingerprint twice": "UPDATE trials SET fingerprint = 'fingerprint-1' WHERE number = 0",
    "share above one": "UPDATE trials SET attention_share = 1.5 WHERE number = 0",
    "half a site": "UPDATE trials SET ffn_form = 'lowrank' WHERE number = 0",
    "dimension without a site": "UPDATE trials SET ffn_bottleneck = 8 WHERE number = 0",
    "form removed": "UPDATE trials SET attention_form = NULL WHERE number = 0",
    "study of nowhere": "UPDATE trials SET study_id = 99 WHERE number = 0",
    "terminal trial changed": "UPDATE trials SET score = 0.9 WHERE number = 1",
    "terminal trial reopened": "UPDATE trials SET state = 'queued', score = NULL, ended_at = NULL WHERE number = 1",
    "attempt twice": ATTEMPT.format("attempt", "ended_at, ending FROM attempts"),
    "two open attempts": ATTEMPT.format(2, "NULL, NULL FROM attempts WHERE ended_at IS NULL"),
    "two final attempts": ATTEMPT.format(2, "ended_at, 'failed' FROM attempts WHERE ending = 'complete'"),
    "ending without end": "UPDATE attempts SET ending = 'lost' WHERE ended_at IS NULL",
    "unknown ending": "UPDATE attempts SET ending = 'gone' WHERE ended_at IS NOT NULL",
    "reading of step zero": "UPDATE readings SET step = 0",
    "reading of no attempt": "UPDATE readings SET attempt = 5",
    "reading without score": "UPDATE readings SET score = NULL",
    "negative time": "UPDATE readings SET seconds = -1",
    "examples of no reading": f"{EXAMPLES} trial_id, step + 1, 'ab' FROM readings",
    "no examples at all": f"{EXAMPLES} trial_id, step, '' FROM readings",
    "replicate of nothing": "UPDATE trials SET origin = 'replicate' WHERE number = 0",
    "replicate of itself": "UPDATE trials SET origin = 'replicate', replicate_of = 0 WHERE number = 0",
    "replicate that is a proposal": "UPDATE trials SET replicate_of = 0 WHERE number = 0",
    "unknown origin": "UPDATE trials SET origin = 'other' WHERE number = 0",
    "unknown kind of file": "UPDATE artefacts SET kind = 'log'",
    "trial with readings deleted": "DELETE FROM trials",
    "study with trials deleted": "DELETE FROM studies",
    "study name twice": "INSERT INTO studies SELECT 99, name, specification, backbone, backbone_parameters, "
    "budget_parameters, metric, seed, epoch, created_at, kind, parent_id, folder, holder, held_until FROM studies",
    "unknown kind of study": "UPDATE studies SET kind = 'other'",
    "confirmation of nothing": "UPDATE studies SET kind = 'confirmation'",
    "search with a parent": "UPDATE studies SET parent_id = id",
    "confirmation of a study of nowhere": "UPDATE studies SET kind = 'confirmation', parent_id = 99",
}


def answer(tamper, statement):
    try:
        tamper(statement)
    except StorageError as error:
        return str(error)
    return "accepted"


def test_database_refuses_invalid_records(two_trials, tamper):
    before = two_trials.ledger.trials(two_trials.id)
    answers = {name: answer(tamper, statement) for name, statement in REFUSED.items()}
    odd = {name: text for name, text in answers.items() if not re.search("refuses the record|out of range", text)}
    assert odd == {}
    assert two_trials.ledger.trials(two_trials.id) == before


def test_times_of_other_zones_are_stored_as_utc(two_trials):
    noon = datetime(2026, 7, 1, 12, tzinfo=timezone(timedelta(hours=5)))
    changed = TRIALS.update().where(TRIALS.c.number == 0).values(created_at=noon).returning(TRIALS.c.created_at)
    found = two_trials.ledger.database.write(lambda link, _: link.execute(changed).scalar_one())
    assert found == noon
    assert found.utcoffset() == timedelta(0)


def test_a_time_without_zone_is_refused(two_trials):
    statement = TRIALS.update().values(created_at=datetime(2026, 7, 1, 12))
    with pytest.raises(StatementError, match="must have a time zone"):
        two_trials.ledger.read(lambda link: link.execute(statement))


def test_times_as_text_sort_as_times():
    class Sqlite:
        name = "sqlite"

    base = datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)
    times = [base, base + timedelta(microseconds=1), base + timedelta(seconds=1), base + timedelta(days=400)]
    texts = [UtcTime().process_bind_param(time, Sqlite()) for time in times]
    assert texts == sorted(texts)
    assert len({len(text) for text in texts}) == 1
