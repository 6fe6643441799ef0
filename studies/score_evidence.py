"""How sure a score is, and how sure the difference of two scores on the same examples."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trial_runner.example_losses import ExampleLosses

Z_95 = 1.959963984540054
"""Standard errors on either side of a normal number that hold 95% of it."""


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
        count = len(values)
        error = float(values.std(ddof=1)) / math.sqrt(count) if count > 1 else math.inf
        return cls(mean=float(values.mean()), standard_error=error, examples=count)


def score_evidence(examples: ExampleLosses) -> Evidence:
    """How sure a score is: of accuracy, else of the loss with a minus sign."""
    return Evidence.of(examples.scores)


def loss_evidence(first: ExampleLosses, second: ExampleLosses) -> Evidence | None:
    """How much lower the loss of the first is, example by example; None where there are not as many examples."""
    return None if len(first) != len(second) else Evidence.of(first.negated_losses - second.negated_losses)


def paired_evidence(first: ExampleLosses, second: ExampleLosses) -> Evidence | None:
    """How much better the first is, example by example: by accuracy where both have it, else by the loss.

    None where they were not measured on as many examples.
    """
    if first.correct is None or second.correct is None:
        return loss_evidence(first, second)
    if len(first) != len(second):
        return None
    return Evidence.of(first.scores - second.scores)
