"""Proposals without a sampler: at random, or as given."""

import math
import random
from collections.abc import Mapping, Sequence


class RandomTrial:
    """Suggests what a generator draws; numbers on a logarithmic scale uniformly on that scale.

    Args:
        seed: Of the generator.
    """

    def __init__(self, seed: int) -> None:
        """Seed the generator."""
        self._draw = random.Random(seed)

    def suggest_categorical(self, name: str, choices: Sequence[str]) -> str:
        """One of the choices."""
        return self._draw.choice(list(choices))

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        """A number in [low, high]."""
        if not log:
            return self._draw.uniform(low, high)
        return min(max(math.exp(self._draw.uniform(math.log(low), math.log(high))), low), high)


class GivenTrial:
    """Suggests what it was given.

    Args:
        values: Of every parameter that will be asked for, by name.
    """

    def __init__(self, values: Mapping[str, str | float]) -> None:
        """Keep the values."""
        self._values = values

    def says(self, name: str) -> bool:
        """Whether it was given a value of that name."""
        return name in self._values

    def suggest_categorical(self, name: str, choices: Sequence[str]) -> str:
        """The choice that was given."""
        return str(self._values[name])

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        """The number that was given."""
        return float(self._values[name])
