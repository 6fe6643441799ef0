"""Expected improvement, of the best and of the hypervolume, against their integrals, near and far."""

import math
from decimal import Decimal, localcontext
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from studies.objectives import SizeScale
from studies.pareto import Staircase
from studies.surrogate.acquisition import log_expected_hypervolume, log_expected_improvement


@pytest.mark.parametrize(("mean", "deviation", "best"), [(0.0, 1.0, 0.0), (0.5, 0.2, 0.1), (-1.0, 0.5, 0.6), (0, 2, 3)])
def test_the_expected_improvement_is_its_integral(mean, deviation, best):
    def integrand(score: float) -> float:
        return (score - best) * norm.pdf(score, mean, deviation)

    expected = quad(integrand, best, mean + 12 * deviation, epsabs=0, epsrel=1e-12)[0]
    found = log_expected_improvement(np.array([mean]), np.array([deviation]), best)
    assert found[0] == pytest.approx(math.log(expected), rel=1e-9)


def test_log_improvement_is_finite_where_improvement_underflows():
    means = np.linspace(-1e6, -1.0, 2001)
    found = log_expected_improvement(means, np.ones_like(means), 50.0)
    assert np.isfinite(found).all()
    assert (np.diff(found) > 0).all()


def mills(x: float) -> Decimal:
    """Compute (1 - Phi(x)) / phi(x) to 30 digits, by Laplace's continued fraction."""
    found = Decimal(0)
    for term in range(4000, 0, -1):
        found = term / (Decimal(x) + found)
    return 1 / (Decimal(x) + found)


@pytest.mark.parametrize("z", [-1.5, -3.0, -8.0, -37.0, -40.0, -1e3, -9.9e3, -1.01e4, -1e6])
def test_far_below_the_best_it_is_the_logarithm_to_many_digits(z):
    with localcontext() as context:
        context.prec = 40
        share = 1 + Decimal(z) * mills(-z)
        expected = -(Decimal(z) ** 2) / 2 + share.ln() - Decimal(2 * math.pi).ln() / 2
        deviation = Decimal("0.25").ln()
        (found,) = log_expected_improvement(np.array([z * 0.25]), np.array([0.25]), 0.0)
        # the quadratic part is exact in floats: what is left is the tail
        tail = float(expected + Decimal(z) ** 2 / 2)
        assert found == pytest.approx(float(expected + deviation), rel=1e-14, abs=1e-7)
    if z > -1e3:
        assert found + z * z / 2 - math.log(0.25) == pytest.approx(tail, abs=1e-9)


def test_its_two_branches_meet():
    means = np.array([-1.0 - 1e-9, -1.0 + 1e-9])
    below, above = log_expected_improvement(means, np.ones(2), 0.0)
    assert below == pytest.approx(above, abs=1e-7)


SCALE = SizeScale(largest=1.0, smallest_share=0.125)
KNOWN = [(-4.0, -0.4), (-2.5, 0.1), (-1.0, 0.6), (-0.2, 0.8), (0.0, 0.5)]
"""Places and means of trials; the last is on no front."""


def stairs(*more: tuple[float, float]) -> Staircase:
    places, scores = zip(*KNOWN, *more, strict=True)
    clipped = [max(place, SCALE.low) for place in places]
    return Staircase.of(clipped, scores, scale=SCALE, reference=-0.5)


def gained(place: float, score: float) -> float:
    """Return the hypervolume that a trial adds."""
    return stairs((place, score)).area(-0.5) - stairs().area(-0.5)


CASES = [(-3.0, 0.0, 0.5), (-2.2, 0.3, 0.2), (-1.0, 0.6, 0.3), (-0.1, 1.2, 0.4), (0.0, 0.0, 0.6), (0.5, 0.9, 0.1)]


@pytest.mark.parametrize(("place", "mean", "deviation"), CASES)
def test_the_expected_gain_of_hypervolume_is_its_integral(place, mean, deviation):
    def integrand(score: float) -> float:
        return gained(place, score) * norm.pdf(score, mean, deviation)

    ends = [mean - 10 * deviation, *stairs().levels, mean + 12 * deviation]
    expected = sum(
        quad(integrand, low, high, epsabs=0, epsrel=1e-10)[0] for low, high in pairwise(sorted(ends)) if high > low
    )
    found = log_expected_hypervolume(np.array([mean]), np.array([deviation]), np.array([place]), stairs())
    assert found[0] == pytest.approx(math.log(expected), abs=1e-7)


def test_one_step_front_gain_is_improvement_times_width():
    one = Staircase.of([SCALE.low], [0.3], scale=SCALE, reference=0.3)
    means, deviations = np.array([0.1, 0.5]), np.array([0.2, 0.3])
    found = log_expected_hypervolume(means, deviations, np.array([-1.0, SCALE.low]), one)
    expected = log_expected_improvement(means, deviations, 0.3) + np.log([2.0, 4.0])
    assert found == pytest.approx(expected, abs=1e-12)


def test_gain_falls_with_size_and_is_zero_when_oversized():
    places = np.array([-3.0, -2.0, -1.0, 0.0, 0.9, 1.0, 1.5])
    found = log_expected_hypervolume(np.full(7, 0.7), np.full(7, 0.3), places, stairs())
    assert (np.diff(found[:6]) < 0).all()
    assert found[5] == found[6] == -math.inf
    assert np.isfinite(log_expected_hypervolume(np.full(1, -80.0), np.full(1, 0.3), places[:1], stairs())).all()
