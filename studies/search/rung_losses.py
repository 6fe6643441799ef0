"""The losses of trials at a rung, example by example, and which trials are clearly better than one.

Shapes: `N` trials, `B` examples.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from trial_runner.example_losses import ExampleLosses

_COMPARED_AT_ONCE = 1024
_FEWEST_ROWS = 64


class RungLosses:
    """What trials measured example by example at one rung; of a trial the first measurement stands."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._rows: dict[int, int] = {}
        self._losses: NDArray[np.float16] = np.empty((0, 0), dtype=np.float16)

    def __len__(self) -> int:
        """How many trials are known."""
        return len(self._rows)

    def add(self, trial: int, examples: ExampleLosses) -> None:
        """Take a trial in; one that was measured on another number of examples than the first is compared to none."""
        if trial in self._rows or (self._rows and len(examples) != self._losses.shape[1]):
            return
        row = len(self._rows)
        if row == len(self._losses):
            larger = np.empty((max(_FEWEST_ROWS, 2 * row), len(examples)), dtype=np.float16)
            if row:
                larger[:row] = self._losses
            self._losses = larger
        self._losses[row] = np.frombuffer(examples.losses, dtype="<f2")
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
        own = self._losses[self._rows[than]].astype(np.float64)
        return dict(zip(known, self._lower(own, [self._rows[trial] for trial in known], by), strict=True))

    def _lower(self, own: NDArray[np.float64], rows: list[int], by: float) -> Iterator[bool]:
        count = len(own)
        for start in range(0, len(rows), _COMPARED_AT_ONCE):
            some = self._losses[rows[start : start + _COMPARED_AT_ONCE]].astype(np.float64)
            differences = own - some  # (N, B)
            errors = differences.std(axis=1, ddof=1) / math.sqrt(count) if count > 1 else math.inf
            yield from (differences.mean(axis=1) > by * errors).tolist()
