"""How alike two configurations are: at attention, at the FFN, and together.

``k((A,F),(A',F')) = s0² + sA² kA + sF² kF + sx² kA kF`` with, for each side, ``kS = exp(-sum_d w_d distance_d)
Matern(rate) Matern(size)``; a side without edits is like another without and like nothing else. ``N`` and ``M`` are
numbers of points, ``U`` of different structures, ``D`` of dimensions.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from studies.surrogate.features import Features, TrainedSide
from studies.surrogate.hyperparameters import WEIGHTS, Hyperparameters, place
from studies.surrogate.prior_mean import NO_PLACES, Places, Rules, papers_log_odds, trends
from studies.surrogate.structure_distances import ABSENT, Array, Indices, StructureDistances


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """Configurations as arrays; attention is column 0, the FFN column 1.

    Attributes:
        structures: Numbers of the structures, (N, 2).
        unit_lrs: Places of learning rates in their ranges, (N, 2).
        log2_budget_fractions: What the sides store, (N, 2).
        trends: What is expected of them beforehand, in the order of ``TRENDS``, (N, 2).
    """

    structures: Indices
    unit_lrs: Array
    log2_budget_fractions: Array
    trends: Array

    @classmethod
    def of(
        cls,
        views: Sequence[Features],
        structures: StructureDistances,
        places: Places = NO_PLACES,
        rules: Rules = papers_log_odds,
    ) -> "Points":
        """The arrays of some views.

        Args:
            views: Of configurations.
            structures: Numbers of their structures.
            places: Where the rates of some forms are expected to be best.
            rules: What is expected of them but for their rates.
        """
        rows = [
            (*_row(view[0], structures), *_row(view[1], structures), *trends(view, places, rules)) for view in views
        ]
        table = np.array(rows, dtype=np.float64).reshape(len(rows), 8)
        return cls(
            structures=table[:, 0:6:3].astype(np.int64),
            unit_lrs=table[:, 1:6:3],
            log2_budget_fractions=table[:, 2:6:3],
            trends=table[:, 6:],
        )

    def __len__(self) -> int:
        """How many."""
        return len(self.structures)

    def taken(self, rows: Indices) -> "Points":
        """Some of them."""
        return Points(**{one.name: getattr(self, one.name)[rows] for one in fields(self)})

    def joined(self, others: "Points") -> "Points":
        """These and then others."""
        names = [one.name for one in fields(self)]
        return Points(**{name: np.concatenate([getattr(self, name), getattr(others, name)]) for name in names})


def _row(side: TrainedSide | None, structures: StructureDistances) -> tuple[float, float, float]:
    return (
        (ABSENT, 0.0, 0.0)
        if side is None
        else (structures.number(side.structure), side.unit_lr, side.log2_budget_fraction)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _SideFeatures:
    """Distances between two sets of points at one side.

    Attributes:
        left: Of each point of the first set, the place of its structure among the different ones, (N,).
        right: Of the second, (M,).
        distances: Between the different structures, (D, U, V).
        rate: |difference| of rates, (N, M).
        size: Of sizes.
        both: Where both have the side.
        neither: Where neither has.
    """

    left: Indices
    right: Indices
    distances: Array
    rate: Array
    size: Array
    both: Array
    neither: Array

    @classmethod
    def between(cls, left: Points, right: Points, column: int, structures: StructureDistances) -> "_SideFeatures":
        ours, theirs = left.structures[:, column], right.structures[:, column]
        mine, my_place = np.unique(np.maximum(ours, 0), return_inverse=True)
        yours, your_place = np.unique(np.maximum(theirs, 0), return_inverse=True)
        here, there = (ours != ABSENT)[:, None], (theirs != ABSENT)[None, :]
        return cls(
            left=my_place,
            right=your_place,
            distances=structures.distances(mine, yours),
            rate=np.abs(left.unit_lrs[:, column][:, None] - right.unit_lrs[:, column][None, :]),
            size=np.abs(
                left.log2_budget_fractions[:, column][:, None] - right.log2_budget_fractions[:, column][None, :]
            ),
            both=(here & there).astype(np.float64),
            neither=(~here & ~there).astype(np.float64),
        )

    def similarity(self, values: Hyperparameters) -> Array:
        """``kS`` where both have the side, else 0; (N, M)."""
        weighted = np.zeros(self.distances.shape[1:])
        for weight, distance in zip(values.weights, self.distances, strict=True):
            weighted += weight * distance
        # both Matern kernels have an exponential and a polynomial; one exponential is enough for all
        rate, size = self.rate * (_ROOT / values["length.rate"]), self.size * (_ROOT / values["length.size"])
        alike = -weighted[self.left][:, self.right]
        alike -= rate
        alike -= size
        np.exp(alike, out=alike)
        alike *= self.both
        alike *= _polynomial(rate)
        alike *= _polynomial(size)
        return alike

    def by_structure(self, matrix: Array) -> Array:
        """Sums of a matrix of points over those of equal structures, (U, V)."""
        rows = np.zeros((self.distances.shape[1], matrix.shape[1]))
        np.add.at(rows, self.left, matrix)
        found = np.zeros((self.distances.shape[2], self.distances.shape[1]))
        np.add.at(found, self.right, rows.T)
        return found.T


_ROOT = math.sqrt(5)


def _polynomial(u: Array) -> Array:
    """``1 + u + u^2 / 3``."""
    found = u / 3
    found += 1
    found *= u
    found += 1
    return found


def matern_slope(distance: Array) -> Array:
    """Its derivative by the logarithm of the length, divided by itself."""
    u = _ROOT * distance
    return u * u / 3 * (1 + u) / (1 + u + u * u / 3)


class PointPairs:
    """What the kernel needs of two sets of points; the hyper-parameters come afterwards."""

    def __init__(self, left: Points, right: Points, structures: StructureDistances) -> None:
        """Measure all distances."""
        self._sides = [_SideFeatures.between(left, right, column, structures) for column in (0, 1)]

    def similarities(self, values: Hyperparameters) -> tuple[Array, Array]:
        """``kA`` and ``kF``, (N, M) each."""
        attention, ffn = (side.similarity(values) + side.neither for side in self._sides)
        return attention, ffn

    def kernel(self, values: Hyperparameters) -> Array:
        """``k``, (N, M)."""
        attention, ffn = self.similarities(values)
        alone = values["level"] ** 2 + values["attention"] ** 2 * attention
        return np.asarray(alone + ffn * (values["ffn"] ** 2 + values["pair"] ** 2 * attention))

    def slopes(self, values: Hyperparameters, adjoint: Array) -> Array:
        """Derivatives of ``sum(adjoint * k)`` by the logarithms of the hyper-parameters that `k` has."""
        attention, ffn = self.similarities(values)
        found = np.zeros(len(values.logarithms))
        products = {"level": None, "attention": attention, "ffn": ffn, "pair": attention * ffn}
        for name, product in products.items():
            total = adjoint.sum() if product is None else (adjoint * product).sum()
            found[place(name)] = 2 * values[name] ** 2 * total
        for side, name, own, other in (
            (self._sides[0], "attention", attention, ffn),
            (self._sides[1], "ffn", ffn, attention),
        ):
            through = adjoint * side.both * own * (values[name] ** 2 + values["pair"] ** 2 * other)
            summed = side.by_structure(through)
            found[WEIGHTS] -= values.weights * (side.distances * summed).sum(axis=(1, 2))
            for length, distance in (("length.rate", side.rate), ("length.size", side.size)):
                found[place(length)] += (through * matern_slope(distance / values[length])).sum()
        return found


def variance(values: Hyperparameters) -> float:
    """``k`` of any configuration with itself."""
    return sum(values[name] ** 2 for name in ("level", "attention", "ffn", "pair"))
