"""Scores standardized per rung by median and spread, and warped below a knee.

A Gaussian process cannot follow a score far below the others without a worse fit elsewhere. Such scores are those of
the task head alone or of a collapsed trial. So scores are warped there (Snelson et al. 2003, "Warped Gaussian
Processes"). With ``c`` = -4 spreads, ``w = c - a log(1 + (c - z) / b)`` below ``c``, and ``w = z`` above. The warp is
monotone, so its inverse maps medians and quantiles of the posterior to scores. The noise of a reading shrinks with the
slope: seeds of a bad trial differ by no more than those of a good one. So an unlucky reading of a good trial stays
below the knee, and estimates are averaged over scores with and without the warp.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from studies.surrogate.structure_distances import Array

KNEE = -4.0
"""Standardized score below which scores are warped."""

NO_KNEE = -math.inf
"""Knee of scores that are not warped."""

UNKNOWN_ERROR = 0.5
"""Standard error, in spreads, of readings without a known one."""

# a tenth as steep below the knee as above, and ever less
_HEIGHT, _WIDTH = 0.5, 5.0
_LEAST = 4
_TO_DEVIATION = 1.4826


@dataclass(frozen=True, slots=True)
class Scale:
    """Median and spread of the scores of a rung.

    Attributes:
        middle: Median.
        spread: Standard deviation estimated from the median absolute deviation; above 0.
        knee: Standardized score below which scores are warped.
    """

    middle: float
    spread: float
    knee: float = KNEE


def warp(scores: Array, knee: float = KNEE) -> Array:
    """Return standardized scores on the scale of the process: logarithmic below the knee, unchanged above."""
    return np.where(scores < knee, knee - _HEIGHT * np.log1p(_below(scores, knee) / _WIDTH), scores)


def unwarp(modelled: Array, knee: float = KNEE) -> Array:
    """Return the inverse of `warp`."""
    return np.where(modelled < knee, knee - _WIDTH * np.expm1(_below(modelled, knee) / _HEIGHT), modelled)


def warp_slope(scores: Array, knee: float = KNEE) -> Array:
    """Return the derivative of `warp` at standardized scores."""
    return np.where(scores < knee, _HEIGHT / (_WIDTH + _below(scores, knee)), 1.0)


def _below(scores: Array, knee: float) -> Array:
    return np.maximum(knee - scores, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """Spreads fixed in advance, by rung; other rungs use the spread of their own readings.

    Attributes:
        scores: Spreads of scores.
        losses: Spreads of losses.
    """

    scores: Mapping[float, float] = field(default_factory=dict)
    losses: Mapping[float, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StandardizedReadings:
    """Standardized, warped readings.

    Attributes:
        scores: Standardized scores, (N,).
        errors: Standard errors, (N,).
        slopes: Slopes of the warp, by which all noise shrinks, (N,).
        scales: Scale of each rung.
    """

    scores: Array
    errors: Array
    slopes: Array
    scales: Mapping[float, Scale]

    @property
    def full(self) -> Scale:
        """Scale of the scores at full length, or of the last rung reached."""
        return self.scales[max(self.scales)] if self.scales else Scale(0.0, 1.0)

    @property
    def units(self) -> dict[float, float]:
        """Spread of every rung."""
        return {rung: scale.spread for rung, scale in self.scales.items()}


def standardize(
    scores: Array,
    errors: Array,
    rungs: Array,
    units: Mapping[float, float] | None = None,
    knee: float = KNEE,
) -> StandardizedReadings:
    """Return the readings standardized by rung and warped.

    A rung with fewer than four readings takes the spread of the one with most. No spread is below the noise.

    Args:
        scores: Scores, (N,).
        errors: Standard errors, 0 where unknown, (N,).
        rungs: Rungs, (N,).
        units: Spreads of rungs that are known in advance.
        knee: Standardized score below which scores are warped.
    """
    if not len(scores):
        return StandardizedReadings(scores=scores, errors=errors, slopes=np.ones(0), scales={})
    kinds, sizes = np.unique(rungs, return_counts=True)
    most = kinds[len(sizes) - 1 - int(np.argmax(sizes[::-1]))]
    shown, noise, slopes, scales = np.empty_like(scores), np.empty_like(errors), np.empty_like(scores), {}
    for rung, size in zip(kinds, sizes, strict=True):
        here = rungs == rung
        known = here if size >= _LEAST else rungs == most
        spread = (units or {}).get(float(rung)) or _spread(scores[known], errors[known])
        scale = Scale(float(np.median(scores[here])), spread, knee)
        scales[float(rung)] = scale
        standard = (scores[here] - scale.middle) / scale.spread
        shown[here], slopes[here] = warp(standard, knee), warp_slope(standard, knee)
        noise[here] = np.where(errors[here] > 0, errors[here] / scale.spread, UNKNOWN_ERROR) * slopes[here]
    return StandardizedReadings(scores=shown, errors=noise, slopes=slopes, scales=scales)


def _spread(scores: Array, errors: Array) -> float:
    middle = float(np.median(scores))
    found = _TO_DEVIATION * float(np.median(np.abs(scores - middle)))
    return max(found, float(np.median(errors)), 1e-9 * max(1.0, abs(middle)))
