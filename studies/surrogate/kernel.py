"""Kernel between configurations: a sum over attention, the FFN and their product.

``k((A,F),(A',F')) = s0² + sA² kA + sF² kF + sx² kA kF`` with, for each side, ``kS = exp(-sum_d w_d distance_d)
Matern(rate) Matern(size)``. Two sides without edits have similarity 1, and a side without edits has similarity 0 to any
other. ``N`` and ``M`` are numbers of points, ``U`` and ``V`` of distinct structures, ``D`` of dimensions.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from studies.surrogate.features import Features, TrainedSide
from studies.surrogate.hyperparameters import WEIGHTS, Hyperparameters, index_of
from studies.surrogate.prior_mean import NO_EXPECTED_RATES, ExpectedRates, Rules, papers_log_odds, prior_trends
from studies.surrogate.structure_distances import ABSENT, Array, Indices, StructureDistances


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """Configurations as arrays; attention is column 0, the FFN column 1.

    Attributes:
        structures: Numbers of the structures, (N, 2).
        unit_lrs: Learning rates within their ranges, from -1 to 1, (N, 2).
        log2_budget_fractions: Base-2 logarithms of the stored shares of the budget, (N, 2).
        trends: Prior trends, in the order of ``TRENDS``, (N, 2).
    """

    structures: Indices
    unit_lrs: Array
    log2_budget_fractions: Array
    trends: Array

    @classmethod
    def of(
        cls,
        features: Sequence[Features],
        structures: StructureDistances,
        expected_rates: ExpectedRates = NO_EXPECTED_RATES,
        rules: Rules = papers_log_odds,
    ) -> "Points":
        """Return the arrays of some configurations.

        Args:
            features: Model features of the configurations.
            structures: Numbering of their structures.
            expected_rates: Expected best learning rates of some forms.
            rules: Prior log odds of a configuration, learning rates aside.
        """
        rows = [
            (*_row(pair[0], structures), *_row(pair[1], structures), *prior_trends(pair, expected_rates, rules))
            for pair in features
        ]
        table = np.array(rows, dtype=np.float64).reshape(len(rows), 8)
        return cls(
            structures=table[:, 0:6:3].astype(np.int64),
            unit_lrs=table[:, 1:6:3],
            log2_budget_fractions=table[:, 2:6:3],
            trends=table[:, 6:],
        )

    def __len__(self) -> int:
        """Return the number of points."""
        return len(self.structures)

    def take(self, rows: Indices) -> "Points":
        """Return some rows."""
        return Points(**{one.name: getattr(self, one.name)[rows] for one in fields(self)})

    def concatenate(self, others: "Points") -> "Points":
        """Return these rows followed by those of others."""
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
        left: Index of each structure of the first set among the distinct ones, (N,).
        right: The same for the second set, (M,).
        distances: Distances between the distinct structures, (D, U, V).
        rate: Absolute differences of learning rates, (N, M).
        size: Absolute differences of sizes, (N, M).
        both: 1 where both points have the side, (N, M).
        neither: 1 where neither has, (N, M).
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
        """Return ``kS`` where both points have the side, else 0; (N, M)."""
        weighted = np.zeros(self.distances.shape[1:])
        for weight, distance in zip(values.weights, self.distances, strict=True):
            weighted += weight * distance
        # both Matern kernels have an exponential and a polynomial; one exponential is enough for all
        rate, size = self.rate * (_ROOT / values["length.rate"]), self.size * (_ROOT / values["length.size"])
        similarity = -weighted[self.left][:, self.right]
        similarity -= rate
        similarity -= size
        np.exp(similarity, out=similarity)
        similarity *= self.both
        similarity *= _polynomial(rate)
        similarity *= _polynomial(size)
        return similarity

    def sum_by_structure(self, matrix: Array) -> Array:
        """Return the sums of a matrix of points over those of equal structures, (U, V)."""
        rows = np.zeros((self.distances.shape[1], matrix.shape[1]))
        np.add.at(rows, self.left, matrix)
        result = np.zeros((self.distances.shape[2], self.distances.shape[1]))
        np.add.at(result, self.right, rows.T)
        return result.T


_ROOT = math.sqrt(5)


def _polynomial(u: Array) -> Array:
    """Return ``1 + u + u^2 / 3``."""
    result = u / 3
    result += 1
    result *= u
    result += 1
    return result


def matern_slope(distance: Array) -> Array:
    """Return the derivative of the kernel with respect to the logarithm of the length, divided by the kernel."""
    u = _ROOT * distance
    return u * u / 3 * (1 + u) / (1 + u + u * u / 3)


class PointPairs:
    """Distances between two sets of points, from which kernels are computed for any hyper-parameters."""

    def __init__(self, left: Points, right: Points, structures: StructureDistances) -> None:
        """Compute all distances."""
        self._sides = [_SideFeatures.between(left, right, column, structures) for column in (0, 1)]

    def similarities(self, values: Hyperparameters) -> tuple[Array, Array]:
        """Return ``kA`` and ``kF``, (N, M) each."""
        attention, ffn = (side.similarity(values) + side.neither for side in self._sides)
        return attention, ffn

    def kernel(self, values: Hyperparameters) -> Array:
        """Return ``k``, (N, M)."""
        attention, ffn = self.similarities(values)
        alone = values["level"] ** 2 + values["attention"] ** 2 * attention
        return np.asarray(alone + ffn * (values["ffn"] ** 2 + values["pair"] ** 2 * attention))

    def slopes(self, values: Hyperparameters, adjoint: Array) -> Array:
        """Return the derivatives of ``sum(adjoint * k)`` with respect to the logarithms of the hyper-parameters."""
        attention, ffn = self.similarities(values)
        result = np.zeros(len(values.logarithms))
        products = {"level": None, "attention": attention, "ffn": ffn, "pair": attention * ffn}
        for name, product in products.items():
            total = adjoint.sum() if product is None else (adjoint * product).sum()
            result[index_of(name)] = 2 * values[name] ** 2 * total
        for side, name, own, other in (
            (self._sides[0], "attention", attention, ffn),
            (self._sides[1], "ffn", ffn, attention),
        ):
            through = adjoint * side.both * own * (values[name] ** 2 + values["pair"] ** 2 * other)
            by_structure = side.sum_by_structure(through)
            result[WEIGHTS] -= values.weights * (side.distances * by_structure).sum(axis=(1, 2))
            for length, distance in (("length.rate", side.rate), ("length.size", side.size)):
                result[index_of(length)] += (through * matern_slope(distance / values[length])).sum()
        return result


def variance(values: Hyperparameters) -> float:
    """Return ``k`` of any configuration with itself."""
    return sum(values[name] ** 2 for name in ("level", "attention", "ffn", "pair"))
