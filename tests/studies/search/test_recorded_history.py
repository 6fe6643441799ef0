"""Recorded trials as a history, and the noise of their readings."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from support.factored_search import score_of

from search_space.space.random_draw import RandomTrial
from studies.analysis.predictions import history_of
from studies.history.noise import ScoreNoise, accuracy_error, shared_variance_fraction
from studies.records import ExampleCounts, Reading, TrialRecord, TrialState
from studies.search.candidates import new_trial
from studies.surrogate.candidate_search import FactoredSearch
from studies.surrogate.reading_arrays import ReadingCollector

BEGAN_AT = datetime(2026, 1, 1, tzinfo=UTC)


def recorded(space, number: int, state: TrialState = TrialState.COMPLETE) -> TrialRecord:
    candidate = space.suggest(RandomTrial(number))
    new = new_trial(candidate, space.shape, number=number, head_parameters=10)
    score = score_of(candidate)
    return replace(
        new,
        state=state,
        score=score if state is TrialState.COMPLETE else None,
        steps=8,
        last_score=score,
        attempt=1,
        created_at=BEGAN_AT + timedelta(minutes=number),
        ended_at=BEGAN_AT + timedelta(minutes=number + 1) if state.is_terminal else None,
    )


def readings_of(trial: TrialRecord) -> list[Reading]:
    return [
        Reading(trial=trial.number, step=step, score=trial.last_score, train_loss=1, seconds=1, attempt=1, rung=0)
        for step in (4, 8)
    ]


def test_a_trial_of_the_ledger_is_the_trial_that_was_proposed(space):
    trial, candidate = recorded(space, 0), space.suggest(RandomTrial(0))
    assert (trial.configuration, trial.fingerprint) == (candidate.configuration, candidate.fingerprint)
    assert trial.attention_learning_rate == candidate.attention_learning_rate
    assert trial.ffn_learning_rate == candidate.ffn_learning_rate
    noise = ScoreNoise(steps=16, examples=400)
    first, second = readings_of(trial)
    assert [noise.fraction(one) for one in (first, second)] == [0.25, 0.5]
    assert noise.standard_error(first) == accuracy_error(trial.last_score, 400, 0.25)


def test_readings_of_running_trials_come_last(space):
    trials = [recorded(space, 0, TrialState.RUNNING), recorded(space, 2), recorded(space, 1)]
    history = history_of(trials, {one.number: readings_of(one) for one in trials}, None)
    assert ReadingCollector().collect(history).trials.tolist() == [2, 2, 1, 1, 0, 0]
    assert history.noise.standard_error(history.readings(0)[0]) == 0.0


def test_ledger_read_twice_gives_equal_proposals(space):
    trials = [recorded(space, number) for number in range(16)]
    counts = ExampleCounts(whole=500, rungs=500)
    one, other = (history_of(trials, {each.number: readings_of(each) for each in trials}, counts) for _ in range(2))
    proposals = [FactoredSearch(space, seed=1).candidate(history, number=16) for history in (one, other)]
    assert proposals[0] == proposals[1] is not None


def test_scores_outside_0_to_1_have_no_standard_error(space):
    (last,) = readings_of(recorded(space, 0))[1:]
    assert ScoreNoise(steps=8, examples=400).standard_error(replace(last, score=27.5)) == 0.0
    assert ScoreNoise(steps=8).standard_error(last) == 0.0
    assert ScoreNoise(steps=8, examples=400).standard_error(last) > 0.0


def test_accuracy_noise_is_binomial_less_the_shared_part():
    assert accuracy_error(0.5, 500) == pytest.approx(math.sqrt(0.25 * 0.5 / 500))
    assert accuracy_error(0.5, 500, 0.5) == pytest.approx(math.sqrt(0.25 * 0.62 / 500))
    assert accuracy_error(1.0, 500) == pytest.approx(math.sqrt(0.001 * 0.999 * 0.5 / 500))
    assert accuracy_error(0.0, 500) == pytest.approx(accuracy_error(1.0, 500))


def test_rung_noise_grows_with_fewer_examples(space):
    noise = ScoreNoise(steps=4, examples=800, rung_examples=200)
    first, last = (replace(readings_of(recorded(space, 0))[0], step=step, score=0.5) for step in (1, 4))
    assert noise.standard_error(first) == pytest.approx(2 * accuracy_error(0.5, 800, 0.25))
    assert noise.standard_error(last) == accuracy_error(0.5, 800)


@pytest.mark.parametrize(("fraction", "common"), [(1.0, 0.5), (0.5, 0.38), (0.25, 0.26), (1 / 16, 0.02), (0.01, 0.0)])
def test_trials_have_more_in_common_the_longer_they_were_trained(fraction, common):
    assert shared_variance_fraction(fraction) == pytest.approx(common, abs=1e-12)


def test_shared_noise_predicts_scatter_of_differences():
    """Right answers are those where a common and an own normal variable add up to less than nothing."""
    draws = np.random.default_rng(0)
    studies, examples, latent = 4000, 200, math.sin(math.pi / 4)
    common = draws.standard_normal((studies, 1, examples))
    own = draws.standard_normal((studies, 2, examples))
    right = math.sqrt(latent) * common + math.sqrt(1 - latent) * own < 0.0
    assert np.mean([np.corrcoef(pair)[0, 1] for pair in right]) == pytest.approx(
        shared_variance_fraction(1.0), abs=0.01
    )
    shares = right.mean(axis=2)
    assert np.std(shares[:, 0] - shares[:, 1]) == pytest.approx(math.sqrt(2) * accuracy_error(0.5, examples), rel=0.04)
