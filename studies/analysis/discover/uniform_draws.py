"""The uniform measure of a space: draws of its configurations, and what is the same as one of them but for one thing.

Everything that is said of a space in general is a mean over these draws. They are of the space alone, not of what the
sampler has tried, so what it favoured does not weigh more.
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
"""What may change with a dimension, because it must: who writes another tensor in sequence reads another one, too."""


class PartTraits:
    """The design dimensions of the structures of one part of the model, as tables name them.

    Args:
        points: The structures by number.
    """

    def __init__(self, points: Sequence[Point]) -> None:
        """Read every structure; a trait that it has not is an empty text."""
        views = [side_view(point.edits) for point in points]
        traits = [[getattr(view, name) for name in _TRAITS] for view in views]
        self._texts = np.array([["" if one is None else str(one) for one in some] for some in traits])
        self._codes = np.stack([np.unique(column, return_inverse=True)[1] for column in self._texts.T], axis=1)
        self._has = self._texts != ""

    def of(self, number: int, dimension: str) -> str:
        """The value of a dimension; empty where a structure has none."""
        return str(self._texts[number, _TRAITS.index(dimension)])

    def values(self, dimension: str) -> tuple[str, ...]:
        """All values that some structure has, those of most structures first."""
        counted = Counter(filter(None, self._texts[:, _TRAITS.index(dimension)].tolist()))
        return tuple(sorted(counted, key=lambda value: (-counted[value], value)))

    def matches(self, number: int, dimension: str) -> Mapping[str, tuple[int, ...]]:
        """By other value of a dimension, the structures that are the same else, but for what must follow.

        What only one of two structures has, such as an activation, is no difference. Of several structures those that
        differ least are named.
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
        encoding: Of the space.
        seed: Of the draws.
    """

    def __init__(self, encoding: Encoding, seed: int) -> None:
        """Draw nothing yet."""
        self.encoding = encoding
        self._seed = seed

    @cached_property
    def draws(self) -> tuple[EncodedConfiguration, ...]:
        """Uniform over sides, forms and structures; shares and rates are uniform in their ranges."""
        random_candidates, draw = RandomCandidates(self.encoding), self.generator("draws")
        return tuple(random_candidates.draw(draw) for _ in range(DRAWS))

    @cached_property
    def traits(self) -> Mapping[str, PartTraits]:
        """Of the structures of every part."""
        return {name: PartTraits(part.points) for name, part in self.encoding.parts.items()}

    @cached_property
    def parts(self) -> Mapping[str, tuple[str, ...]]:
        """The parts of each side that is searched."""
        names = tuple(self.encoding.parts)
        found = {"attention": tuple(name for name in names if name != FFN), "ffn": (FFN,) if FFN in names else ()}
        return {side: parts for side, parts in found.items() if parts}

    def generator(self, *words: object) -> random.Random:
        """Random numbers for some use of their own."""
        return random.Random(hashed_seed("discover", self._seed, *words, bits=64))

    def value(self, encoded: EncodedConfiguration, side: str, dimension: str) -> str:
        """The value that all parts of an edited side have; empty where they have none, or differ."""
        values = {self.traits[part].of(number, dimension) for part, number in encoded.by_name[side].parts}
        return values.pop() if len(values) == 1 else ""

    def values(self, side: str, dimension: str) -> tuple[str, ...]:
        """All values of a dimension at a side, the most frequent first."""
        return tuple(dict.fromkeys(one for part in self.parts[side] for one in self.traits[part].values(dimension)))

    def others(self, encoded: EncodedConfiguration, side: str, dimension: str) -> dict[str, list[EncodedConfiguration]]:
        """By other value of a dimension at an edited side, the configurations that are the same but for it.

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
