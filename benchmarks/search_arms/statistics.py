"""What is counted over studies: shares with Wilson's interval, times that may not have come, paired differences."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

_Z = 1.959963984540054
"""Of 95%."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A number with its 95% interval."""

    value: float
    low: float
    high: float


def share(hits: Sequence[bool]) -> Interval:
    """A share, with Wilson's interval."""
    n, p = len(hits), fmean(hits)
    middle = (p + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * math.sqrt(p * (1 - p) / n + _Z**2 / (4 * n**2))
    return Interval(p, max(0.0, middle - half), min(1.0, middle + half))


def mean(values: Sequence[float]) -> Interval:
    """A mean, with the normal interval of its standard error; without width for one value."""
    half = _Z * stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return Interval(fmean(values), fmean(values) - half, fmean(values) + half)


def found_by(times: Sequence[int | None], horizon: int) -> list[tuple[int, float]]:
    """Which share of all had found something when, by Kaplan and Meier; what came after the horizon is censored."""
    found, alive, left = [], 1.0, len(times)
    for time in sorted(time for time in times if time is not None and time <= horizon):
        alive *= (left - 1) / left
        left -= 1
        found.append((time, 1 - alive))
    return found


def median_time(times: Sequence[int | None], horizon: int) -> int | None:
    """When half of all had found something; None if fewer than half had."""
    return next((time for time, share in found_by(times, horizon) if share >= 0.5 - 1e-12), None)
