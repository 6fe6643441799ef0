"""Uncertainty of scores, and of differences of scores on the same examples."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trial_runner.example_losses import ExampleLosses

Z_95 = 1.959963984540054
"""Standard errors on either side of the mean within which a normal variable lies with 95%."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Normal distribution of an unknown value.

    Attributes:
        mean: Mean.
        deviation: Standard deviation.
    """

    mean: float
    deviation: float

    @classmethod
    def of_difference(cls, means: NDArray[np.float64], covariance: NDArray[np.float64]) -> "Estimate":
        """Return the first of two normal variables minus the second, from (2,) and (2, 2)."""
        variance = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
        return cls(mean=float(means[0] - means[1]), deviation=math.sqrt(max(variance, 0.0)))

    @property
    def chance(self) -> float:
        """Probability that the value is above 0; 0 or 1 without a deviation."""
        if not self.deviation:
            return float(self.mean > 0)
        return math.erfc(-self.mean / self.deviation / math.sqrt(2)) / 2

    @property
    def reach(self) -> float:
        """Half the width of the 95% interval."""
        return Z_95 * self.deviation

    @property
    def low(self) -> float:
        """Lower end of the 95% interval."""
        return self.mean - self.reach

    @property
    def high(self) -> float:
        """Upper end of the 95% interval."""
        return self.mean + self.reach


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Mean over examples with its standard error.

    Attributes:
        mean: Mean of a score, or of a difference.
        standard_error: Standard error for other examples of the same kind; infinite with fewer than two.
        examples: Number of examples.
    """

    mean: float
    standard_error: float
    examples: int

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> "Evidence":
        """Return the evidence of values by example, ``(B,)``."""
        count = len(values)
        error = float(values.std(ddof=1)) / math.sqrt(count) if count > 1 else math.inf
        return cls(mean=float(values.mean()), standard_error=error, examples=count)


def paired_evidence(first: ExampleLosses, second: ExampleLosses) -> Evidence | None:
    """Return how much better the first trial is by example, by accuracy if both have it, else by the loss.

    The result is None if the numbers of examples differ.
    """
    if len(first) != len(second):
        return None
    if first.correct is None or second.correct is None:
        return Evidence.of(first.negated_losses - second.negated_losses)
    return Evidence.of(first.scores - second.scores)
