"""Lines of the tables of results, and means with intervals in them."""

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


def table_line(cells: Sequence[object]) -> str:
    """Format a line of a table in Markdown."""
    return f"| {' | '.join(map(str, cells))} |"
