"""Noise of scores: what share of a full trial a reading is of, and its standard error by the number of examples."""

import math
from dataclasses import dataclass

from trial_runner.requests import Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreNoise:
    """Precision of the readings of a study.

    Attributes:
        steps: Steps of a full trial; later readings count as read at its end.
        examples: Number of examples over which a score between 0 and 1 is a mean; None if unknown.
        rung_examples: The same before the last step; None for the same number.
    """

    steps: int = 1
    examples: int | None = None
    rung_examples: int | None = None

    def fraction(self, reading: Reading) -> float:
        """Return the share of the steps of a full trial at a reading, in (0, 1]."""
        return min(1.0, reading.step / self.steps)

    def standard_error(self, reading: Reading) -> float:
        """Return the standard error of the score of a reading; 0 if it is unknown."""
        if not self.examples or not 0 <= reading.score <= 1:
            return 0.0
        fraction = self.fraction(reading)
        examples = self.examples if self.rung_examples is None or fraction >= 1 else self.rung_examples
        return accuracy_error(reading.score, examples, fraction)


def loss_of(reading: Reading) -> float | None:
    """Return the validation loss of a reading; None if it is not finite or equals the score."""
    loss = reading.metrics.get("validation_loss", math.nan)
    return loss if math.isfinite(loss) and loss != -reading.score else None


def accuracy_error(score: float, examples: int, fraction: float = 1.0) -> float:
    """Return the standard error of an accuracy in comparisons between trials of one study.

    All trials are measured on the same examples, whose difficulty shifts all scores alike. The share of the variance
    p(1 - p)/n that trials have in common, `shared_variance_fraction`, is therefore left out.

    Args:
        score: Share of right answers.
        examples: Number of examples.
        fraction: Share of the steps of a full trial, in (0, 1].
    """
    return binomial_error(score, examples, shared_variance_fraction(fraction))


def binomial_error(share: float, examples: int, common: float = 0.0) -> float:
    """Return the standard error of a share of right answers, ``sqrt(p (1 - p) (1 - common) / n)``.

    The share is kept half an example away from 0 and 1, so that the error is above 0.
    """
    clipped = min(max(share, 0.5 / examples), 1 - 0.5 / examples)
    return math.sqrt(clipped * (1 - clipped) * (1 - common) / examples)


def shared_variance_fraction(fraction: float) -> float:
    """Return the correlation between the right answers of two trials of a study after a share of their steps.

    Measured over 9 studies on docstrings, sst2 and banking77: 0.26–0.32 at a quarter, 0.35–0.51 at a half and 0.50–0.66
    at the end. This is a line through the lower ends.

    Args:
        fraction: Share of the steps of a full trial, in (0, 1].
    """
    return min(max(0.5 + 0.12 * math.log2(fraction), 0.0), 0.5)
