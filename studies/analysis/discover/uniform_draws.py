"""Uniform measure of a space: draws of configurations, and variants of them that differ in one dimension.

General statements on a space are means over these draws. They depend on the space alone, so configurations that the
sampler favoured have no more weight.
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from search_space.space.points import FFN
from search_space.space.product import Point
from search_space.words.describe import side_view
from studies.seeds import hashed_seed
from studies.surrogate.encoded_configuration import EncodedConfiguration
from studies.surrogate.encoding import Encoding
from studies.surrogate.random_candidates import RandomCandidates

DRAWS = 600

_TRAITS: tuple[str, ...] = ("form", "write", "read", "insertion", "gate", "heads", "activation", "scale", "variant")

_FOLLOWS: Mapping[str, tuple[str, ...]] = {
    "form": ("read", "heads", "variant"),
    "write": ("read", "heads", "variant"),
    "insertion": ("read",),
    "gate": ("variant",),
    "heads": ("write", "read"),
}
"""Dimensions that may have to change with another: a sequential edit of another tensor also reads another one."""


class PartTraits:
    """Design dimensions of the structures of one part of the model, by their names in tables.

    Args:
        points: Structures by number.
    """

    def __init__(self, points: Sequence[Point]) -> None:
        """Read every structure; a missing trait is an empty text."""
        views = [side_view(point.edits) for point in points]
        traits = [[getattr(view, name) for name in _TRAITS] for view in views]
        self._texts = np.array([["" if one is None else str(one) for one in some] for some in traits])
        self._codes = np.stack([np.unique(column, return_inverse=True)[1] for column in self._texts.T], axis=1)
        self._has = self._texts != ""

    def of(self, number: int, dimension: str) -> str:
        """Return the value of a dimension; empty if the structure has none."""
        return str(self._texts[number, _TRAITS.index(dimension)])

    def values(self, dimension: str) -> tuple[str, ...]:
        """Return all values of a dimension, the most frequent first."""
        counted = Counter(filter(None, self._texts[:, _TRAITS.index(dimension)].tolist()))
        return tuple(sorted(counted, key=lambda value: (-counted[value], value)))

    def matches(self, number: int, dimension: str) -> Mapping[str, tuple[int, ...]]:
        """Return the structures that differ in one dimension and its dependent traits alone, by its value.

        A trait of one structure alone, such as an activation, is no difference. Of several structures those that
        differ least are returned.
        """
        column = _TRAITS.index(dimension)
        differs, both = self._codes != self._codes[number], self._has & self._has[number]
        bound = [at for at, name in enumerate(_TRAITS) if name not in (dimension, *_FOLLOWS.get(dimension, ()))]
        is_match = (differs & both)[:, column] & ~(differs & both)[:, bound].any(axis=1)
        found: dict[str, tuple[int, ...]] = {}
        for text in np.unique(self._texts[is_match, column]):
            some = np.flatnonzero(is_match & (self._texts[:, column] == text))
            differences = differs[some].sum(axis=1)
            found[str(text)] = tuple(some[differences == differences.min()].tolist())
        return found


class UniformDraws:
    """Draws of a space.

    Args:
        encoding: Encoding of the space.
        seed: Seed of the draws.
    """

    def __init__(self, encoding: Encoding, seed: int) -> None:
        """Start without draws."""
        self.encoding = encoding
        self._seed = seed

    @cached_property
    def draws(self) -> tuple[EncodedConfiguration, ...]:
        """Draws uniform over sides, forms and structures; shares and learning rates are uniform in their ranges.

        A space of published methods alone has none.
        """
        if not self.encoding.parts:
            return ()
        random_candidates, draw = RandomCandidates(self.encoding), self.generator("draws")
        return tuple(random_candidates.draw(draw) for _ in range(DRAWS))

    @cached_property
    def traits(self) -> Mapping[str, PartTraits]:
        """Traits of the structures of every part."""
        return {name: PartTraits(part.points) for name, part in self.encoding.parts.items()}

    @cached_property
    def parts(self) -> Mapping[str, tuple[str, ...]]:
        """Parts of each searched side."""
        names = tuple(self.encoding.parts)
        found = {"attention": tuple(name for name in names if name != FFN), "ffn": (FFN,) if FFN in names else ()}
        return {side: parts for side, parts in found.items() if parts}

    def generator(self, *words: object) -> random.Random:
        """Return a random generator for one purpose."""
        return random.Random(hashed_seed("discover", self._seed, *words, bits=64))

    def value(self, encoded: EncodedConfiguration, side: str, dimension: str) -> str:
        """Return the common value of all parts of an edited side; empty if there is none."""
        values = {self.traits[part].of(number, dimension) for part, number in encoded.by_name[side].parts}
        return values.pop() if len(values) == 1 else ""

    def values(self, side: str, dimension: str) -> tuple[str, ...]:
        """Return all values of a dimension at a side, the most frequent first."""
        return tuple(dict.fromkeys(one for part in self.parts[side] for one in self.traits[part].values(dimension)))

    def others(self, encoded: EncodedConfiguration, side: str, dimension: str) -> dict[str, list[EncodedConfiguration]]:
        """Return the otherwise equal configurations by other value of a dimension at an edited side.

        Only sides with one edit at each part are changed, all parts alike.
        """
        own = encoded.by_name[side]
        if len({part for part, _ in own.parts}) < len(own.parts):
            return {}
        matches = [self.traits[part].matches(number, dimension) for part, number in own.parts]
        common = [value for value in matches[0] if all(value in match for match in matches[1:])]
        found: dict[str, list[EncodedConfiguration]] = {}
        for value in common:
            numbers = [match[value] for match in matches]
            for place in range(max(map(len, numbers))):
                chosen = (some[place % len(some)] for some in numbers)
                parts = tuple((part, number) for (part, _), number in zip(own.parts, chosen, strict=True))
                found.setdefault(value, []).append(encoded.with_side(side, replace(own, parts=parts)))
        return found
