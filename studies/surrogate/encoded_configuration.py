"""A configuration as what moves change: the structure, layers and rate of each side, and the share of attention."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from search_space.backbones.shape import BackboneShape
from search_space.edit import Edit
from search_space.forms import Phm
from search_space.layers import Layers
from search_space.parameter_counts.budget import SideCost, SplitCost
from search_space.space.points import ATTENTION, FFN
from studies.surrogate.features import SideStructure, is_mixed


@dataclass(frozen=True, slots=True)
class EncodedSide:
    """What is chosen at a side.

    Attributes:
        parts: Names of parts of the model, each with the number of its structure; more than one where the kinds of
            attention are searched apart, and one part twice, the lower number first, where it has two edits.
        layers: Where.
        unit_lr: The learning rate's place in the range of its form on a logarithmic scale, -1 to 1.
        split: Share of the side's parameters for the first of two edits; plays no part unless both have a size.
    """

    parts: tuple[tuple[str, int], ...]
    layers: Layers
    unit_lr: float
    split: float = 0.5


@dataclass(frozen=True, slots=True)
class EncodedConfiguration:
    """What is chosen.

    Attributes:
        attention: None without edits there.
        ffn: Likewise.
        attention_share: Of the parameters; plays no part unless both have something to size.
        budget_fraction: Share of the budget that is used; plays no part without anything to size.
    """

    attention: EncodedSide | None
    ffn: EncodedSide | None
    attention_share: float
    budget_fraction: float = 1.0

    @property
    def by_name(self) -> dict[str, EncodedSide]:
        """Those with edits, ``attention`` first."""
        sides = {ATTENTION: self.attention, FFN: self.ffn}
        return {name: side for name, side in sides.items() if side is not None}

    @property
    def sides(self) -> Sequence[EncodedSide]:
        """Those with edits."""
        return [side for side in (self.attention, self.ffn) if side is not None]

    def side(self, name: str) -> EncodedSide | None:
        """What is chosen at ``attention`` or ``ffn``."""
        return self.attention if name == ATTENTION else self.ffn

    def with_side(self, name: str, chosen: EncodedSide | None) -> "EncodedConfiguration":
        """The same with something else at a side."""
        return replace(self, attention=chosen) if name == ATTENTION else replace(self, ffn=chosen)


def reflected(number: float, low: float, high: float) -> float:
    """A number beyond a range, thrown back into it at its ends."""
    if low == high:
        return low
    place = (number - low) % (2 * (high - low))
    return low + (place if place <= high - low else 2 * (high - low) - place)


@dataclass(frozen=True, slots=True, kw_only=True)
class SideFacts:
    """What follows from the structure of a side.

    Attributes:
        structure: As the model sees it.
        cost: Of its edits; the first ones of a part apart from the second ones, half each.
        products: The sizes of the Kronecker products that its edits share.
        edits: The first ones, then the second ones, as small as they can be.
        is_sized: Whether it has something to size.
        is_split: Whether first and second edits have.
        mixed: The forms of the first and the second edits, where they are two forms at one site; else empty.
    """

    structure: SideStructure
    cost: SplitCost
    products: frozenset[int]
    edits: tuple[Edit, ...]
    is_sized: bool
    is_split: bool
    mixed: tuple[str, ...]

    @classmethod
    def of(cls, first: tuple[Edit, ...], second: tuple[Edit, ...], shape: BackboneShape) -> "SideFacts":
        """The facts of some edits; of the first ones there is at least one."""
        edits = (*first, *second)
        return cls(
            structure=SideStructure.of(edits),
            cost=SplitCost(first=SideCost.of(first, shape), second=SideCost.of(second, shape), share=0.5),
            products=frozenset(edit.form.n for edit in edits if isinstance(edit.form, Phm) and edit.form.shared),
            edits=edits,
            is_sized=any(edit.sized_form is not None for edit in edits),
            is_split=all(any(edit.sized_form is not None for edit in some) for some in (first, second)),
            mixed=(first[0].form.name, second[0].form.name) if second and is_mixed(edits) else (),
        )

    @property
    def form(self) -> str:
        """Of the first edit; its rates have that form's range."""
        return self.edits[0].form.name

    def cost_at(self, split: float) -> SplitCost:
        """Of its edits with another split."""
        return replace(self.cost, share=split) if self.is_split else self.cost
