"""Past of a study as a value: events make new histories, which share what has not changed."""

import math
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from support.simulated_search import record_of

from search_space.space.random_draw import RandomTrial
from studies.history.history import BLOCK, StudyHistory, at_end
from studies.history.noise import ScoreNoise
from studies.records import Reading, TrialRecord, TrialReport, TrialState
from trial_runner.example_losses import ExampleLosses

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def running(space) -> TrialRecord:
    record = record_of(space.suggest(RandomTrial(0)), 0, space, TrialState.RUNNING)
    return replace(record, steps=0, last_score=None)


@pytest.fixture
def three(running) -> StudyHistory:
    return StudyHistory(ScoreNoise(steps=8)).added(replace(running, number=number) for number in range(3))


def report(trial: int, step: int, reading_score: float, **end: object) -> TrialReport:
    examples = ExampleLosses.of(np.zeros(4))
    reading = Reading(trial=trial, step=step, score=reading_score, train_loss=1.0, seconds=1.0, examples=examples)
    return TrialReport(trial=trial, attempt=1, reading=reading, **end)  # type: ignore[arg-type]


def test_reading_moves_the_trial_to_its_step_without_its_examples(three):
    later = three.reported(report(1, 4, 0.25))
    assert (later[1].steps, later[1].last_score, later[1].state) == (4, 0.25, TrialState.RUNNING)
    (reading,) = later.readings(1)
    assert (reading.step, reading.score, reading.examples) == (4, 0.25, None)
    assert later.reading_at(1, 4) is reading
    assert later.reading_at(1, 8) is later.reading_at(0, 4) is None
    assert (later[0], later[2], later.noise) == (three[0], three[2], three.noise)


def test_first_of_two_readings_at_a_step_stays(three):
    twice = three.reported(report(0, 4, 0.25)).reported(report(0, 4, 0.75))
    assert [one.score for one in twice.readings(0)] == [0.25]
    assert (twice[0].steps, twice[0].last_score) == (4, 0.25)


def test_scores_at_a_step_are_sorted_and_without_replicates(three):
    later = three.changed(2, replicate_of=0).added([replace(three[0], number=3)])
    for trial, score in ((1, 0.5), (0, 0.25), (3, 0.6), (2, 0.75), (1, 0.9)):
        later = later.reported(report(trial, 4, score))
    later = later.reported(report(1, 8, 0.75))
    assert [later.scores_at(step) for step in (4, 8, 16)] == [(0.25, 0.5, 0.6), (0.75,), ()]
    again = StudyHistory.of(list(later), dict(enumerate(readings for _, readings in later.entries())))
    assert [again.scores_at(step) for step in (4, 8, 16)] == [(0.25, 0.5, 0.6), (0.75,), ()]
    assert three.scores_at(4) == ()


def test_reading_at_an_earlier_step_is_no_progress(three):
    later = three.reported(report(0, 8, 0.5)).reported(report(0, 4, 0.25))
    assert [one.step for one in later.readings(0)] == [8, 4]
    assert (later[0].steps, later[0].last_score) == (8, 0.5)


def test_end_sets_state_score_and_time(three):
    complete = three.reported(report(2, 8, 0.5, state=TrialState.COMPLETE, score=0.5), NOON)
    assert (complete[2].state, complete[2].score, complete[2].ended_at) == (TrialState.COMPLETE, 0.5, NOON)
    assert complete.counts == {**dict.fromkeys(TrialState, 0), TrialState.RUNNING: 2, TrialState.COMPLETE: 1}
    failed = three.reported(TrialReport(trial=0, attempt=1, state=TrialState.FAILED, reason="it failed"), NOON)
    assert (failed[0].reason, failed.readings(0), failed[0].steps) == ("it failed", (), 0)
    assert [at_end(one) for one in (complete[2], complete[0])] == [(NOON.timestamp(), 2), (0.0, 0)]


def test_negative_numbers_count_from_the_end(three):
    later = three.changed(-1, state=TrialState.QUEUED)
    assert [one.state for one in later] == [TrialState.RUNNING, TrialState.RUNNING, TrialState.QUEUED]
    assert len(later) == 3
    with pytest.raises(IndexError):
        three.changed(3, state=TrialState.QUEUED)


def test_an_earlier_history_stays_as_it_was(three):
    before = list(three.entries())
    three.reported(report(1, 4, 0.25)).changed(1, state=TrialState.QUEUED).added([replace(three[0], number=3)])
    assert list(three.entries()) == before
    assert len(three) == 3
    assert three.counts[TrialState.RUNNING] == 3


def test_fingerprints_are_those_of_all_trials_of_this_history(running):
    names = [f"trial {number}" for number in range(BLOCK + 2)]
    numbered = [replace(running, number=number, fingerprint=name) for number, name in enumerate(names)]
    first, last = StudyHistory().added(numbered[:-1]), numbered[-1]
    assert not StudyHistory().has_fingerprint(names[0])
    for history in (first.added([last]), first.added([last]).changed(BLOCK, steps=1), StudyHistory.of(numbered, {})):
        assert all(history.has_fingerprint(name) for name in names)
        assert not history.has_fingerprint("trial")
    other = first.added([replace(last, fingerprint="another")])
    found = [one.has_fingerprint(names[-1]) for one in (first, other)]
    assert found == [False, False]
    assert other.has_fingerprint("another")


def test_only_the_block_of_a_changed_trial_is_made_anew(running):
    records = [replace(running, number=number) for number in range(2 * BLOCK + 10)]
    history = StudyHistory.of(records, {BLOCK: [report(BLOCK, 4, 0.1).reading]})  # type: ignore[dict-item]
    assert len(history) == len(records)
    later = history.reported(report(BLOCK + 1, 4, 0.5))
    is_same = [one is other for one, other in zip(history.entries(), later.entries(), strict=True)]
    assert [number for number, same in enumerate(is_same) if not same] == [BLOCK + 1]
    assert [one.number for one in later[BLOCK - 1 : BLOCK + 2]] == [BLOCK - 1, BLOCK, BLOCK + 1]
    assert [trial.number for trial, _ in later.entries(2 * BLOCK + 7)] == [2 * BLOCK + 7, 2 * BLOCK + 8, 2 * BLOCK + 9]
    assert later[-1].number == len(later) - 1
    with pytest.raises(IndexError):
        later[len(records)]


@pytest.mark.parametrize("count", [1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK])
def test_history_of_events_equals_that_of_the_records(running, count):
    grown, readings = StudyHistory(), {}
    for number in range(count):
        grown = grown.added([replace(running, number=number)])
        for step in (4, 8):
            grown = grown.reported(report(number, step, step / 10))
        readings[number] = list(grown.readings(number))
        grown = grown.changed(number, attempt=2)
    expected = [replace(running, number=number, steps=8, last_score=0.8, attempt=2) for number in range(count)]
    assert list(grown) == expected
    assert list(grown.entries()) == list(StudyHistory.of(expected, readings).entries())
    other = [*expected[:-1], replace(expected[-1], attempt=1)]
    assert list(grown.entries()) != list(StudyHistory.of(other, readings).entries())


def test_fraction_of_a_reading_is_at_most_one():
    noise = ScoreNoise(steps=8, examples=100)
    shares = [noise.fraction(report(0, step, 0.5).reading) for step in (2, 8, 20)]  # type: ignore[arg-type]
    assert shares == [0.25, 1.0, 1.0]
    # half of the variance of the last reading is common to all trials
    last = noise.standard_error(report(0, 8, 0.5).reading)  # type: ignore[arg-type]
    assert last == pytest.approx(math.sqrt(0.25 / 100 / 2))
