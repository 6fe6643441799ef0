"""A portfolio beside the best of all sets of its size."""

import math
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from studies.search.transfer import LARGEST_PORTFOLIO, portfolio


def value(worth: NDArray[np.float64], chosen: tuple[int, ...] | list[int]) -> float:
    """Return the mean over columns of the best of these rows."""
    return float(worth[list(chosen)].max(axis=0).mean()) if chosen else 0.0


@pytest.mark.parametrize("most", [1, 2, 3])
def test_it_is_nearly_the_best_of_all_sets(most):
    """Test the bound of a greedy choice, at least 1 - (1 - 1/k)^k of the best value; one row is exact."""
    for seed in range(60):
        worth = np.random.default_rng(seed).random((8, 5)) ** 2
        best = max(value(worth, rows) for rows in combinations(range(8), most))
        found = value(worth, portfolio(worth, most))
        assert best >= found >= (1 - (1 - 1 / most) ** most) * best - 1e-12
        if most == 1:
            assert found == best


def test_portfolio_prefers_rows_good_on_different_tasks():
    worth = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.1], [0.2, 0.2, 1.0], [0.1, 0.1, 0.9]])
    assert portfolio(worth, 2) == [1, 2]
    assert portfolio(worth) == [1, 2, 0]


def test_rows_without_gain_are_not_chosen():
    assert portfolio(np.ones((20, 3))) == [0]
    assert portfolio(np.eye(9)) == list(range(LARGEST_PORTFOLIO))
    assert portfolio(np.zeros((0, 2))) == []
    assert portfolio(np.array([[0.0], [1e-12]])) == []
    assert math.isclose(value(np.eye(9), portfolio(np.eye(9))), LARGEST_PORTFOLIO / 9)
