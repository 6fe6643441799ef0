"""The losses of trials at a rung, example by example, and which trials are clearly better than one.

Shapes: `N` trials, `B` examples.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trial_runner.example_losses import ExampleLosses

_FEWEST_ROWS = 64
_ROUNDING = 2.0**-23
"""More than a product or sum of float32 is off by, as a share of it."""
_SAFE = 4


class RungLosses:
    """What trials measured example by example at one rung; of a trial the first measurement stands.

    All trials are compared by one product in float32: the variance of a difference is that of either less twice their
    covariance. Where its rounding could change the answer, the differences are taken one by one.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self._rows: dict[int, int] = {}
        self._losses: NDArray[np.float32] = np.empty((0, 0), dtype=np.float32)
        self._means, self._variances, self._lengths = np.empty((3, 0))

    def __len__(self) -> int:
        """How many trials are known."""
        return len(self._rows)

    def add(self, trial: int, examples: ExampleLosses) -> None:
        """Take a trial in; one that was measured on another number of examples than the first is compared to none."""
        if trial in self._rows or (self._rows and len(examples) != self._losses.shape[1]):
            return
        row = len(self._rows)
        if row == len(self._losses):
            self._grow(max(_FEWEST_ROWS, 2 * row), len(examples))
        losses = -examples.negated_losses
        self._losses[row] = losses  # half floats, which float32 holds as they are
        self._means[row], self._variances[row] = losses.mean(), losses.var()
        self._lengths[row] = np.linalg.norm(losses)
        self._rows[trial] = row

    def better(self, trials: Sequence[int], than: int, *, by: float) -> dict[int, bool]:
        """Of the trials that are known as ``than`` is: whether their loss is lower by so many standard errors, paired.

        Args:
            trials: Numbers.
            than: The trial that they are compared with.
            by: Standard errors of the mean difference.
        """
        known = [trial for trial in trials if trial in self._rows] if than in self._rows else []
        if not known:
            return {}
        rows = np.array([self._rows[trial] for trial in known])
        return dict(zip(known, self._lower(self._rows[than], rows, by).tolist(), strict=True))

    def _grow(self, rows: int, examples: int) -> None:
        held = len(self._losses)
        larger = np.zeros((rows, examples), dtype=np.float32)
        of_rows = np.zeros((3, rows))
        if held:
            larger[:held] = self._losses
            of_rows[:, :held] = self._means, self._variances, self._lengths
        self._losses = larger
        self._means, self._variances, self._lengths = of_rows

    def _lower(self, own: int, rows: NDArray[np.int64], by: float) -> NDArray[np.bool_]:
        """Which of some rows are lower than one, ``(N,)``."""
        count = self._losses.shape[1]
        if count < 2:  # no difference has an error then
            return np.zeros(len(rows), dtype=np.bool_)
        differences = self._means[own] - self._means[rows]
        apart = self._losses[own] - np.float32(self._means[own])
        covariances = (self._losses[: len(self._rows)] @ apart)[rows].astype(np.float64) / count
        variances = self._variances[own] + self._variances[rows] - 2 * covariances
        # a sum of B products is off by B times that at most, of the product of both lengths; so is their mean, by once
        rounding = _SAFE * _ROUNDING * self._lengths[rows] * self._lengths[own]
        shortest, longest = (np.sqrt(np.maximum(variances + off, 0) / (count - 1)) for off in (-rounding, rounding))
        is_lower: NDArray[np.bool_] = differences > by * longest
        is_open = is_lower != (differences > by * shortest)
        is_lower[is_open] = [self._is_lower(own, row, by) for row in rows[is_open]]
        return is_lower

    def _is_lower(self, own: int, row: int, by: float) -> bool:
        differences = self._losses[own].astype(np.float64) - self._losses[row]
        count = len(differences)
        return bool(differences.mean() > by * differences.std(ddof=1) / math.sqrt(count))
