import math
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from dashboards.jsonable import jsonable
from studies.errors import StorageError, StudiesError
from studies.records import ExampleCounts, ExampleRecord, TrialReport, TrialState
from trial_runner.example_losses import ExampleLosses

ACCEPTED = ()
REFUSED = None


@pytest.fixture
def running(kept, values):
    """Return a study whose trial 0 runs as attempt 1 of worker ``w``."""
    kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(0)], worker="w")
    return kept


def settle(kept, attempt=1, **report):
    return kept.ledger.settle(kept.id, kept.epoch, 0, attempt, **report)


def test_readings_come_back_in_the_order_of_steps_and_move_the_trial_on(running, values):
    measured = {"accuracy": 0.7, "validation_loss": 0.1 + 0.2}
    readings = [values.reading(0, 20, score=0.7, rung=1, metrics=measured), values.reading(0, 10, score=0.6, rung=0)]
    assert settle(running, readings=readings) == ACCEPTED
    assert running.ledger.readings(running.id, 0) == readings[::-1]
    trial = running.ledger.trial(running.id, 0)
    assert (trial.state, trial.steps, trial.last_score) == (TrialState.RUNNING, 20, 0.7)


def test_reading_keeps_the_time_of_its_first_report(running, values):
    begun = datetime.now(UTC)
    settle(running, readings=[values.reading(0, 10)])
    [first] = running.ledger.readings(running.id)
    assert begun <= first.heard_at <= datetime.now(UTC)
    settle(running, readings=[values.reading(0, 10), values.reading(0, 20)])
    again, later = running.ledger.readings(running.id)
    assert again.heard_at == first.heard_at < later.heard_at


def test_the_first_reading_of_a_step_stands(running, values):
    settle(running, readings=[values.reading(0, 10, score=0.6)])
    assert settle(running, readings=[values.reading(0, 10, score=0.9)]) == ACCEPTED
    assert [reading.score for reading in running.ledger.readings(running.id)] == [0.6]
    assert running.ledger.trial(running.id, 0).last_score == 0.6
    assert settle(running, readings=[values.reading(0, 5, score=0.1), values.reading(0, 15, score=0.8)]) == ACCEPTED
    trial = running.ledger.trial(running.id, 0)
    assert (trial.steps, trial.last_score) == (15, 0.8)


def test_a_metric_that_is_not_finite_is_kept_as_nan(running, values):
    settle(running, readings=[values.reading(0, 10, metrics={"accuracy": 0.5, "matthews": math.nan, "loss": math.inf})])
    [reading] = running.ledger.readings(running.id)
    assert reading.metrics["accuracy"] == 0.5
    assert math.isnan(reading.metrics["matthews"])
    assert math.isnan(reading.metrics["loss"])


@pytest.mark.parametrize("changes", [{"score": math.nan}, {"score": math.inf}, {"train_loss": math.nan}])
def test_a_reading_that_is_not_finite_is_refused_with_all_of_its_report(running, values, changes):
    before = running.everything()
    with pytest.raises(StorageError, match="refuses the record"):
        settle(running, readings=[values.reading(0, 5), values.reading(0, 10, **changes)])
    assert running.everything() == before


@pytest.mark.parametrize("ending", ["complete", "pruned", "failed"])
def test_an_end_closes_the_trial_and_its_attempt_at_one_moment(running, values, ending):
    outcome = getattr(values, ending)
    assert settle(running, readings=[values.reading(0, 10, score=0.75)], **outcome) == ACCEPTED
    trial = running.ledger.trial(running.id, 0)
    expected = {"score": None, "reason": None, **outcome}
    assert {name: getattr(trial, name) for name in expected} == expected
    [attempt] = running.ledger.attempts(running.id, 0)
    assert attempt.ending == ending
    assert attempt.ended_at == trial.ended_at is not None
    before = running.everything()
    for again in (values.complete, values.pruned, values.failed):  # it ends once
        late = settle(running, readings=[values.reading(0, 99)], artefact=values.artefact(0, 99), **again)
        assert late == REFUSED
    assert settle(running, readings=[values.reading(0, 99)]) is None
    assert running.everything() == before


def test_a_late_attempt_is_not_accepted(running, values):
    running.ledger.release(running.id, running.epoch, "w", "gone")
    report = {"readings": [values.reading(0, 10)], **values.complete}
    assert settle(running, **report) == REFUSED
    running.ledger.lease_all(running.id, running.epoch, [0], "other")
    before = running.everything()
    assert settle(running, **report) == REFUSED
    assert running.everything() == before
    assert settle(running, attempt=2, **values.complete) == ACCEPTED
    assert running.ledger.settle(running.id, running.epoch, 7, 1, **values.complete) is None, "there is no such trial"


def test_later_attempt_adds_only_new_readings(running, values):
    settle(running, readings=[values.reading(0, 10, score=0.6), values.reading(0, 20, score=0.7)])
    running.ledger.release(running.id, running.epoch, "w", "gone")
    running.ledger.lease_all(running.id, running.epoch, [0], "other")
    again = [values.reading(0, step, attempt=2, score=0.9) for step in (20, 30)]
    assert settle(running, attempt=2, readings=again) == ACCEPTED
    found = [(reading.step, reading.attempt, reading.score) for reading in running.ledger.readings(running.id)]
    assert found == [(10, 1, 0.6), (20, 1, 0.7), (30, 2, 0.9)]


