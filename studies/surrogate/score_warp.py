"""Scores in units of each rung's spread about its median, so that rungs and tasks can be compared.

A Gaussian process cannot follow a score far below the others, such as that of the task head alone or of a collapsed
trial, without losing the others. So scores are warped there (Snelson et al. 2003, "Warped Gaussian Processes"): with
``c`` = -4 spreads, ``w = c - a log(1 + (c - z) / b)`` below ``c``, and ``w = z`` above. The warp is monotone, so its
inverse takes medians and quantiles of the posterior back. The noise of a reading shrinks with the slope: seeds of a bad
trial differ by no more than those of a good one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from studies.surrogate.structure_distances import Array

KNEE = -4.0
"""Standardised scores below this are warped."""

UNKNOWN_ERROR = 0.5
"""Standard error, in spreads, of readings whose own is not known."""

# a tenth as steep below the knee as above, and ever less
_HEIGHT, _WIDTH = 0.5, 5.0
_LEAST = 4
_TO_DEVIATION = 1.4826


@dataclass(frozen=True, slots=True)
class Scale:
    """Median and spread of the scores of a rung.

    Attributes:
        middle: The median.
        spread: The deviation that the median absolute deviation stands for; above 0.
    """

    middle: float
    spread: float


def warped(scores: Array) -> Array:
    """Standardised scores as the process models them: what is below `KNEE` logarithmically, and the rest as it is."""
    return np.where(scores < KNEE, KNEE - _HEIGHT * np.log1p(_below(scores) / _WIDTH), scores)


def unwarped(modelled: Array) -> Array:
    """The inverse of `warped`."""
    return np.where(modelled < KNEE, KNEE - _WIDTH * np.expm1(_below(modelled) / _HEIGHT), modelled)


def warp_slope(scores: Array) -> Array:
    """The derivative of `warped` at standardised scores."""
    return np.where(scores < KNEE, _HEIGHT / (_WIDTH + _below(scores)), 1.0)


def _below(scores: Array) -> Array:
    return np.maximum(KNEE - scores, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """Spreads that are known beforehand, by rung; a rung that is not among them has that of its own readings.

    Attributes:
        scores: Of scores.
        losses: Of losses.
    """

    scores: Mapping[float, float] = field(default_factory=dict)
    losses: Mapping[float, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standardised:
    """Readings without unit, warped.

    Attributes:
        scores: (N,).
        errors: Their standard errors, (N,).
        slopes: Of the warp at them, by which all noise is smaller, (N,).
        scales: By rung.
    """

    scores: Array
    errors: Array
    slopes: Array
    scales: Mapping[float, Scale]

    @property
    def full(self) -> Scale:
        """Of scores at full length, or else of the last rung that was reached."""
        return self.scales[max(self.scales)] if self.scales else Scale(0.0, 1.0)

    @property
    def units(self) -> dict[float, float]:
        """The spread of every rung."""
        return {rung: scale.spread for rung, scale in self.scales.items()}


def standardised(
    scores: Array, errors: Array, rungs: Array, units: Mapping[float, float] | None = None
) -> Standardised:
    """Standardise the readings of every rung.

    A rung with fewer than four takes the spread of the one with most; no spread is below the noise.

    Args:
        scores: (N,).
        errors: Standard errors, 0 where they are not known, (N,).
        rungs: (N,).
        units: Spreads of rungs that are known beforehand.
    """
    if not len(scores):
        return Standardised(scores=scores, errors=errors, slopes=np.ones(0), scales={})
    kinds, sizes = np.unique(rungs, return_counts=True)
    most = kinds[len(sizes) - 1 - int(np.argmax(sizes[::-1]))]
    shown, noise, slopes, scales = np.empty_like(scores), np.empty_like(errors), np.empty_like(scores), {}
    for rung, size in zip(kinds, sizes, strict=True):
        here = rungs == rung
        known = here if size >= _LEAST else rungs == most
        spread = (units or {}).get(float(rung)) or _spread(scores[known], errors[known])
        scale = Scale(float(np.median(scores[here])), spread)
        scales[float(rung)] = scale
        standard = (scores[here] - scale.middle) / scale.spread
        shown[here], slopes[here] = warped(standard), warp_slope(standard)
        noise[here] = np.where(errors[here] > 0, errors[here] / scale.spread, UNKNOWN_ERROR) * slopes[here]
    return Standardised(scores=shown, errors=noise, slopes=slopes, scales=scales)


def _spread(scores: Array, errors: Array) -> float:
    middle = float(np.median(scores))
    found = _TO_DEVIATION * float(np.median(np.abs(scores - middle)))
    return max(found, float(np.median(errors)), 1e-9 * max(1.0, abs(middle)))
