"""Readings in their order, without unit, and thin; hyper-parameters at checkpoints."""

import random
from dataclasses import replace

import numpy as np
import pytest
from support.factored_search import MeasuredTrial, ended_at, history_of, reading

from studies.records import TrialState
from studies.surrogate.posterior import SurrogateFitter, checkpoint
from studies.surrogate.reading_arrays import (
    LARGEST,
    LARGEST_LOSSES,
    ReadingCollector,
    Readings,
    used_losses,
    used_scores,
)
from studies.surrogate.score_warp import KNEE, full_scale, scales_of, standardize, unwarp, warp, warp_slope


def same(one: Readings, other: Readings) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in Readings.__slots__)


def collected_from(trials: list[MeasuredTrial]) -> Readings:
    return ReadingCollector().collect(history_of(trials))


def test_readings_are_ordered_by_time_and_number(history):
    trials = history(6)
    late = trials[0].changed(ended_at=ended_at(99))
    collected = collected_from([late, *trials[1:]])
    assert collected.trials.tolist() == [1, 1, 2, 3, 3, 4, 4, 5, 0, 0]
    assert collected.rungs.tolist() == [-1, 0, -1, -1, 0, -1, 0, -1, -1, 0]
    assert collected.trial_count == 6


def test_incremental_collection_equals_a_new_one(history):
    trials, follower = history(30), ReadingCollector()
    for count in range(31):
        running = [one.changed(state=TrialState.RUNNING, readings=()) for one in trials[count - 2 : count]]
        now = [*trials[: max(0, count - 2)], *running]
        assert same(follower.collect(history_of(now)), collected_from(now))
    assert same(follower.collect(history_of(trials[:4])), collected_from(trials[:4]))


def test_many_readings_are_thinned_to_best_newest_and_sample(history):
    few = collected_from(history(50))
    assert used_scores(few).tolist() == list(range(len(few)))
    draw = random.Random(0)
    some = history(2)[1]
    trials = [
        some.changed(number=number, ended_at=ended_at(number), readings=[reading(draw.random())])
        for number in range(3000)
    ]
    collected = collected_from(trials)
    kept = set(collected.trials[used_scores(collected)].tolist())
    best = set(np.argsort(-collected.scores)[:120].tolist())
    assert len(kept) == LARGEST
    assert best <= kept
    assert set(range(2920, 3000)) <= kept
    rest = kept - best - set(range(2920, 3000))
    assert 0.3 < np.mean([trial < 1500 for trial in rest]) < 0.7


def test_earlier_readings_go_before_any_trial_does(history):
    trials = history(250)
    collected = collected_from(trials)
    kept = used_scores(collected)
    assert len(collected) > LARGEST == len(kept)
    kept_readings = collected.take(kept)
    assert set(kept_readings.trials.tolist()) == set(range(250))
    assert [collected.rungs[collected.trials == one].max() for one in range(250)] == [
        kept_readings.rungs[kept_readings.trials == one].max() for one in range(250)
    ]
    half = [int((kept_readings.trials == one).sum()) for one in range(250)]
    assert max(half[:20]) == 1
    assert max(half[-50:]) == 2


def scores_with(scores: list[float], errors: float, rungs: list[float]) -> Readings:
    count = len(scores)
    return Readings(
        trials=np.arange(count),
        rungs=np.array(rungs),
        scores=np.array(scores),
        errors=np.full(count, errors),
        slopes=np.ones(count),
        are_losses=np.zeros(count, dtype=np.bool_),
    )


def test_scores_are_standardised_by_the_median_and_spread_of_each_rung():
    readings = scores_with([0.1, 0.2, 0.3, 0.4, 0.5, 0.9, 0.8], 0.01, [-1.0] * 5 + [0.0] * 2)
    scales = scales_of(readings)
    found = standardize(readings, scales)
    assert scales[False, -1.0].middle == 0.3
    assert scales[False, -1.0].spread == pytest.approx(0.14826)
    assert full_scale(scales).middle == pytest.approx(0.85)
    assert full_scale(scales).spread == scales[False, -1.0].spread  # two readings say nothing of a spread
    np.testing.assert_allclose(found.scores[:5], (readings.scores[:5] - 0.3) / 0.14826, rtol=1e-12)
    np.testing.assert_allclose(found.errors, 0.01 / 0.14826, rtol=1e-12)


