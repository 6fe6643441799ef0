"""Fronts and hypervolumes against their definitions."""

import itertools
import math
import random

import numpy as np
import pytest

from studies.errors import StudiesError
from studies.objectives import SizeScale
from studies.pareto import Staircase, front

SCALE = SizeScale(largest=1000.0, smallest_share=0.125)


def _random_trials(seed: int) -> tuple[list[float], list[float]]:
    draw = random.Random(seed)
    # few different values, so that there are equals
    return [float(draw.choice([0, 60, 125, 200, 500, 999, 1000])) for _ in range(12)], [
        draw.choice([0.1, 0.2, 0.25, 0.3]) for _ in range(12)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_a_trial_is_on_the_front_if_none_that_is_no_larger_scores_as_much(seed):
    sizes, scores = _random_trials(seed)
    trials = list(zip(sizes, scores, range(len(sizes)), strict=True))
    expected = [
        number
        for size, score, number in sorted(trials)
        if not any(
            (other <= size and better > score) or (better == score and (other, rank) < (size, number))
            for other, better, rank in trials
        )
    ]
    assert front(sizes, scores).tolist() == expected


def test_front_of_no_trials_is_empty():
    assert front([], []).tolist() == []


@pytest.mark.parametrize("seed", range(10))
def test_a_staircase_is_the_best_score_within_every_size(seed):
    sizes, scores = _random_trials(seed)
    places = [SCALE.place(size) for size in sizes]
    stairs = Staircase.of(places, scores, scale=SCALE, reference=0.15)
    grid = np.linspace(SCALE.low, SCALE.high, 4001)[:-1] + 0.5 * (SCALE.high - SCALE.low) / 4000
    best = [max([0.15, *(score for place, score in zip(places, scores, strict=True) if place <= one)]) for one in grid]
    assert [stairs.at(one) for one in grid] == best
    # a rectangle rule is off by at most one cell at every step of the stairs
    error = len(stairs.levels) * 0.2 * (grid[1] - grid[0])
    assert stairs.area(0.15) == pytest.approx((np.array(best) - 0.15).mean() * (SCALE.high - SCALE.low), abs=error)


def test_hypervolume_weighs_halvings_of_size_equally():
    areas = [
        Staircase.of([SCALE.place(size)], [1.0], scale=SCALE, reference=0.0).area(0.0)
        for size in (1000, 500, 250, 125, 1, 0)
    ]
    assert areas == pytest.approx([1, 2, 3, 4, 4, 4], abs=1e-12)


def test_trials_outside_the_reference_add_no_area():
    good = Staircase.of([-1.0], [0.5], scale=SCALE, reference=0.3)
    more = Staircase.of([-1.0, -2.0, 1.5], [0.5, 0.2, 0.9], scale=SCALE, reference=0.3)
    assert more.area(0.3) == good.area(0.3)


def test_the_order_of_trials_does_not_matter():
    trials = [(-2.0, 0.2), (-1.0, 0.4), (0.0, 0.5)]
    for some in itertools.permutations(trials):
        places, scores = zip(*some, strict=True)
        stairs = Staircase.of(places, scores, scale=SCALE, reference=0.0)
        assert stairs.area(0.0) == pytest.approx(0.2 + 0.4 + 0.5, abs=1e-12)


@pytest.mark.parametrize(("largest", "share"), [(0, 0.5), (-1, 0.5), (math.nan, 0.5), (10, 0), (10, 1.5)])
def test_a_scale_needs_a_largest_size_and_a_share_of_it(largest, share):
    with pytest.raises(StudiesError, match="must have a largest one above 0"):
        SizeScale(largest=largest, smallest_share=share)
