"""The uniform measure of a space: draws of its configurations, and what is the same as one of them but for one thing.

Everything that is said of a space in general is a mean over these draws. They are of the space alone, not of what the
sampler has tried, so what it favoured does not weigh more.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from search_space.space.points import FFN
from studies.analysis.discover.traits import PartTraits
from studies.seeds import hashed_seed
from studies.surrogate.encoded_configuration import EncodedConfiguration
from studies.surrogate.encoding import Encoding
from studies.surrogate.random_candidates import RandomCandidates

SIDES = ("attention", "ffn")
DRAWS = 600


class UniformDraws:
    """Draws of a space.

    Args:
        genome: Of the space.
        seed: Of the draws.
    """

    def __init__(self, genome: Encoding, seed: int) -> None:
        """Draw nothing yet."""
        self.genome = genome
        self._seed = seed

    @cached_property
    def draws(self) -> tuple[EncodedConfiguration, ...]:
        """Uniform over sides, forms and structures; shares and rates are uniform in their ranges."""
        drawer, draw = RandomCandidates(self.genome), self.generator("draws")
        return tuple(drawer.fresh(draw) for _ in range(DRAWS))

    @cached_property
    def traits(self) -> Mapping[str, PartTraits]:
        """Of the structures of every part."""
        return {name: PartTraits(part.points) for name, part in self.genome.parts.items()}

    @cached_property
    def parts(self) -> Mapping[str, tuple[str, ...]]:
        """The parts of each side that is searched."""
        names = tuple(self.genome.parts)
        found = {"attention": tuple(name for name in names if name != FFN), "ffn": (FFN,) if FFN in names else ()}
        return {side: parts for side, parts in found.items() if parts}

    def generator(self, *words: object) -> random.Random:
        """Random numbers for some use of their own."""
        return random.Random(hashed_seed("discover", self._seed, *words, bits=64))

    def value(self, genes: EncodedConfiguration, side: str, dimension: str) -> str | None:
        """The value that all parts of a side have; None without the side, or where its parts differ."""
        own = genes.side(side)
        if own is None:
            return None
        values = {self.traits[part].of(number, dimension) for part, number in own.parts}
        return values.pop() if len(values) == 1 else None

    def values(self, side: str, dimension: str) -> tuple[str, ...]:
        """All values of a dimension at a side, the most frequent first."""
        return tuple(dict.fromkeys(one for part in self.parts[side] for one in self.traits[part].values(dimension)))

    def others(self, genes: EncodedConfiguration, side: str, dimension: str) -> dict[str, list[EncodedConfiguration]]:
        """By other value of a dimension, the configurations that are the same but for it.

        Only sides with one edit at each part are changed, all parts alike.
        """
        own = genes.side(side)
        if own is None or len({part for part, _ in own.parts}) < len(own.parts):
            return {}
        matches = [self.traits[part].matches(number, dimension) for part, number in own.parts]
        common = [value for value in matches[0] if all(value in match for match in matches[1:])]
        return {value: self._with(genes, side, [match[value] for match in matches]) for value in common}

    def _with(
        self, genes: EncodedConfiguration, side: str, numbers: Sequence[tuple[int, ...]]
    ) -> list[EncodedConfiguration]:
        own = genes.side(side)
        if own is None:
            return []
        found = []
        for place in range(max(map(len, numbers))):
            chosen = (some[place % len(some)] for some in numbers)
            parts = tuple((part, number) for (part, _), number in zip(own.parts, chosen, strict=True))
            found.append(genes.with_side(side, replace(own, parts=parts)))
        return found
