"""A configuration as what moves change: the structure, layers and rate of each side, and the share of attention."""

from collections.abc import Sequence
from dataclasses import dataclass

from search_space.layers import Layers


@dataclass(frozen=True, slots=True)
class EncodedSideStructure:
    """What is chosen at a side, the rate aside.

    Attributes:
        parts: Names of parts of the model, each with the number of its structure; more than one where the kinds of
            attention are searched apart, and one part twice, the lower number first, where it has two edits.
        layers: Where.
    """

    parts: tuple[tuple[str, int], ...]
    layers: Layers


@dataclass(frozen=True, slots=True)
class EncodedSide:
    """What is chosen at a side.

    Attributes:
        structure: The edits.
        rate: Relative learning rate, -1 to 1.
        split: Share of the side's parameters for the first of two edits; plays no part unless both have a size.
    """

    structure: EncodedSideStructure
    rate: float
    split: float = 0.5


@dataclass(frozen=True, slots=True)
class EncodedConfiguration:
    """What is chosen.

    Attributes:
        attention: None without edits there.
        ffn: Likewise.
        share: Of the budget, for attention; plays no part unless both have something to size.
        size: Share of the budget that is used; plays no part without anything to size.
    """

    attention: EncodedSide | None
    ffn: EncodedSide | None
    share: float
    size: float = 1.0

    @property
    def sides(self) -> Sequence[EncodedSide]:
        """Those with edits."""
        return [side for side in (self.attention, self.ffn) if side is not None]


def reflected(number: float, low: float, high: float) -> float:
    """A number beyond a range, thrown back into it at its ends."""
    if low == high:
        return low
    place = (number - low) % (2 * (high - low))
    return low + (place if place <= high - low else 2 * (high - low) - place)
