"""Proposals without a sampler: at random."""

import math
import random
from collections.abc import Sequence


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
