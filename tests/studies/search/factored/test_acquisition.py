"""Expected improvement against its integral, near and far."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from studies.search.factored.acquisition import log_expected_improvement


@pytest.mark.parametrize(("mean", "deviation", "best"), [(0.0, 1.0, 0.0), (0.5, 0.2, 0.1), (-1.0, 0.5, 0.6), (0, 2, 3)])
def test_the_expected_improvement_is_its_integral(mean, deviation, best):
    def integrand(score: float) -> float:
        density = math.exp(-(((score - mean) / deviation) ** 2) / 2) / (deviation * math.sqrt(2 * math.pi))
        return (score - best) * density

    expected = quad(integrand, best, mean + 12 * deviation, epsabs=0, epsrel=1e-12)[0]
    found = log_expected_improvement(np.array([mean]), np.array([deviation]), best)
    assert found[0] == pytest.approx(math.log(expected), rel=1e-9)


def test_the_logarithm_is_finite_and_rises_where_the_improvement_itself_is_nought():
    means = np.linspace(-1e6, -1.0, 2001)
    found = log_expected_improvement(means, np.ones_like(means), 50.0)
    assert np.isfinite(found).all()
    assert (np.diff(found) > 0).all()


def test_its_two_branches_meet():
    means = np.array([-1.0 - 1e-9, -1.0 + 1e-9])
    below, above = log_expected_improvement(means, np.ones(2), 0.0)
    assert below == pytest.approx(above, abs=1e-7)
