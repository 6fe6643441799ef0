"""What validation examples can show: how far two scores must be apart to be more than luck, in closed form.

A score that is a share of ``n`` examples, right on a share ``p`` of them, has a standard error of
``sqrt(p (1 - p) / n)``. Trials of a study are measured on the same examples and err together on some: a share ``c`` of
the variance is the same for both and no part of their difference, whose standard error is
``sqrt(2 p (1 - p) (1 - c) / n)``. The verdict of a study measures differences alike.
"""

import math

from studies.resource_estimates.data import DataFacts
from studies.score_evidence import Z_95
from studies.surrogate.recorded_observations import shared_variance_fraction
from trial_runner.tasks import METRICS

WANTED = 0.02
"""The difference that a study should show: two points."""
_USUAL_SCORE = 0.9


def smallest_difference(examples: int, score: float) -> float:
    """Return the smallest difference of two scores on the same examples that is not luck, with 95% confidence.

    Args:
        examples: At least 1.
        score: About what both are, in [0, 1].
    """
    return Z_95 * math.sqrt(2 * score * (1 - score) * (1 - shared_variance_fraction(1.0)) / examples)


def examples_for(difference: float, score: float) -> int:
    """Return the fewest examples that show a difference; the inverse of `smallest_difference`."""
    return max(1, math.ceil(2 * score * (1 - score) * (1 - shared_variance_fraction(1.0)) * (Z_95 / difference) ** 2))


def is_share(metric: str) -> bool:
    """Whether a metric is a share of the examples, or much like one."""
    return METRICS[metric].bounds == (0.0, 1.0)


def noise_warning(data: DataFacts) -> str | None:
    """A line where the validation examples cannot show a difference of two points; None where they can.

    A good trial has about 0.9, or half way from a constant prediction to all right if that is more. Of a metric that is
    no share of the examples nothing is known.
    """
    if not is_share(data.metric):
        return None
    examples, score = data.examples["validation"], max(_USUAL_SCORE, (1 + (data.constant_score or 0.0)) / 2)
    found = smallest_difference(examples, score)
    if found <= WANTED:
        return None
    return (
        f"{examples:,} validation examples cannot show a difference of {100 * WANTED:g} points: at a score of "
        f"{score:.2f} two trials, both on them, must be {100 * found:.1f} apart; "
        f"{examples_for(WANTED, score):,} examples would."
    )
