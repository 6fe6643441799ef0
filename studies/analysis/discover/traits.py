"""The design dimensions of structures, and which structures are the same but for one of them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property

from search_space.space.product import Point
from search_space.words.describe import side_view

DIMENSIONS: tuple[str, ...] = ("form", "write", "read", "insertion", "gate", "heads", "activation", "scale")
"""Of one edit of a side, as tables name them; ``read`` is compared, but is no question of its own."""

_ALL = (*DIMENSIONS, "variant")

FOLLOWS: Mapping[str, tuple[str, ...]] = {
    "form": ("read", "heads", "variant"),
    "write": ("read", "heads", "variant"),
    "insertion": ("read",),
    "gate": ("variant",),
    "heads": ("write", "read"),
}
"""What may change with a dimension, because it must: who writes another tensor in sequence reads another one, too."""

Traits = tuple[str | None, ...]


class PartTraits:
    """The traits of the structures of one part of the model.

    Args:
        points: The structures by number.
    """

    def __init__(self, points: Sequence[Point]) -> None:
        """Read every structure."""
        self._traits = [_traits(point) for point in points]
        self._matches: dict[tuple[int, str], Mapping[str, tuple[int, ...]]] = {}

    def of(self, number: int, dimension: str) -> str | None:
        """The value of a dimension; None where a structure has none."""
        return self._traits[number][_ALL.index(dimension)]

    def values(self, dimension: str) -> tuple[str, ...]:
        """All values that some structure has, those of most structures first."""
        counted: dict[str, int] = defaultdict(int)
        for number in range(len(self._traits)):
            value = self.of(number, dimension)
            if value is not None:
                counted[value] += 1
        return tuple(sorted(counted, key=lambda value: (-counted[value], value)))

    def matches(self, number: int, dimension: str) -> Mapping[str, tuple[int, ...]]:
        """By other value of a dimension, the structures that are the same else, but for what must follow.

        What only one of two structures has, such as an activation, is no difference. Of several structures those that
        differ least are named.
        """
        known = self._matches.get((number, dimension))
        if known is None:
            known = self._matches[number, dimension] = self._found(number, dimension)
        return known

    def _found(self, number: int, dimension: str) -> Mapping[str, tuple[int, ...]]:
        own, place = self._traits[number], _ALL.index(dimension)
        value = own[place]
        if value is None:
            return {}
        found: dict[str, tuple[int, list[int]]] = {}
        for other in self._alike[dimension, _rest(own, dimension, self._free[dimension])]:
            theirs = self._traits[other]
            if theirs[place] in (None, value) or not _same(own, theirs, dimension):
                continue
            differences = sum(a != b for a, b in zip(own, theirs, strict=True))
            least, numbers = found.get(str(theirs[place]), (len(_ALL) + 1, []))
            if differences < least:
                found[str(theirs[place])] = differences, [other]
            elif differences == least:
                numbers.append(other)
        return {text: tuple(numbers) for text, (_, numbers) in found.items()}

    @cached_property
    def _free(self) -> Mapping[str, tuple[str, ...]]:
        """By dimension, what two structures that match may differ in, for a dictionary of candidates."""
        optional = tuple(name for name in _ALL if any(traits[_ALL.index(name)] is None for traits in self._traits))
        return {name: (name, *FOLLOWS.get(name, ()), *optional) for name in DIMENSIONS}

    @cached_property
    def _alike(self) -> Mapping[tuple[str, Traits], Sequence[int]]:
        """Structures by what those that match have in common."""
        found: dict[tuple[str, Traits], list[int]] = defaultdict(list)
        for dimension in DIMENSIONS:
            for number, traits in enumerate(self._traits):
                found[dimension, _rest(traits, dimension, self._free[dimension])].append(number)
        return found


def _traits(point: Point) -> Traits:
    view = side_view(point.edits)
    values = (getattr(view, name) for name in _ALL)
    return tuple(None if value is None else str(value) for value in values)


def _rest(traits: Traits, dimension: str, free: Sequence[str]) -> Traits:
    return tuple(value for name, value in zip(_ALL, traits, strict=True) if name not in free and name != dimension)


def _same(one: Traits, other: Traits, dimension: str) -> bool:
    free = (dimension, *FOLLOWS.get(dimension, ()))
    return all(name in free or None in (a, b) or a == b for name, a, b in zip(_ALL, one, other, strict=True))
