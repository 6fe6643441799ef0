"""Means with intervals, as the tables of results print them."""

import math
from collections.abc import Sequence
from statistics import fmean, stdev

from scipy.stats import t as student


def with_interval(values: Sequence[float]) -> str:
    """Format a mean with its 95% interval by Student's t; without one for a single value."""
    count, mean = len(values), f"{fmean(values):+.2f}"
    if count < 2:
        return mean
    return f"{mean} ± {student.ppf(0.975, count - 1) * stdev(values) / math.sqrt(count):.2f}"
