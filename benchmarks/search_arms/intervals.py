"""Means with intervals, as the tables of results print them."""

import math
from collections.abc import Sequence
from statistics import fmean, stdev


def with_interval(values: Sequence[float]) -> str:
    """Format a mean with its 95% interval."""
    half = 1.96 * stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{fmean(values):+.2f} ± {half:.2f}"
