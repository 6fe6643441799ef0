"""Small covers of the legal part of the product of all dimensions, for tests that cannot go through all of it."""

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.dimensions import Activation, ScalePer, Site
from search_space.edit import Edit
from search_space.errors import InvalidEditError
from search_space.forms import FORMS, Init, OwnNorm
from search_space.gates import GATES
from search_space.space.options import SEARCHED_FORMS
from search_space.space.product import BIASES, DecisionPath, DimensionValues, Point, by_text, families

_SAMPLES = 30
_GATE_FIELDS = {"scale_per": tuple(ScalePer), "key_widths": (None, 2)}
_INNER_GATES = tuple(gate for gate in GATES.values() if gate.outside_site is None)

EVERYTHING: DimensionValues = {
    "form": {name: FORMS[name] for name in SEARCHED_FORMS},
    "activation": by_text(tuple(Activation)),
    "norm": by_text(tuple(OwnNorm)),
    "bias": {text: BIASES[text] for text in ("with", "without")},
    "init": by_text(tuple(Init)),
    "reparameterization": by_text((None, 5)),
    "products": by_text((4,)),
    "factors": by_text((1, None), none="full"),
    "sharing": {"shared": True, "own": False},
    "gate": {gate.qualified_name: gate for kind in _INNER_GATES for gate in kind.variants(_GATE_FIELDS)},
}
"""Values of all dimensions but ports and heads; sizes that are not solved by a budget have small ones."""

Texts = Mapping[str, Sequence[str]]
Pair = tuple[tuple[str, str], tuple[str, str]]


def values_of(texts: Texts) -> DimensionValues:
    """Return the values with these texts."""
    return {name: {text: EVERYTHING[name][text] for text in some} for name, some in texts.items()}


def every_element(
    site: Site, shape: BackboneShape, texts: Texts
) -> Iterator[tuple[DecisionPath, tuple[Edit, ...] | InvalidEditError]]:
    """Yield every element of the product at a site, restricted to these values: its edits, or the error that refuses
    it.
    """
    for family in families(site, {**EVERYTHING, **values_of(texts)}):
        for path, chosen in family.elements():
            try:
                yield path, family.edits(chosen, shape)
            except InvalidEditError as error:
                yield path, error.with_traceback(None)


def legal(site: Site, shape: BackboneShape, texts: Texts | None = None) -> tuple[Point, ...]:
    """Return the legal points."""
    return _legal(site, shape, tuple((texts or {}).items()))


@cache
def _legal(site: Site, shape: BackboneShape, texts: tuple[tuple[str, Sequence[str]], ...]) -> tuple[Point, ...]:
    found: list[Point] = []
    for family in families(site, {**EVERYTHING, **values_of(dict(texts))}):
        activations = family.values.get("activation", {}).values()
        for point in family.with_one_activation().points(shape):
            found += [point.with_value("activation", one) for one in activations] if activations else [point]
    return tuple(found)


class _Pairs:
    """The pairs of values of some points, numbered; those that occur least come first."""

    def __init__(self, points: Sequence[Point]) -> None:
        named = [list(pairs(point)) for point in points]
        having: dict[Pair, list[int]] = {}
        for index, found in enumerate(named):
            for pair in found:
                having.setdefault(pair, []).append(index)
        order = sorted(having, key=lambda pair: (len(having[pair]), pair))
        numbers = {pair: number for number, pair in enumerate(order)}
        self.points = points
        self.having = [having[pair] for pair in order]
        self.of = [[numbers[pair] for pair in found] for found in named]

    def cover(self, draw: random.Random) -> tuple[Point, ...]:
        missing = dict.fromkeys(range(len(self.having)))
        cover = []
        while missing:
            having_first = self.having[next(iter(missing))]
            some = draw.sample(having_first, min(_SAMPLES, len(having_first)))
            best = max(some, key=lambda index: sum(pair in missing for pair in self.of[index]))
            cover.append(self.points[best])
            for pair in self.of[best]:
                missing.pop(pair, None)
        return tuple(cover)


def pairs(point: Point) -> Iterator[Pair]:
    """Yield every pair of decisions of a point."""
    return combinations(sorted(point.path), 2)


def covering_configurations(shape: BackboneShape, number: int, *, seed: int = 0) -> tuple[Configuration, ...]:
    """Return configurations with an edit at each kind of sublayer of the backbone, from pairwise covers of each.

    Args:
        shape: The backbone.
        number: Least number of different configurations; whole covers are used, each drawn anew.
        seed: Seed of the covers and of their combination.
    """
    kinds = (Site.ENCODER_SELF, Site.DECODER_SELF, Site.CROSS, Site.FFN)
    found_pairs = [_Pairs(legal(site, shape)) for site in kinds if shape.sublayers(site)]
    draw = random.Random(seed)
    found: dict[Configuration, None] = {}
    while len(found) < number:
        covers = [list(some.cover(draw)) for some in found_pairs]
        for cover in covers:
            draw.shuffle(cover)
        for index in range(max(map(len, covers))):
            edits = (edit for cover in covers for edit in cover[index % len(cover)].edits)
            found[Configuration(edits=tuple(edits))] = None
    return tuple(found)
