"""How far two scores must be apart to be more than luck, against the closed form and against drawing."""

import math

import numpy as np
import pytest

from studies.resource_estimates.data import DataFacts
from studies.resource_estimates.noise import examples_for, noise_warning, smallest_difference


def test_smallest_difference_is_of_two_independent_proportions():
    assert smallest_difference(500, 0.9) == pytest.approx(1.96 * math.sqrt(2 * 0.9 * 0.1 / 500), rel=1e-4)
    assert smallest_difference(2000, 0.5) == pytest.approx(0.5 * smallest_difference(500, 0.5), rel=1e-12)


def test_drawn_shares_differ_by_more_in_one_case_of_twenty():
    random = np.random.default_rng(0)
    one, other = random.binomial(500, 0.8, (2, 200_000)) / 500
    beyond = float(np.mean(np.abs(one - other) > smallest_difference(500, 0.8)))
    assert beyond == pytest.approx(0.05, abs=0.005)  # a lattice of 1/500; four standard errors of the draw are 0.002


@pytest.mark.parametrize("score", [0.5, 0.9, 0.97])
def test_the_examples_that_show_a_difference_are_the_fewest_that_do(score):
    count = examples_for(0.02, score)
    assert smallest_difference(count, score) <= 0.02 < smallest_difference(count - 1, score)


def test_five_hundred_examples_cannot_show_two_points_and_two_thousand_can():
    def said(examples: int) -> str | None:
        counts = {"validation": examples}
        return noise_warning(
            DataFacts(examples=counts, labels={}, metric="accuracy", constant_score=None, cuts=(), notes=())
        )

    assert said(500) == (
        "500 validation examples cannot show a difference of 2 points: at a score of 0.90 two trials must be 3.7 "
        "apart; 1,729 examples would."
    )
    assert said(1728) is not None
    assert said(1729) is None
