"""Distribution of expected scores behind noisy ones, by nonparametric empirical Bayes.

The prior is the discrete distribution on a grid with the highest likelihood (Kiefer and Wolfowitz 1956), found by EM
(Laird 1978), with one uniform score added. It takes no shape for granted, so a few failed trainings do not widen it
where the best are.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_POINTS = 200
"""Number of points of the grid, equally spaced between the lowest and the highest score."""

_ROUNDS = 100
"""Number of rounds of EM; more would gather the prior at few points."""


def expected_scores(scores: Sequence[float], noise: float, draw: np.random.Generator) -> NDArray[np.float64]:
    """Draw expected scores from the posterior of a bootstrap sample of scores, in which the prior is uncertain, too.

    Args:
        noise: Standard error of each score, above 0.

    Returns:
        Expected scores of all given scores, of shape (scores,).
    """
    noisy = np.asarray(scores)
    grid = np.linspace(noisy.min(), noisy.max(), _POINTS)
    logarithms = -0.5 * ((noisy[:, None] - grid) / noise) ** 2
    likelihoods = np.exp(logarithms - logarithms.max(axis=1, keepdims=True))
    weights = draw.multinomial(len(noisy), np.full(len(noisy), 1 / len(noisy)))
    prior = uniform = np.full(_POINTS, 1 / _POINTS)
    for _ in range(_ROUNDS):
        joint = likelihoods * prior
        counts = weights @ (joint / joint.sum(axis=1, keepdims=True))
        prior = (counts + uniform) / (len(noisy) + 1)
    cumulated = (likelihoods * prior).cumsum(axis=1)
    reached = draw.random(len(noisy)) * cumulated[:, -1]
    return grid[(cumulated < reached[:, None]).sum(axis=1)]
