"""Distances between structures by dimension, as arrays.

Every distance is of negative type, so that ``exp(-w distance)`` is a kernel. Sets have the Jaccard distance, or one
minus the cosine of their indicators; scales have the absolute difference of logarithms. Inner products are of whole
numbers and exact: no distance depends on the order in which structures or words were added.
"""

from collections.abc import Iterable, Sequence
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from search_space.gates import Add, FixedScale, LearnedScale
from studies.surrogate.features import SideStructure

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

DIMENSIONS = tuple(one.name for one in fields(SideStructure))
"""Dimensions of a side with a distance, in the order of the arrays."""

_PLAIN = (Add.name, FixedScale.name, LearnedScale.name)

ABSENT = -1
"""Number of a side without edits."""


class _Words:
    """Sets of words as rows of indicators, which grow with new rows and words."""

    def __init__(self) -> None:
        self._columns: dict[str, int] = {}
        self._matrix: Array = np.zeros((64, 16))

    def add(self, row: int, words: Iterable[str]) -> None:
        columns = [self._columns.setdefault(word, len(self._columns)) for word in words]
        rows, width = self._matrix.shape
        if row >= rows or len(self._columns) > width:
            more = rows if row >= rows else 0, max(width, len(self._columns)) if len(self._columns) > width else 0
            self._matrix = np.pad(self._matrix, ((0, more[0]), (0, more[1])))
        self._matrix[row, columns] = 1.0

    def overlaps(self, left: Indices, right: Indices) -> tuple[Array, Array, Array]:
        """Return the number of common words, and the number of words of each set."""
        ours, theirs = self._matrix[left], self._matrix[right]
        return ours @ theirs.T, ours.sum(axis=1)[:, None], theirs.sum(axis=1)[None, :]


class StructureDistances:
    """Numbered structures and the distances between them."""

    def __init__(self) -> None:
        """Start without structures."""
        self._numbers: dict[SideStructure, int] = {}
        self._words = {dimension: _Words() for dimension in DIMENSIONS[:-1]}
        self._scales: Array = np.zeros(64)

    def number(self, structure: SideStructure) -> int:
        """Return the number of a structure, a new one if necessary."""
        known = self._numbers.get(structure)
        if known is not None:
            return known
        row = self._numbers[structure] = len(self._numbers)
        for dimension, words in self._words.items():
            words.add(row, _words(structure, dimension))
        if row >= len(self._scales):
            self._scales = np.pad(self._scales, (0, len(self._scales)))
        self._scales[row] = structure.scale
        return row

    def distances(self, left: Indices, right: Indices) -> Array:
        """Return the distances by dimension, (D, len(left), len(right))."""
        result = np.empty((len(DIMENSIONS), len(left), len(right)))
        for index, dimension in enumerate(DIMENSIONS[:-1]):
            common, ours, theirs = self._words[dimension].overlaps(left, right)
            if dimension in _BY_COSINE:
                result[index] = 1.0 - common / np.sqrt(np.maximum(ours * theirs, 1.0))
            else:
                result[index] = 1.0 - common / np.maximum(ours + theirs - common, 1.0)
            result[index][(ours == 0) & (theirs == 0)] = 0.0
        result[-1] = np.abs(self._scales[left][:, None] - self._scales[right][None, :])
        return result


_BY_COSINE = ("gate", "other")


def _words(structure: SideStructure, dimension: str) -> Sequence[str]:
    words: frozenset[str] = getattr(structure, dimension)
    if dimension != "gate":
        return sorted(words)
    # addition with and without a scale have half the distance that they have to other gates
    kinds = {"a plain gate" if word in _PLAIN else f"{word}, alone" for word in words}
    return sorted(words | kinds)
