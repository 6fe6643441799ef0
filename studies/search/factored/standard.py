"""Scores in units of each rung's spread about its median, so that rungs and tasks can be compared."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from studies.search.factored.distances import Array

LOWEST = -4.0
"""Standardised scores below this are as this: how badly a collapsed trial does tells nothing of the others."""

UNKNOWN_ERROR = 0.5
"""Standard error, in spreads, of readings whose own is not known."""

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
    """Readings without unit.

    Attributes:
        scores: (N,).
        errors: Their standard errors, (N,).
        scales: By rung.
    """

    scores: Array
    errors: Array
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
        return Standardised(scores=scores, errors=errors, scales={})
    kinds, sizes = np.unique(rungs, return_counts=True)
    most = kinds[len(sizes) - 1 - int(np.argmax(sizes[::-1]))]
    shown, noise, scales = np.empty_like(scores), np.empty_like(errors), {}
    for rung, size in zip(kinds, sizes, strict=True):
        here = rungs == rung
        known = here if size >= _LEAST else rungs == most
        spread = (units or {}).get(float(rung)) or _spread(scores[known], errors[known])
        scale = Scale(float(np.median(scores[here])), spread)
        scales[float(rung)] = scale
        shown[here] = np.maximum((scores[here] - scale.middle) / scale.spread, LOWEST)
        noise[here] = np.where(errors[here] > 0, errors[here] / scale.spread, UNKNOWN_ERROR)
    return Standardised(scores=shown, errors=noise, scales=scales)


def _spread(scores: Array, errors: Array) -> float:
    middle = float(np.median(scores))
    found = _TO_DEVIATION * float(np.median(np.abs(scores - middle)))
    return max(found, float(np.median(errors)), 1e-9 * max(1.0, abs(middle)))