def test_two_newest_snapshots_are_kept(running, values):
    answers = [settle(running, artefact=values.artefact(0, step)) for step in (10, 20, 30, 40)]
    assert answers == [(), (), ("/snapshots/0-10",), ("/snapshots/0-20",)]
    assert running.ledger.artefacts(running.id, 0) == [values.artefact(0, 30), values.artefact(0, 40)]


def test_a_snapshot_of_the_same_step_takes_the_place_of_the_old_one(running, values):
    for step in (10, 20):
        settle(running, artefact=values.artefact(0, step))
    again = values.artefact(0, 10, path="/snapshots/again", sha256="11" * 32)
    assert settle(running, artefact=again) == ("/snapshots/0-10",)
    assert running.ledger.artefacts(running.id) == [values.artefact(0, 20), again]
    same = replace(again, sha256="22" * 32)  # a file that is written again under its name is not deleted
    assert settle(running, artefact=same) == ACCEPTED
    assert running.ledger.artefacts(running.id) == [values.artefact(0, 20), same]


def test_a_trial_that_ends_keeps_its_delta_and_no_snapshot(running, values):
    for step in (10, 20):
        settle(running, artefact=values.artefact(0, step))
    delta = values.artefact(0, 20, kind="delta", path="/deltas/0")
    dropped = settle(running, artefact=delta, **values.complete)
    assert dropped == ("/snapshots/0-10", "/snapshots/0-20")
    assert running.ledger.artefacts(running.id) == [delta]


def test_the_snapshot_of_a_trial_that_ends_is_not_kept(running, values):
    settle(running, artefact=values.artefact(0, 10))
    dropped = settle(running, artefact=values.artefact(0, 20), **values.pruned)
    assert dropped == ("/snapshots/0-10", "/snapshots/0-20")
    assert running.ledger.artefacts(running.id) == []


def test_a_delta_does_not_count_among_the_snapshots(running, values):
    settle(running, artefact=values.artefact(0, 5, kind="delta", path="/deltas/0"))
    for step in (10, 20, 30):
        settle(running, artefact=values.artefact(0, step))
    kept = [(artefact.kind, artefact.step) for artefact in running.ledger.artefacts(running.id)]
    assert kept == [("delta", 5), ("snapshot", 20), ("snapshot", 30)]


def test_report_of_another_attempt_is_refused(running, values):
    others = {"readings": [values.reading(1, 10)]}, {"readings": [values.reading(0, 10, attempt=2)]}
    for report in (*others, {"artefact": values.artefact(1, 10)}):
        with pytest.raises(ValueError, match="must not contain data of"):
            settle(running, **report)


def test_an_empty_report_asks_whether_the_attempt_still_runs(running):
    assert settle(running) == ACCEPTED
    assert settle(running, attempt=2) is None


def test_an_odd_reason_is_stored_as_far_as_text_can_be(running, values):
    settle(running, **{**values.failed, "reason": "boom\x00 \udcff"})
    assert running.ledger.trial(running.id, 0).reason == "boom ?"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"state": TrialState.QUEUED}, "must be running, complete, pruned or failed"),
        ({"score": 0.5}, "a final score must be given exactly"),
        ({"reason": "why"}, "a reason must be given exactly"),
        ({"state": TrialState.COMPLETE}, "a final score must be given exactly"),
        ({"state": TrialState.COMPLETE, "score": math.nan}, "must be finite"),
        ({"state": TrialState.COMPLETE, "score": 0.5, "reason": "why"}, "a reason must be given exactly"),
        ({"state": TrialState.PRUNED, "score": 0.5, "reason": "why"}, "a final score must be given exactly"),
        ({"state": TrialState.FAILED}, "a reason must be given exactly"),
    ],
)
def test_an_end_that_makes_no_sense_cannot_be_reported(fields, message):
    with pytest.raises(StudiesError, match=message):
        TrialReport(trial=0, attempt=1, **fields)


def test_examples_of_a_reading_are_loaded_on_request(running, values):
    reading, found = values.reading(0, 10), ExampleLosses.of(np.array([0.5, 2.0]), np.array([True, False]))
    record = ExampleRecord(trial=0, step=10, losses=found.losses, correct=found.correct)
    settle(running, readings=[replace(reading, examples=found)])
    settle(running, readings=[replace(reading, examples=replace(found, losses=b"1234"))])
    assert running.ledger.examples(running.id) == running.ledger.examples(running.id, 0) == [record]
    assert running.ledger.readings(running.id) == [reading]


def test_a_reading_is_shown_without_its_examples(running, values):
    reading = replace(values.reading(0, 10), examples=ExampleLosses.of(np.array([0.5, 2.0])))
    settle(running, readings=[reading])
    (found,) = running.ledger.readings(running.id)
    assert (found, found.examples) == (replace(reading, examples=None), None)
    assert jsonable(reading) == jsonable(replace(found, heard_at=None))
    shown = ["trial", "step", "score", "metrics", "train_loss", "seconds", "attempt", "rung", "heard_at"]
    assert list(jsonable(reading)) == shown


def test_examples_count_rungs_and_steps_after_last_reading(running, values):
    assert running.ledger.example_counts(running.id) is None
    for step, count, rungs in ((10, 2, 2), (20, 2, 2), (40, 5, 2)):
        settle(running, readings=[values.reading(0, step, examples=ExampleLosses.of(np.zeros(count)))])
        assert running.ledger.example_counts(running.id) == ExampleCounts(whole=count, rungs=rungs)
