"""Resolution of validation examples: the smallest difference of two scores that exceeds noise, in closed form.

The accuracy over ``n`` examples with success probability ``p`` has a standard error of ``sqrt(p (1 - p) / n)``. Trials
of a study are measured on the same examples and make some errors together. A share ``c`` of the variance is common and
cancels in their difference. So the difference has a standard error of ``sqrt(2 p (1 - p) (1 - c) / n)``. The verdict of
a study measures differences alike.
"""

import math

from studies.history.noise import shared_variance_fraction
from studies.resource_estimates.data import DataFacts
from studies.score_evidence import Z_95
from trial_runner.tasks import METRICS

WANTED = 0.02
"""Difference that a study should resolve: two points."""
_USUAL_SCORE = 0.9


def smallest_difference(examples: int, score: float) -> float:
    """Return the smallest significant difference of two scores on the same examples, with 95% confidence.

    Args:
        examples: Number of examples, at least 1.
        score: Approximate score of both, in [0, 1].
    """
    return Z_95 * math.sqrt(2 * score * (1 - score) * (1 - shared_variance_fraction(1.0)) / examples)


def examples_for(difference: float, score: float) -> int:
    """Return the fewest examples that resolve a difference; the inverse of `smallest_difference`."""
    return max(1, math.ceil(2 * score * (1 - score) * (1 - shared_variance_fraction(1.0)) * (Z_95 / difference) ** 2))


def is_share(metric: str) -> bool:
    """Return whether a metric is a share of the examples, or similar to one."""
    return METRICS[metric].bounds == (0.0, 1.0)


def noise_warning(data: DataFacts) -> str | None:
    """Return a line if the validation examples cannot resolve two points; None if they can.

    A good trial is assumed at 0.9, or half way from a constant prediction to 1 if that is higher. Metrics that are no
    share of the examples have no warning.
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
