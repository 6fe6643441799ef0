"""Layer choices: the blocks of a stack at which an edit acts.

Indices count the blocks of one stack from 0; in an encoder-decoder the choice applies to each stack.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from search_space.errors import InvalidEditError
from search_space.rules import is_integer

GROUPS = 4
SIXTHS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class AllLayers:
    """Every block."""

    name: ClassVar[str] = "all"

    def block_indices(self, layers: int) -> tuple[int, ...]:
        """Return the indices of the chosen blocks of a stack of ``layers``."""
        return tuple(range(layers))


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerRange:
    """A contiguous range of blocks.

    Attributes:
        first: Index of the first block.
        last: Index of the last block, included; at least ``first``.

    Raises:
        InvalidEditError: If the range is empty.
    """

    name: ClassVar[str] = "range"

    first: int
    last: int

    def __post_init__(self) -> None:
        """Check the order."""
        if not (is_integer(self.first) and is_integer(self.last) and 0 <= self.first <= self.last):
            raise InvalidEditError(
                f"a range of layers must be of indices 0 <= first <= last; got {self.first!r} to {self.last!r}.",
                rule="layers",
            )

    def block_indices(self, layers: int) -> tuple[int, ...]:
        """Return the indices of the chosen blocks of a stack of ``layers``; none if the range ends beyond it."""
        return tuple(range(self.first, self.last + 1)) if self.last < layers else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SpindleGroups:
    """Some of the four consecutive groups of a spindle: thin at both ends, thick in the middle.

    Chen et al. 2023, Parameter-Efficient Fine-Tuning Design Spaces, ICLR: the best of the grouping patterns compared
    there.

    Attributes:
        groups: Numbers of the chosen groups, 1 (next to the input) to 4, ascending.

    Raises:
        InvalidEditError: If no group is chosen, or one that does not exist.
    """

    name: ClassVar[str] = "spindle"

    groups: tuple[int, ...]

    def __post_init__(self) -> None:
        """Check the numbers and convert a list, as read from JSON, into a tuple."""
        object.__setattr__(self, "groups", _ascending(self.groups, GROUPS, "spindle groups"))

    def block_indices(self, layers: int) -> tuple[int, ...]:
        """Return the indices of the chosen blocks of a stack of ``layers``; none if it has fewer than four blocks."""
        if layers < GROUPS:
            return ()
        groups = spindle(layers)
        return tuple(index for group in self.groups for index in groups[group - 1])


def _ascending(numbers: Iterable[int], maximum: int, name: str) -> tuple[int, ...]:
    values = tuple(numbers)
    if not values or list(values) != sorted(set(values)) or not set(values) <= set(range(1, maximum + 1)):
        raise InvalidEditError(f"{name} must be ascending numbers from 1 to {maximum}; got {values}.", rule="layers")
    return values


def spindle(layers: int) -> tuple[tuple[int, ...], ...]:
    """Return four consecutive groups of block indices; the outer two have about a sixth of the blocks each.

    Args:
        layers: Blocks of the stack, at least 4. Twelve make groups of 2, 4, 4 and 2.
    """
    outer = max(1, round(layers / 6))
    inner = layers - 2 * outer
    sizes = (outer, inner // 2, inner - inner // 2, outer)
    starts = (0, sizes[0], sizes[0] + sizes[1], layers - outer)
    return tuple(tuple(range(start, start + size)) for start, size in zip(starts, sizes, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerPattern:
    """Some of the consecutive sixths of a stack.

    Attributes:
        sixths: Numbers of the chosen sixths, 1 (next to the input) to 6, ascending.

    Raises:
        InvalidEditError: If no sixth is chosen, or one that does not exist.
    """

    name: ClassVar[str] = "pattern"

    sixths: tuple[int, ...]

    def __post_init__(self) -> None:
        """Check the numbers and convert a list, as read from JSON, into a tuple."""
        object.__setattr__(self, "sixths", _ascending(self.sixths, SIXTHS, "the sixths of a pattern"))

    def block_indices(self, layers: int) -> tuple[int, ...]:
        """Return the indices of the chosen blocks of a stack of ``layers``; none if it has fewer than six blocks."""
        if layers < SIXTHS:
            return ()
        return tuple(index for index in range(layers) if index * SIXTHS // layers + 1 in self.sixths)


Layers = AllLayers | LayerRange | SpindleGroups | LayerPattern


def shrinking_choices(layers: Layers, depth: int) -> Iterator[Layers]:
    """Yield a choice of a stack of ``depth`` blocks, then ever smaller parts of it, each without its lowest blocks."""
    yield layers
    first, *others = layers.block_indices(depth)
    match layers:
        case SpindleGroups(groups=(_, *kept)) if kept:
            yield from shrinking_choices(SpindleGroups(groups=tuple(kept)), depth)
        case LayerPattern(sixths=(_, *kept)) if kept:
            yield from shrinking_choices(LayerPattern(sixths=tuple(kept)), depth)
        case _ if others:
            yield from shrinking_choices(LayerRange(first=first + 1, last=others[-1]), depth)


LAYER_CHOICES: tuple[type[Layers], ...] = (AllLayers, LayerRange, SpindleGroups, LayerPattern)
