"""Encoded configurations: the structure, layers and learning rate of each side, and how the sides share the budget."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from search_space.backbones.shape import BackboneShape
from search_space.edit import Edit
from search_space.forms import Phm
from search_space.layers import Layers
from search_space.parameter_counts.budget import RankBounds, SideCost, SplitCost
from search_space.space.points import ATTENTION, FFN
from studies.surrogate.features import SideStructure, is_mixed


@dataclass(frozen=True, slots=True)
class EncodedSide:
    """Encoded choices of one side.

    Attributes:
        parts: Names of parts of the model, each with the number of its structure. There is more than one where kinds of
            attention are searched separately. A part with two edits is listed twice, the lower number first.
        layers: Layers that are edited.
        unit_lr: Learning rate in the range of its form on a logarithmic scale, from -1 to 1.
        split: Share of the side's parameters for the first of two edits; unused unless both have a size.
    """

    parts: tuple[tuple[str, int], ...]
    layers: Layers
    unit_lr: float
    split: float = 0.5


@dataclass(frozen=True, slots=True)
class EncodedConfiguration:
    """Encoded choices of a configuration.

    Attributes:
        attention: Side of attention; None without edits there.
        ffn: Side of the FFN; None without edits there.
        attention_share: Share of the parameters at attention; unused unless both sides have a size.
        budget_fraction: Share of the budget in use; unused without a size.
    """

    attention: EncodedSide | None
    ffn: EncodedSide | None
    attention_share: float
    budget_fraction: float = 1.0

    @property
    def by_name(self) -> dict[str, EncodedSide]:
        """Sides with edits by name, ``attention`` first."""
        sides = {ATTENTION: self.attention, FFN: self.ffn}
        return {name: side for name, side in sides.items() if side is not None}

    @property
    def sides(self) -> Sequence[EncodedSide]:
        """Sides with edits, attention first."""
        return [side for side in (self.attention, self.ffn) if side is not None]

    def side(self, name: str) -> EncodedSide | None:
        """Return the side ``attention`` or ``ffn``."""
        return self.attention if name == ATTENTION else self.ffn

    def with_side(self, name: str, side: EncodedSide | None) -> "EncodedConfiguration":
        """Return the configuration with another side."""
        return replace(self, attention=side) if name == ATTENTION else replace(self, ffn=side)


def reflect(number: float, low: float, high: float) -> float:
    """Return a number reflected into a range at its ends."""
    if low == high:
        return low
    place = (number - low) % (2 * (high - low))
    return low + (place if place <= high - low else 2 * (high - low) - place)


@dataclass(frozen=True, slots=True, kw_only=True)
class SideFacts:
    """Properties that follow from the structure of a side.

    Attributes:
        structure: Model features of the structure.
        cost: Cost of the edits; first and second edits of a part are separate and share the budget equally.
        products: Sizes of the Kronecker products that the edits share.
        edits: First edits, then second ones, at their smallest size.
        is_sized: Whether an edit has a size.
        is_split: Whether both first and second edits have one.
        is_mixed: Whether several forms are at one site.
    """

    structure: SideStructure
    cost: SplitCost
    products: frozenset[int]
    edits: tuple[Edit, ...]
    is_sized: bool
    is_split: bool
    is_mixed: bool

    @classmethod
    def of(
        cls, first: tuple[Edit, ...], second: tuple[Edit, ...], shape: BackboneShape, rank: RankBounds | None = None
    ) -> "SideFacts":
        """Return the properties of some edits; there is at least one first edit.

        Args:
            rank: Bounds of the rank of forms that have one; None for any.
        """
        edits = (*first, *second)
        return cls(
            structure=SideStructure.of(edits),
            cost=SplitCost(
                first=SideCost.of(first, shape, rank=rank), second=SideCost.of(second, shape, rank=rank), share=0.5
            ),
            products=frozenset(edit.form.n for edit in edits if isinstance(edit.form, Phm) and edit.form.shared),
            edits=edits,
            is_sized=any(edit.sized_form is not None for edit in edits),
            is_split=all(any(edit.sized_form is not None for edit in edits_of) for edits_of in (first, second)),
            is_mixed=is_mixed(edits),
        )

    @property
    def form(self) -> str:
        """Form of the first edit, whose learning-rate range applies to the side."""
        return self.edits[0].form.name

    def cost_at(self, split: float) -> SplitCost:
        """Return the cost with another split."""
        return replace(self.cost, share=split) if self.is_split else self.cost
