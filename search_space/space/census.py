"""How large a search space is: the product of its dimensions, what each rule refuses, and the distinct structures.

Sizes and learning rates are left aside: a structure is which edits with which gates, activations and scales.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod

from search_space.canonical import canonical
from search_space.configuration import Configuration
from search_space.edit import Edit
from search_space.forms import FORMS
from search_space.gates import FixedScale, Gate, Multiply
from search_space.space.layer_choice import depth_of, every_choice
from search_space.space.options import SpaceOptions
from search_space.space.pairs import TOO_LARGE
from search_space.space.points import FFN, points_of, site_of
from search_space.space.product import Point, Structure, product_size, refusals
from search_space.space.questions import NUMBERS
from search_space.space.space import SearchSpace
from search_space.space.structures import StructureIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class PairCensus:
    """The structures of two edits at one part of the model.

    Attributes:
        product: Combinations of two structures of one edit that can be proposed.
        refused: How many of them are no pair: by the rule they break, ``twice`` where one form writes one tensor in
            both, or ``together`` where both are one structure that writes several tensors.
        too_large: Pairs that are left out because they do not fit the budget.
        proposed: Pairs that can be proposed.
        distinct: How many of these are different functions.
    """

    product: int
    refused: dict[str, int]
    too_large: int
    proposed: int
    distinct: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartCensus:
    """The space at one part of the model: attention, one of its kinds, or the FFN.

    Attributes:
        part: Its name.
        product: Combinations of the values of all dimensions.
        refused: How many of them each rule refuses; each counts for the first rule it breaks.
        together: Structures that write several tensors at once, which the product does not have.
        near_duplicates: Legal structures that are left out because another computes the same, or nearly.
        too_large: Structures that are left out because they do not fit the budget.
        proposed: Structures of one edit that can be proposed.
        distinct: How many of these are different functions.
        pairs: Structures of two edits; None where there is at most one.
    """

    part: str
    product: int
    refused: dict[str, int]
    together: int
    near_duplicates: int
    too_large: int
    proposed: int
    distinct: int
    pairs: PairCensus | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """The size of a search space.

    Attributes:
        parts: Of each part.
        layers: Choices of layers at a side, the raw number and that of different sets of blocks.
        placements: Sets of parts that can be edited together.
        product: Configurations of the raw product: at every part a combination or nothing, with a choice of layers.
        proposed: Structures that can be proposed.
        distinct: How many of these are different functions.
    """

    parts: tuple[PartCensus, ...]
    layers: tuple[int, int]
    placements: int
    product: int
    proposed: int
    distinct: int


def census(space: SearchSpace) -> Census:
    """Count a search space, exactly."""
    parts = tuple(_part(space, part) for part in space.parts)
    choices = every_choice(space.layers, depth_of(space.shape))
    anywhere = [chosen for size in range(1, len(parts) + 1) for chosen in combinations(space.parts, size)]
    placed = tuple(space.placements.values())

    def different(side: Collection[str]) -> int:
        depths = {depth for part in side for depth in space.shape.depths(site_of(part)) if depth}
        return len({tuple(layers.chosen(depth) for depth in depths) for layers in choices})

    def configurations(placed: Iterable[tuple[str, ...]], number: str, layers: Callable[[Collection[str]], int]) -> int:
        """Structures of all placements; the parts of a side share a choice of layers."""
        sizes = {one.part: sum(getattr(some, number) for some in (one, one.pairs) if some) for one in parts}
        total = 0
        for chosen in placed:
            sides = [[part for part in chosen if (part == FFN) is is_ffn] for is_ffn in (False, True)]
            total += prod(sizes[part] for part in chosen) * prod(layers(side) for side in sides if side)
        return total

    return Census(
        parts=parts,
        layers=(len(choices), different(space.parts)),
        placements=len(placed),
        product=configurations(anywhere, "product", lambda side: len(choices)),
        proposed=configurations(placed, "proposed", lambda side: len(choices)),
        distinct=configurations(placed, "distinct", different),
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


def _part(space: SearchSpace, part: str) -> PartCensus:
    options, shape = space.options, space.shape
    values, site = {**options.values(part), "gate": dict(_gates(part, options))}, site_of(part)
    size = product_size(site, values)
    refused = refusals(site, shape, values)
    legal = StructureIndex(points_of(part, shape, options), shape, options)
    proposed = len(space.structures.get(part, ()))
    together = sum(len(point.edits) > 1 for point in legal)
    return PartCensus(
        part=part,
        product=size,
        refused=dict(Counter(refused).most_common()),
        together=together,
        near_duplicates=size - sum(refused.values()) + together - len(legal),
        too_large=len(legal) - proposed,
        proposed=proposed,
        distinct=_distinct(space.trees[part].points if part in space.trees else (), space),
        pairs=_pair_census(part, space) if part in space.pairs else None,
    )


def _pair_census(part: str, space: SearchSpace) -> PairCensus:
    structures, pairs = space.structures[part], space.pairs[part]
    refused = pairs.refused
    too_large = refused.pop(TOO_LARGE, 0)
    return PairCensus(
        product=len(structures) * (len(structures) - 1) // 2,
        refused=refused,
        too_large=too_large,
        proposed=len(pairs),
        distinct=_distinct_pairs(part, space),
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


def _distinct(points: Sequence[Point], space: SearchSpace) -> int:
    """Different canonical forms; activations make each of them so many."""
    structures = StructureIndex(points, space.shape, _with_one_activation(space.options))
    return sum(_functions(((point,) for point in structures), space).values())


def _distinct_pairs(part: str, space: SearchSpace) -> int:
    """The same for pairs: as many as there are, where no two structures of one edit are one function."""
    pairs, tree = space.pairs[part], space.trees[part]
    if _distinct(tree.points, space) == len(space.structures[part]):
        return len(pairs)
    some = pairs.of(StructureIndex(tree.points, space.shape, _with_one_activation(space.options)))
    return sum(_functions(some, space).values())


def _functions(structures: Iterable[Structure], space: SearchSpace) -> dict[tuple[Edit, ...], int]:
    """The canonical form of every structure, and how many activations it can have."""
    number = len(space.options.activations)
    forms: dict[tuple[Edit, ...], int] = {}
    for structure in structures:
        edits = tuple(edit for point in structure for edit in point.edits)
        form = canonical(Configuration(edits=edits), space.shape)
        forms[form.edits] = prod(number for point in structure if point.leaves_open("activation"))
    return forms


def _with_one_activation(options: SpaceOptions) -> SpaceOptions:
    return replace(options, activations=options.activations[:1])
