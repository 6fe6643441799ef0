"""The structures of one part of a model: all that can be chosen for it, found by their edits."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Self

from search_space.backbones.shape import BackboneShape
from search_space.canonical import canonical
from search_space.configuration import Configuration
from search_space.edit import Edit
from search_space.layers import AllLayers
from search_space.space.options import SpaceOptions
from search_space.space.product import Point


class StructureIndex(tuple[Point, ...]):
    """Points with every activation and every scale that is searched, in the order of their decisions."""

    _shape: BackboneShape

    def __new__(cls, points: Iterable[Point], shape: BackboneShape, options: SpaceOptions) -> Self:
        """Vary the points.

        Args:
            points: Those of a part.
            shape: The backbone.
            options: What is searched.
        """
        index = super().__new__(cls, (varied for point in points for varied in _varied(point, options)))
        index._shape = shape
        return index

    def find(self, edits: Sequence[Edit]) -> Point | None:
        """The structure of some edits whatever their widths and layers, or the one that is the same function.

        Raises:
            InvalidEditError: If the edits are not valid on the backbone.
        """
        plain = tuple(_plain(edit) for edit in edits)
        if plain in self._by_edits:
            return self._by_edits[plain]
        return self._by_function.get(self._function(plain))

    @cached_property
    def _by_edits(self) -> dict[tuple[Edit, ...], Point]:
        return {point.edits: point for point in self}

    @cached_property
    def _by_function(self) -> dict[tuple[Edit, ...], Point]:
        return {self._function(point.edits): point for point in reversed(self)}

    def _function(self, edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
        return canonical(Configuration(edits=edits), self._shape).edits


def _varied(point: Point, options: SpaceOptions) -> list[Point]:
    points = [point]
    for dimension, values in options.varied.items():
        if point.leaves_open(dimension):
            points = [one.varied(dimension, value) for one in points for value in values.values()]
    return points


def _plain(edit: Edit) -> Edit:
    """The edit at all layers with the smallest bottleneck."""
    return replace(edit, form=edit.form.smallest, layers=AllLayers())
