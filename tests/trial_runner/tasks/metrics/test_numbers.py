"""Metrics of numbers against SciPy, and where a correlation has no value."""

import numpy as np
import pytest
import scipy.stats

from trial_runner.tasks import compute
from trial_runner.tasks.metrics.numbers import PEARSON, SPEARMAN, SQUARED_ERROR


@pytest.mark.parametrize("seed", range(5))
def test_correlations_are_those_of_scipy_with_equal_numbers_and_without(seed):
    draw = np.random.default_rng(seed)
    true = draw.integers(0, 6, 50).astype(float)  # many are equal
    predicted = true + draw.normal(size=50)
    assert PEARSON.compute(predicted, true) == pytest.approx(scipy.stats.pearsonr(predicted, true)[0], abs=1e-12)
    assert SPEARMAN.compute(predicted, true) == pytest.approx(scipy.stats.spearmanr(predicted, true)[0], abs=1e-12)
    assert SPEARMAN.compute(np.exp(predicted), true) == pytest.approx(SPEARMAN.compute(predicted, true), abs=1e-12)


def test_the_squared_error_is_a_mean_and_lower_is_better():
    assert SQUARED_ERROR.compute(np.array([1.0, 4.0]), np.array([3.0, 1.0])) == (4 + 9) / 2
    assert SQUARED_ERROR.score(6.5) == -6.5


@pytest.mark.parametrize("metric", [PEARSON, SPEARMAN])
def test_constant_has_zero_correlation(metric):
    some, constant = np.array([0.1, 0.7, 0.3]), np.full(3, 0.1)
    assert metric.compute(constant, some) == metric.compute(some, constant) == 0.0


@pytest.mark.parametrize("metric", [PEARSON, SPEARMAN])
def test_a_prediction_that_is_no_number_has_no_correlation(metric):
    assert np.isnan(metric.compute(np.array([1.0, np.nan, 2.0]), np.array([1.0, 2.0, 3.0])))


def test_groups_are_measured_on_their_own():
    predicted, true = [1.0, 2.0, 2.0, 1.0], [1.0, 2.0, 1.0, 2.0]
    found = compute(["pearson"], predicted, true, classes=None, groups=("a", "a", "b", "b"))
    assert found == {"pearson": 0.0, "pearson_a": pytest.approx(1.0), "pearson_b": pytest.approx(-1.0)}
