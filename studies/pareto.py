"""Pareto fronts of score and size, and their hypervolume.

A trial dominates another if it scores more and is no larger. Sizes are positions on a `SizeScale`; N is a number of
trials, S of segments, M of candidates.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from studies.objectives import SizeScale

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


def front(sizes: Sequence[float] | Array, scores: Sequence[float] | Array) -> Indices:
    """Return the indices of the trials that score more than all that are no larger, from the smallest to the largest.

    Of equal scores the smallest size is on the front, of equal trials the first.
    """
    size, score = np.asarray(sizes, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    order = np.lexsort((np.arange(len(size)), -score, size))
    best = np.maximum.accumulate(score[order])
    is_more = np.concatenate([np.ones(min(1, len(order)), dtype=np.bool_), best[1:] > best[:-1]])
    return np.asarray(order[is_more], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Staircase:
    """Best score within every size, as segments of positions with a constant score.

    Attributes:
        begins: Begin of each segment, ascending, (S,).
        ends: End of each segment, (S,).
        levels: Best score within the sizes of each segment, ascending, (S,).
    """

    begins: Array
    ends: Array
    levels: Array

    @classmethod
    def of(
        cls, places: Sequence[float] | Array, scores: Sequence[float] | Array, *, scale: SizeScale, reference: float
    ) -> "Staircase":
        """Return the staircase of some trials; it is at the reference where no trial is small enough or better."""
        place, score = np.asarray(places, dtype=np.float64), np.asarray(scores, dtype=np.float64)
        counts = (place < scale.high) & (score > reference)
        place, score = place[counts], score[counts]
        chosen = front(place, score)
        begins = np.concatenate([[scale.low], np.maximum(place[chosen], scale.low)])
        levels = np.concatenate([[reference], score[chosen]])
        ends = np.concatenate([begins[1:], [scale.high]])
        return cls(begins=begins, ends=ends, levels=levels)

    def at(self, place: float) -> float:
        """Return the best score within a size."""
        return float(self.levels[max(0, int(np.searchsorted(self.begins, place, side="right")) - 1)])

    def area(self, reference: float) -> float:
        """Return the hypervolume above a reference that is at most the staircase's own."""
        return float((self.ends - self.begins) @ (self.levels - reference))

    def widths_from(self, places: Array) -> Array:
        """Return the width of each segment right of some positions, (M, S)."""
        return np.asarray(np.maximum(self.ends - np.maximum(self.begins, places[:, None]), 0.0))
