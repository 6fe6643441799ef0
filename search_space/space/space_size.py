"""How large a search space is: the product of its dimensions, and the structures that can be proposed.

Sizes and learning rates are left aside: a structure is which edits with which gates, activations and scales.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import prod

from search_space.forms import FORMS
from search_space.gates import FixedScale, Gate, Multiply
from search_space.space.layer_choice import depth_of, every_choice
from search_space.space.options import SpaceOptions
from search_space.space.points import FFN, site_of
from search_space.space.product import product_size
from search_space.space.questions import NUMBERS
from search_space.space.space import SearchSpace


@dataclass(frozen=True, slots=True, kw_only=True)
class PartSize:
    """The space at one part of the model: attention, one of its kinds, or the FFN.

    Attributes:
        part: Its name.
        product: Combinations of the values of all dimensions, legal or not.
        proposed: Structures of one edit that can be proposed.
        pairs: Structures of two edits that can be proposed.
    """

    part: str
    product: int
    proposed: int
    pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceSize:
    """The size of a search space.

    Attributes:
        parts: Of each part.
        layers: Choices of layers at a side.
        placements: Sets of parts that can be edited together.
        product: Configurations of the raw product: at every part a combination or nothing, with a choice of layers.
        proposed: Structures that can be proposed.
    """

    parts: tuple[PartSize, ...]
    layers: int
    placements: int
    product: int
    proposed: int


def space_size(space: SearchSpace) -> SpaceSize:
    """Count a search space, exactly."""
    parts = tuple(_part(space, part) for part in space.parts)
    layers = len(every_choice(space.layers, depth_of(space.shape)))
    placed = tuple(space.placements.values())
    anywhere = [chosen for size in range(1, len(parts) + 1) for chosen in combinations(space.parts, size)]

    def configurations(placements: Collection[tuple[str, ...]], sizes: Mapping[str, int]) -> int:
        """Those of all placements; the parts of a side share a choice of layers."""
        sides = ((chosen, len({part == FFN for part in chosen})) for chosen in placements)
        return sum(prod(sizes[part] for part in chosen) * layers**number for chosen, number in sides)

    return SpaceSize(
        parts=parts,
        layers=layers,
        placements=len(placed),
        product=configurations(anywhere, {one.part: one.product for one in parts}),
        proposed=configurations(placed, {one.part: one.proposed + one.pairs for one in parts}),
    )


def dimension_values(space: SearchSpace) -> dict[str, dict[str, tuple[str, ...]]]:
    """What can be chosen at every part of the model, by dimension; those with one value too."""
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for part, tree in space.trees.items():
        values: dict[str, dict[str, None]] = {}
        for point in tree.points:
            for dimension, value in point.path:
                values.setdefault(dimension, {})[value] = None
        for dimension, some in space.options.varied.items():
            if any(point.leaves_open(dimension) for point in tree.points):
                values[dimension] = dict.fromkeys(some)
        if part in space.pairs:
            values["edits"] = dict.fromkeys(NUMBERS)
        found[part] = {dimension: tuple(some) for dimension, some in values.items()}
    return found


def _part(space: SearchSpace, part: str) -> PartSize:
    values = {**space.options.values(part), "gate": dict(_gates(part, space.options))}
    return PartSize(
        part=part,
        product=product_size(site_of(part), values),
        proposed=len(space.structures.get(part, ())),
        pairs=len(space.pairs.get(part, ())),
    )


def _gates(part: str, options: SpaceOptions) -> Iterator[tuple[str, Gate]]:
    """Those of the product, in which a gate with another scale is another gate."""
    for text, gate in options.gate_values.items():
        if isinstance(gate, FixedScale):
            yield from ((f"{text}:{scale}", FixedScale(value=scale)) for scale in options.scales)
        else:
            yield text, gate
    if any(FORMS[name].multiplies for name in options.forms(part)):
        yield Multiply.name, Multiply()
