"""Matched contrasts: the same configuration, but for one thing.

A contrast is asked as a mean over pairs of configurations of the uniform measure: of every draw that has one of the
two values, and the one that has the other and is the same else. Both are at the rates that promise most for their forms
and use the same budget.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from studies.queries.discover.measure import SIDES, Measure, with_side
from studies.search.factored.genes import Genes

REST = "any other"
"""Stands for all other values of a dimension."""

LEAST = 12
"""Pairs below which a contrast is not asked: the space has hardly any."""

MOST = 60
"""Pairs that are asked; more make no difference to the mean."""

_AGAINST_REST = ("write",)
_MOST_VALUES = 12


@dataclass(frozen=True, slots=True)
class Contrast:
    """What is compared with what.

    Attributes:
        side: ``attention``, ``ffn``, or ``sides`` for which of them are edited.
        dimension: Of the side.
        value: What is better where the effect is above 0.
        other: What it is compared with.
    """

    side: str
    dimension: str
    value: str
    other: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Configurations that are the same but for what a contrast compares.

    Attributes:
        having: Those with its value.
        lacking: Those with the other, in the same order.
        support: Share of the draws of the space that are one of a pair.
    """

    having: tuple[Genes, ...]
    lacking: tuple[Genes, ...]
    support: float

    def __len__(self) -> int:
        """How many."""
        return len(self.having)


def contrasts(measure: Measure) -> list[Contrast]:
    """All that a space can compare: two values of a dimension, or one tensor that is written with all others."""
    found = [
        Contrast(side, dimension, *values)
        for side in SIDES
        if side in measure.parts
        for dimension in ("insertion", "gate", "heads", "form", "scale", "activation")
        for values in combinations(_ordered(dimension, measure.values(side, dimension))[:_MOST_VALUES], 2)
    ]
    found += [
        Contrast(side, dimension, value, REST)
        for side in SIDES
        if side in measure.parts
        for dimension in _AGAINST_REST
        for value in measure.values(side, dimension)
        if len(measure.values(side, dimension)) > 1
    ]
    if len(measure.parts) > 1:
        found += [
            Contrast("sides", "edited", "ffn", "attention"),
            Contrast("sides", "edited", "both", "attention"),
            Contrast("sides", "edited", "both", "ffn"),
        ]
    return found


_FIRST = ("parallel", "scale", "scale_learned", "lse_convex", "query_heads", "key_value_heads")
_LAST = ("sequential", "single", "add")


def _ordered(dimension: str, values: Sequence[str]) -> list[str]:
    """Values so that a contrast reads as the papers' rules do: parallel against sequential, scaled against plain."""
    if dimension == "scale":
        return sorted(values, key=float, reverse=True)

    def place(value: str) -> tuple[int, int, str]:
        first = _FIRST.index(value) if value in _FIRST else len(_FIRST)
        return (2 if value in _LAST else 1 if value not in _FIRST else 0, first, value)

    return sorted(values, key=place)


def pairs(measure: Measure, contrast: Contrast) -> Pairs:
    """What is compared, at most `MOST` pairs; there may be none."""
    found = [*(_of_sides if contrast.side == "sides" else _of_values)(measure, contrast)]
    some = found[:MOST]
    return Pairs(
        having=tuple(one for one, _ in some),
        lacking=tuple(other for _, other in some),
        support=len(found) / len(measure.draws),
    )


def _of_values(measure: Measure, contrast: Contrast) -> Iterator[tuple[Genes, Genes]]:
    draw = measure.generator(contrast.side, contrast.dimension, contrast.value, contrast.other)
    for genes in measure.draws:
        own = measure.value(genes, contrast.side, contrast.dimension)
        if own is None:
            continue
        others = measure.others(genes, contrast.side, contrast.dimension)
        if own == contrast.value:
            wanted = sorted(others) if contrast.other == REST else [contrast.other]
        elif contrast.other in (REST, own):
            wanted = [contrast.value]
        else:
            continue
        known = [value for value in wanted if others.get(value)]
        if known:
            other = draw.choice(others[draw.choice(known)])
            yield (genes, other) if own == contrast.value else (other, genes)


def _of_sides(measure: Measure, contrast: Contrast) -> Iterator[tuple[Genes, Genes]]:
    """A configuration of both sides, and each of its sides with the whole budget."""
    for genes in measure.draws:
        if genes.attention is None or genes.ffn is None:
            continue
        if not all(measure.genome.facts(side.structure).is_sized for side in genes.sides):
            continue
        known = {
            "both": genes,
            "attention": with_side(genes, "ffn", None),
            "ffn": with_side(genes, "attention", None),
        }
        if measure.genome.is_placed(known[contrast.value]) and measure.genome.is_placed(known[contrast.other]):
            yield known[contrast.value], known[contrast.other]