def test_the_error_of_a_scale_is_the_median_of_its_own_rung():
    errors = np.array([0.01] * 5 + [0.02, 0.05])
    readings = replace(scores_with([0.1, 0.2, 0.3, 0.4, 0.5, 0.9, 0.8], 0.0, [-1.0] * 5 + [0.0] * 2), errors=errors)
    assert [scales_of(readings)[False, rung].error for rung in (-1.0, 0.0)] == pytest.approx([0.01, 0.035])
    # with spreads of an earlier fit, too
    assert scales_of(readings, scales_of(readings))[False, 0.0].error == pytest.approx(0.035)


def test_only_low_outliers_are_warped_with_their_noise():
    readings = scores_with([0.4, 0.41, 0.42, 0.43, 0.44, -5.0], 0.01, [0.0] * 6)
    scale = full_scale(scales_of(readings))
    found = standardize(readings, scales_of(readings))
    np.testing.assert_array_equal(found.scores[:5], (readings.scores[:5] - scale.middle) / scale.spread)
    np.testing.assert_array_equal(found.errors[:5], 0.01 / scale.spread)
    np.testing.assert_array_equal(found.slopes[:5], 1.0)
    below = KNEE - (-5.0 - scale.middle) / scale.spread
    assert found.scores[5] == pytest.approx(KNEE - 0.5 * np.log1p(below / 5), rel=1e-12)
    assert found.slopes[5] == pytest.approx(0.5 / (5 + below), rel=1e-12)
    assert found.errors[5] == pytest.approx(0.01 / scale.spread * found.slopes[5], rel=1e-12)


def test_losses_have_scales_of_their_own_and_the_noise_of_their_scores(history):
    trials = [one.changed(readings=[reading(0.5 + one.number / 100, loss=1.0 - one.number / 10)]) for one in history(6)]
    collected = collected_from(trials)
    assert collected.are_losses.tolist() == [False, True] * 6
    assert collected.trials.tolist() == [number for number in range(6) for _ in range(2)]
    assert collected.scores[1::2].tolist() == [-one.readings[0].metrics["validation_loss"] for one in trials]
    scales = scales_of(collected)
    assert {is_loss: one.middle for (is_loss, _), one in scales.items()} == pytest.approx({False: 0.525, True: -0.75})
    assert {is_loss: one.error for (is_loss, _), one in scales.items()} == {False: collected.errors[0], True: 0.0}
    found = standardize(collected, scales)
    np.testing.assert_allclose(found.scores[1::2], found.scores[::2], rtol=1e-9)  # both are linear in the number
    np.testing.assert_array_equal(found.errors[1::2], found.errors[::2])


def test_noise_of_a_loss_shrinks_by_its_own_slope(history):
    trials = [
        one.changed(readings=[reading(-9.0 if one.number == 5 else 0.5 + one.number / 100, loss=one.number / 10)])
        for one in history(6)
    ]
    collected = collected_from(trials)
    scales = scales_of(collected)
    found = standardize(collected, scales)
    noise = collected.errors[0] / scales[False, 0.0].spread
    assert found.slopes[10] < 0.1 < found.slopes[11] == 1.0
    np.testing.assert_allclose(found.errors[[0, 1, 10, 11]], noise * found.slopes[[0, 1, 10, 11]], rtol=1e-9)


def test_losses_follow_their_own_scores_in_time(history):
    trials = [
        one.changed(ended_at=ended_at(9 - one.number), readings=[reading(one.number, loss=loss)])
        for one, loss in zip(history(4), (10.0, None, 30.0, None), strict=True)
    ]
    collected = collected_from(trials)
    assert collected.trials.tolist() == [3, 2, 2, 1, 0, 0]
    assert collected.scores.tolist() == [3, 2, -30, 1, 0, -10]


def test_warp_is_monotone_with_its_inverse_and_slope():
    scores = np.concatenate([-np.geomspace(1e5, 1e-5, 4001) + KNEE, np.linspace(KNEE, 5, 901)])
    modelled = warp(scores)
    assert (np.diff(modelled) > 0).all()
    np.testing.assert_allclose(unwarp(modelled), scores, rtol=1e-9)
    np.testing.assert_array_equal(modelled[scores >= KNEE], scores[scores >= KNEE])
    steep = np.abs(scores - KNEE) > 1e-3
    step = 1e-6 * np.maximum(1, np.abs(scores[steep]))
    differences = warp(scores[steep] + step) - warp(scores[steep] - step)
    np.testing.assert_allclose(warp_slope(scores[steep]), differences / (2 * step), rtol=1e-4)


