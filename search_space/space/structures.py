"""The structures of one part of a model: all that can be chosen for it, found by their edits."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import overload

from search_space.backbones.shape import BackboneShape
from search_space.canonical import canonical
from search_space.configuration import Configuration
from search_space.edit import Edit
from search_space.layers import AllLayers
from search_space.space.options import SpaceOptions
from search_space.space.product import Point


class StructureIndex(Sequence[Point]):
    """Points with every activation and every scale that is searched, in the order of their decisions.

    Args:
        points: Those of a part.
        shape: The backbone.
        options: What is searched.
    """

    def __init__(self, points: Sequence[Point], shape: BackboneShape, options: SpaceOptions) -> None:
        """Keep the points."""
        self._points = tuple(points)
        self._shape = shape
        self._options = options

    def __len__(self) -> int:
        """How many there are."""
        return len(self._all)

    @overload
    def __getitem__(self, index: int) -> Point: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Point]: ...
    def __getitem__(self, index: int | slice) -> Point | Sequence[Point]:
        """The structure of a number."""
        return self._all[index]

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
    def _all(self) -> tuple[Point, ...]:
        return tuple(varied for point in self._points for varied in _varied(point, self._options))

    @cached_property
    def _by_edits(self) -> dict[tuple[Edit, ...], Point]:
        return {point.edits: point for point in self._all}

    @cached_property
    def _by_function(self) -> dict[tuple[Edit, ...], Point]:
        return {self._function(point.edits): point for point in reversed(self._all)}

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
