"""Uncertainty of scores, and of differences of scores on the same examples."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trial_runner.example_losses import ExampleLosses

Z_95 = 1.959963984540054
"""Standard errors on either side of the mean within which a normal variable lies with 95%."""

_ROWS = 256
"""Number of trials compared at once, which bounds memory."""


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
        return cls.of_each(values[None, :])[0]

    @classmethod
    def of_each(cls, values: NDArray[np.float64]) -> "list[Evidence]":
        """Return the evidence of each row of values by example, ``(M, B)``."""
        count = values.shape[1]
        errors = values.std(axis=1, ddof=1) / math.sqrt(count) if count > 1 else np.full(len(values), math.inf)
        means = values.mean(axis=1)
        return [
            cls(mean=mean, standard_error=error, examples=count)
            for mean, error in zip(means.tolist(), errors.tolist(), strict=True)
        ]


def loss_evidences(firsts: Sequence[ExampleLosses], second: ExampleLosses) -> list[Evidence]:
    """Return how much lower the losses of many trials are than the second's, by example; all have as many examples."""
    blocks = (firsts[begin : begin + _ROWS] for begin in range(0, len(firsts), _ROWS))
    differences = (np.stack([one.negated_losses for one in block]) - second.negated_losses for block in blocks)
    return [evidence for block in differences for evidence in Evidence.of_each(block)]


def paired_evidence(first: ExampleLosses, second: ExampleLosses) -> Evidence | None:
    """Return how much better the first trial is by example, by accuracy if both have it, else by the loss.

    The result is None if the numbers of examples differ.
    """
    if len(first) != len(second):
        return None
    if first.correct is None or second.correct is None:
        return loss_evidences([first], second)[0]
    return Evidence.of(first.scores - second.scores)