def test_no_spread_is_below_the_noise():
    readings = scores_with([0.4] * 6, 0.02, [0.0] * 6)
    assert full_scale(scales_of(readings)).spread == 0.02
    np.testing.assert_array_equal(standardize(readings, scales_of(readings)).scores, 0)


@pytest.mark.parametrize(
    ("scores", "spread"),
    [
        ([0.0] * 7 + [0.3, 0.4, 0.5], 0.05 * (2 * 0.5 / 10) ** 0.5),  # more than half predict a constant label
        ([0.0, 1e-6, 2e-6, 3e-6, 4e-6, 5e-6, 0.3, 0.4, 0.5], 0.05 * (2 * 0.5 / 9) ** 0.5),  # all but equal
        ([0.5] * 6 + [0.1, 0.2], (0.25 / 8 - (0.7 / 8) ** 2) ** 0.5),  # none is above: the standard deviation
        ([0.4, 0.41, 0.42, 0.43, 0.44, -5.0], 1.4826 * 0.01 * 1.5),  # what is far below changes nothing
        ([0.7] * 8, 1e-9),
    ],
)
def test_spread_of_scores_most_of_which_are_equal(scores, spread):
    found = full_scale(scales_of(scores_with(scores, 0.0, [0.0] * len(scores)))).spread
    assert found == pytest.approx(spread, rel=1e-3)


def test_checkpoints_grow_by_a_third():
    reached = sorted({checkpoint(trials) for trials in range(12, 120)} - {None})
    assert reached == [12, 16, 22, 30, 40, 54, 73, 99]
    assert checkpoint(11) is None


def test_later_readings_use_the_spread_of_the_amplitudes(encoding, history):
    def near(one, by):
        readings = [
            replace(
                each,
                score=0.45 + by * (each.score - 0.45),
                metrics={"validation_loss": 0.55 + by * (0.45 - each.score)},
            )
            for each in one.readings
        ]
        return one.changed(readings=readings)

    trials = history(30)
    early = [near(one, 1.0) for one in trials[:16]]
    late = [near(one, 0.1) for one in trials[16:]]  # as of a search that has found its favourites
    first = SurrogateFitter(encoding.features_of, fits_to=16).posterior(history_of(early, 1e-4))
    # until the sixteenth trial was heard of, its own later reading aside
    scales = scales_of(ReadingCollector().collect(history_of(early, 1e-4)).until(16))
    for some in (early, [*early, *late]):
        found = SurrogateFitter(encoding.features_of, fits_to=16).posterior(history_of(some, 1e-4))
        assert found.scale.spread == scales[False, 0.0].spread
        np.testing.assert_array_equal(found.process.values.logarithms, first.process.values.logarithms)
    usual = SurrogateFitter(encoding.features_of).posterior(history_of([*early, *late], 1e-4))
    assert usual.scale.spread < 0.9 * scales[False, 0.0].spread
    here, there = (one.process.readings for one in (found, usual))
    assert np.ptp(here.scores[here.are_losses]) < 0.9 * np.ptp(there.scores[there.are_losses])


def test_last_losses_of_the_best_trials_are_collected(history):
    def with_loss(one, loss):
        metrics = {} if loss is None else {"validation_loss": loss}
        return one.changed(readings=[replace(each, metrics=metrics) for each in one.readings])

    few = [with_loss(one, 0.5 if one.number % 2 else None) for one in history(12)]
    collected = collected_from(few)
    rows = used_losses(collected)
    assert sorted(collected.trials[rows]) == [1, 3, 5, 7, 9, 11]
    for row in rows:
        assert collected.scores[row] == -0.5
        assert collected.rungs[row] == collected.rungs[collected.trials == collected.trials[row]].max()
    many = [
        one.changed(number=number, readings=[reading(number / 1e3, loss=1.0)])
        for number, one in enumerate(few[:1] * (LARGEST_LOSSES + 20))
    ]
    collected = collected_from(many)
    assert collected.trials[used_losses(collected)].tolist() == list(range(20, LARGEST_LOSSES + 20))
    assert not len(used_losses(collected_from(history(12))))
