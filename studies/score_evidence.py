"""How sure a score is, and how sure the difference of two scores on the same examples."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trial_runner.example_losses import ExampleLosses

Z_95 = 1.959963984540054
"""Standard errors on either side of a normal number that hold 95% of it."""

_ROWS = 256
"""Trials that are compared at once: all of thousands would take much memory for a moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A normal distribution of what is not known for sure.

    Attributes:
        mean: What is expected.
        deviation: Standard deviation about it.
    """

    mean: float
    deviation: float

    @classmethod
    def of_difference(cls, means: NDArray[np.float64], covariance: NDArray[np.float64]) -> "Estimate":
        """How much the first of two normal variables is above the second, from (2,) and (2, 2)."""
        variance = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
        return cls(mean=float(means[0] - means[1]), deviation=math.sqrt(max(variance, 0.0)))

    @property
    def chance(self) -> float:
        """The probability that it is above 0; without a deviation it is what its mean is."""
        if not self.deviation:
            return float(self.mean > 0)
        return math.erfc(-self.mean / self.deviation / math.sqrt(2)) / 2

    @property
    def reach(self) -> float:
        """Half the length of the interval that holds it with 95%."""
        return Z_95 * self.deviation

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return self.mean - self.reach

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return self.mean + self.reach


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A mean over examples and its standard error.

    Attributes:
        mean: Of a score, or of a difference.
        standard_error: Of the mean over other examples of the same kind; infinite with fewer than two.
        examples: How many there were.
    """

    mean: float
    standard_error: float
    examples: int

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> "Evidence":
        """Of what was found of each example, ``(B,)``."""
        return cls.of_each(values[None, :])[0]

    @classmethod
    def of_each(cls, values: NDArray[np.float64]) -> "list[Evidence]":
        """Of each row of what was found of each example, ``(M, B)``."""
        count = values.shape[1]
        errors = values.std(axis=1, ddof=1) / math.sqrt(count) if count > 1 else np.full(len(values), math.inf)
        means = values.mean(axis=1)
        return [
            cls(mean=mean, standard_error=error, examples=count)
            for mean, error in zip(means.tolist(), errors.tolist(), strict=True)
        ]


def loss_evidences(firsts: Sequence[ExampleLosses], second: ExampleLosses) -> list[Evidence]:
    """How much lower the losses of many are, example by example; all are of as many examples as the second."""
    blocks = (firsts[begin : begin + _ROWS] for begin in range(0, len(firsts), _ROWS))
    differences = (np.stack([one.negated_losses for one in block]) - second.negated_losses for block in blocks)
    return [evidence for block in differences for evidence in Evidence.of_each(block)]


def paired_evidence(first: ExampleLosses, second: ExampleLosses) -> Evidence | None:
    """How much better the first is, example by example: by accuracy where both have it, else by the loss.

    None where they were not measured on as many examples.
    """
    if len(first) != len(second):
        return None
    if first.correct is None or second.correct is None:
        return loss_evidences([first], second)[0]
    return Evidence.of(first.scores - second.scores)
