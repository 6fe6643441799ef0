"""Readings of simulated trials: accuracy and loss, with the measured correlations to the final scores.

On docstrings, readings have these rank correlations with the final accuracy at an eighth, a quarter and a half of a
trial's steps. The accuracy has .39, .52 and .67, the validation loss .43, .56 and .78. At the end the loss has less
noise than the accuracy but measures another quantity. On docstrings and sst2, halves of the examples are correlated as
follows with the accuracy on the other half. The accuracy has a correlation of .53 to .66, the loss one of .61 to .74.
"""

import math

from search_arms.truth import HEAD_ALONE, draw_normal
from trial_runner.requests import Reading

_LEARNED = {0.125: 0.4, 0.25: 0.6, 0.5: 0.85, 1.0: 1.0}
"""Share of the final gain of a trial at a share of its steps, interpolated linearly."""

_UNLIKE_END = {0.125: 2.3, 0.25: 2.1, 0.5: 0.3, 1.0: 0.0}
"""Standard deviation of the speed of trials, in points, by share of the steps."""

_BEHIND = {0.125: 8.0, 0.25: 5.0, 0.5: 2.0, 1.0: 0.0}
"""Points by which every trial is below its final score, by share of the steps."""

_SHARED_NOISE = 0.22
"""Share of the noise variance that all readings of a trial have in common, since they share examples."""

_LOSS_NOISE = 0.5
"""Noise of the loss as a share of the noise of the accuracy."""

_LOSS_UNLIKE_SCORE = {0.125: 0.0, 0.25: 0.0, 0.5: 0.4, 1.0: 0.8}
"""Standard deviation, in points, of the part of the loss that is independent of the true score."""

_LOSS_OF_NOTHING, _LOSS_PER_POINT = 2.5, -0.025


class Measurements:
    """Readings of trials on one task, equal for equal trials.

    Args:
        seed: Seed of the task.
        noise: Standard deviation of an accuracy near one half, in points; determines the number of examples.
        steps: Number of steps of a full trial.
    """

    def __init__(self, seed: int, *, noise: float, steps: int) -> None:
        """Compute the number of examples."""
        self._seed = seed
        self._steps = steps
        self.examples = round(2500 / noise**2)

    def read(self, number: int, fingerprint: str, truth: float, step: int) -> Reading:
        """Return the reading of a trial at a step."""
        share = step / self._steps
        speed = draw_normal(self._seed, "quick", fingerprint, spread=_between(_UNLIKE_END, share))
        points = min(max(expected_points(truth, share) + speed, 1.0), 99.0)
        noise = draw_normal(self._seed, "luck", fingerprint), draw_normal(self._seed, "luck", fingerprint, step)
        error = math.sqrt(_SHARED_NOISE) * noise[0] + math.sqrt(1 - _SHARED_NOISE) * noise[1]
        spread = math.sqrt(points * (100 - points) / self.examples)
        right = round((points + spread * error) / 100 * self.examples)
        own = draw_normal(self._seed, "loss", fingerprint, spread=_between(_LOSS_UNLIKE_SCORE, share))
        blurred = points + own + _LOSS_NOISE * spread * error
        score, loss = min(max(right, 0), self.examples) / self.examples, _LOSS_OF_NOTHING + _LOSS_PER_POINT * blurred
        metrics = {"validation_loss": loss}
        return Reading(trial=number, step=step, score=score, metrics=metrics, train_loss=loss, seconds=0.0)


def expected_points(truth: float, share: float) -> float:
    """Return the expected score of a trial with a true score at a share of its steps."""
    return HEAD_ALONE - _between(_BEHIND, share) + _between(_LEARNED, share) * (truth - HEAD_ALONE)


def _between(table: dict[float, float], share: float) -> float:
    shares = sorted(table)
    share = min(max(share, shares[0]), shares[-1])
    above = next(each for each in shares if each >= share)
    if above == share:
        return table[above]
    below = max(each for each in shares if each < share)
    return table[below] + (table[above] - table[below]) * (share - below) / (above - below)
