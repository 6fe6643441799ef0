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
from dataclasses import dataclass, replace

import numpy as np

from studies.surrogate.reading_arrays import Readings
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
_LEAST_OF_UPPER = 0.05
_TO_DEVIATION = 1.4826


@dataclass(frozen=True, slots=True)
class Scale:
    """Median and spread of the scores of a rung.

    Attributes:
        middle: Median.
        spread: Standard deviation, estimated from the median absolute deviation if it is not too small; above 0.
        error: Median standard error of the scores; 0 for losses and if none is known.
        knee: Standardized score below which scores are warped.
    """

    middle: float
    spread: float
    error: float = 0.0
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


Kind = tuple[bool, float]
"""Whether readings are losses, and their rung."""


def full_scale(scales: Mapping[Kind, Scale]) -> Scale:
    """Return the scale of the scores at full length, or of the last rung reached."""
    rungs = [rung for is_loss, rung in scales if not is_loss]
    return scales[False, max(rungs)] if rungs else Scale(0.0, 1.0)


def scales_of(readings: Readings, known: Mapping[Kind, Scale] | None = None, knee: float = KNEE) -> dict[Kind, Scale]:
    """Return the scale of every kind of readings.

    A rung with fewer than four readings takes the spread of the one with most. No spread of scores is below the noise,
    nor below a twentieth of that of the scores above the median.

    Args:
        readings: Readings, not standardized.
        known: Scales with the spreads to use, where they have the kind.
        knee: Standardized score below which scores are warped.
    """
    scales = {}
    for is_loss in (False, True):
        here = readings.take(np.flatnonzero(readings.are_losses == is_loss))
        noise = np.zeros(len(here)) if is_loss else here.errors
        rungs, sizes = np.unique(here.rungs, return_counts=True)
        _, most = max(zip(sizes, rungs, strict=True), default=(0, 0.0))
        for rung, size in zip(rungs, sizes, strict=True):
            kind, at_rung = (is_loss, float(rung)), here.rungs == rung
            among = at_rung if size >= _LEAST else here.rungs == most
            own = (known or {}).get(kind)
            spread = _spread(here.scores[among], noise[among]) if own is None else own.spread
            middle, error = (float(np.median(values[at_rung])) for values in (here.scores, noise))
            scales[kind] = Scale(middle, spread, error, knee)
    return scales


def standardize(readings: Readings, scales: Mapping[Kind, Scale]) -> Readings:
    """Return readings as they were collected, standardized by kind and warped."""
    scores, errors, slopes = (np.empty(len(readings)) for _ in range(3))
    for (is_loss, rung), scale in scales.items():
        here = (readings.are_losses == is_loss) & (readings.rungs == rung)
        standard, known = (readings.scores[here] - scale.middle) / scale.spread, readings.errors[here]
        scores[here], slopes[here] = warp(standard, scale.knee), warp_slope(standard, scale.knee)
        errors[here] = np.where(known > 0, known / scale.spread, UNKNOWN_ERROR) * slopes[here]
    losses = np.flatnonzero(readings.are_losses)
    # of the same examples: in the units of the loss, not of the score
    errors[losses] = errors[losses - 1] / slopes[losses - 1] * slopes[losses]
    return replace(readings, scores=scores, errors=errors, slopes=slopes)


def _spread(scores: Array, errors: Array) -> float:
    """Return the spread of scores: that of the middle half, or more, where most are alike and some far above.

    Where more than half are equal, as those of trials that predict a constant label are, the middle half has none.
    """
    middle = float(np.median(scores))
    deviations = scores - middle
    of_middle_half = _TO_DEVIATION * float(np.median(np.abs(deviations)))
    upper = float(np.sqrt(2 * np.mean(np.maximum(deviations, 0) ** 2)))  # the deviation, if as many are as far below
    found, least = max(of_middle_half, _LEAST_OF_UPPER * upper, float(np.median(errors))), 1e-9 * max(1.0, abs(middle))
    return found if found > least else max(float(scores.std()), least)
