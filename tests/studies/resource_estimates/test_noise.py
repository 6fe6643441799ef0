"""Difference of two scores that is more than noise, against the closed form and simulation."""

import math

import numpy as np
import pytest

from studies.resource_estimates.data import DataFacts
from studies.resource_estimates.noise import examples_for, noise_warning, smallest_difference


def test_smallest_difference_leaves_out_the_shared_half():
    assert smallest_difference(500, 0.9) == pytest.approx(1.96 * math.sqrt(2 * 0.9 * 0.1 * 0.5 / 500), rel=1e-4)
    assert smallest_difference(2000, 0.5) == pytest.approx(0.5 * smallest_difference(500, 0.5), rel=1e-12)


def test_drawn_shares_differ_by_more_in_one_case_of_twenty():
    random = np.random.default_rng(0)
    # each is right or wrong as all trials are with a probability of sqrt(1/2), so that the two correlate by a half
    common, *own = random.random((3, 4_000, 500)) < 0.8
    one, other = (np.where(random.random(each.shape) < math.sqrt(0.5), common, each).mean(axis=1) for each in own)
    beyond = float(np.mean(np.abs(one - other) > smallest_difference(500, 0.8)))
    assert beyond == pytest.approx(0.05, abs=0.016)  # a lattice of 1/500; four standard errors of the draw are 0.014


@pytest.mark.parametrize("score", [0.5, 0.9, 0.97])
def test_the_examples_that_show_a_difference_are_the_fewest_that_do(score):
    count = examples_for(0.02, score)
    assert smallest_difference(count, score) <= 0.02 < smallest_difference(count - 1, score)


def test_five_hundred_examples_cannot_show_two_points_and_two_thousand_can():
    def warning(examples: int) -> str | None:
        counts = {"validation": examples}
        return noise_warning(
            DataFacts(examples=counts, labels={}, metric="accuracy", constant_score=None, cuts=(), notes=())
        )

    assert warning(500) == (
        "500 validation examples cannot show a difference of 2 points: at a score of 0.90 two trials, both on "
        "them, must be 2.6 apart; 865 examples would."
    )
    assert warning(864) is not None
    assert warning(865) is None
