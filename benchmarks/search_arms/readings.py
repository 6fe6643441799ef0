"""What a simulated trial measures on its way: accuracy and loss, as well correlated with its end as was measured.

On docstrings, a reading at an eighth, a quarter and a half of a trial's steps has a rank correlation with the final
accuracy of .39, .52 and .67 (accuracy) and of .43, .56 and .78 (validation loss). At the end a loss is the sharper
view of what a trial is worth, but not of the same thing: on docstrings and sst2 the accuracy on half of the examples
correlates with that on the other half by .53 to .66, and the loss with it by .61 to .74.
"""

import math

import numpy as np
from numpy.typing import NDArray

from search_arms.truth import HEAD_ALONE, drawn
from trial_runner.example_losses import ExampleLosses
from trial_runner.requests import Reading
from trial_runner.seeds import derived_seed

_LEARNED = {0.125: 0.4, 0.25: 0.6, 0.5: 0.85, 1.0: 1.0}
"""Share of what a trial will gain that it has gained at a share of its steps; between them, on a line."""

_UNLIKE_END = {0.125: 2.3, 0.25: 2.1, 0.5: 0.3, 1.0: 0.0}
"""Standard deviation, in points, of what is quick or slow about a trial."""

_BEHIND = {0.125: 8.0, 0.25: 5.0, 0.5: 2.0, 1.0: 0.0}
"""Points that every trial is behind its end."""

_SAME_LUCK = 0.22
"""Share of the variance of a reading that its trial's other readings have, too: the examples are the same."""

_LOSS_NOISE = 0.5
"""Of the loss, beside that of the accuracy: it counts by how much an example is right."""

_LOSS_UNLIKE_SCORE = {0.125: 0.0, 0.25: 0.0, 0.5: 0.4, 1.0: 0.8}
"""Standard deviation, in points, of what the loss of a trial says that its true score does not."""

_LOSS_OF_NOTHING, _LOSS_PER_POINT = 2.5, -0.025

_HARDNESS = 0.5
"""Standard deviation of the losses of examples that is the same for all trials."""


class Measurements:
    """Readings of trials on one task; the same trial reads the same, whoever proposed it.

    Args:
        seed: Of the task.
        noise: Standard deviation of an accuracy near one half, in points; sets the number of examples.
        steps: Of a full trial.
    """

    def __init__(self, seed: int, *, noise: float, steps: int) -> None:
        """Set the number of examples."""
        self._seed = seed
        self._steps = steps
        self.examples = round(2500 / noise**2)
        self._hardness = _HARDNESS * _without_mean(derived_seed(seed, "hardness"), self.examples)

    def read(self, number: int, fingerprint: str, truth: float, step: int) -> Reading:
        """The measurement of a trial at a step."""
        share = step / self._steps
        quick = drawn(self._seed, "quick", fingerprint, spread=_between(_UNLIKE_END, share))
        points = min(max(expected_points(truth, share) + quick, 1.0), 99.0)
        luck = drawn(self._seed, "luck", fingerprint), drawn(self._seed, "luck", fingerprint, step)
        chance = math.sqrt(_SAME_LUCK) * luck[0] + math.sqrt(1 - _SAME_LUCK) * luck[1]
        spread = math.sqrt(points * (100 - points) / self.examples)
        right = round((points + spread * chance) / 100 * self.examples)
        own = drawn(self._seed, "loss", fingerprint, spread=_between(_LOSS_UNLIKE_SCORE, share))
        blurred = points + own + _LOSS_NOISE * spread * chance
        score, loss = min(max(right, 0), self.examples) / self.examples, _LOSS_OF_NOTHING + _LOSS_PER_POINT * blurred
        metrics = {"validation_loss": loss}
        return Reading(trial=number, step=step, score=score, metrics=metrics, train_loss=loss, seconds=0.0)

    def losses(self, reading: Reading, fingerprint: str) -> ExampleLosses:
        """The loss of each example at a reading: their mean is its loss, and as uncertain as the examples say.

        What examples differ by is the same for all trials, and gone from the difference of two of them.
        """
        points = min(max(100 * reading.score, 1.0), 99.0)
        spread = abs(_LOSS_PER_POINT) * _LOSS_NOISE * math.sqrt(points * (100 - points))
        own = _without_mean(derived_seed(self._seed, f"losses {fingerprint} {reading.step}"), self.examples)
        return ExampleLosses.of(reading.train_loss + self._hardness + spread * own)


def _without_mean(seed: int, count: int) -> NDArray[np.float64]:
    """Normal numbers of mean 0 and standard deviation 1, exactly."""
    numbers = np.random.default_rng(seed).standard_normal(count)
    return (numbers - numbers.mean()) / numbers.std()


def expected_points(truth: float, share: float) -> float:
    """What a trial of a true score has on average at a share of its steps."""
    return HEAD_ALONE - _between(_BEHIND, share) + _between(_LEARNED, share) * (truth - HEAD_ALONE)


def _between(table: dict[float, float], share: float) -> float:
    shares = sorted(table)
    share = min(max(share, shares[0]), shares[-1])
    above = next(one for one in shares if one >= share)
    if above == share:
        return table[above]
    below = max(one for one in shares if one < share)
    return table[below] + (table[above] - table[below]) * (share - below) / (above - below)
