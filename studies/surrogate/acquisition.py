"""Acquisition functions: log expected improvement, and log expected gain in hypervolume."""

import math

import numpy as np
from scipy.special import erfcx, logsumexp, ndtr  # type: ignore[import-untyped]

from studies.pareto import Staircase
from studies.surrogate.structure_distances import Array

_ROOT_HALF_PI = math.sqrt(math.pi / 2)


def log_expected_improvement(means: Array, deviations: Array, best: float | Array) -> Array:
    """Return log E[max(f - best, 0)] for normal f, finite also where the improvement underflows.

    Ament et al. 2023, "Unexpected Improvements to Expected Improvement", eq. 9.
    """
    z = (means - best) / deviations
    near = np.maximum(z, -1.0)
    direct = np.log(np.exp(-near * near / 2) / math.sqrt(2 * math.pi) + near * ndtr(near))
    far = np.minimum(z, -1.0)
    # phi(z) (1 - |z| Phi(z)/phi(z)), with Phi(z)/phi(z) = sqrt(pi/2) erfcx(-z/sqrt 2)
    ratio = np.where(far > -1e4, 1.0 + far * _ROOT_HALF_PI * erfcx(-far / math.sqrt(2)), 1.0 / (far * far))
    tail = -far * far / 2 - math.log(2 * math.pi) / 2 + np.log(np.maximum(ratio, 1e-300))
    return np.asarray(np.log(deviations) + np.where(z > -1.0, direct, tail))


def log_expected_hypervolume(means: Array, deviations: Array, places: Array, staircase: Staircase) -> Array:
    """Return the logarithm of the expected gain in hypervolume of M configurations of fixed size, (M,).

    Only the score is uncertain. The gain sums, over the front's segments no smaller than the configuration, the
    segment's width times the expected improvement on its level.
    """
    widths = staircase.widths_from(places)
    improvements = log_expected_improvement(means[:, None], deviations[:, None], staircase.levels[None, :])
    weighed = np.where(widths > 0, improvements + np.log(np.maximum(widths, 1e-300)), -np.inf)
    return np.asarray(logsumexp(weighed, axis=1))
