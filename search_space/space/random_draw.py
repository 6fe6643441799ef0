"""Random proposals without a sampler."""

import math
import random
from collections.abc import Sequence


class RandomTrial:
    """Trial that suggests uniform draws, on a logarithmic scale for such parameters.

    Args:
        seed: Seed of the generator.
    """

    def __init__(self, seed: int) -> None:
        """Create the generator."""
        self._draw = random.Random(seed)

    def suggest_categorical(self, name: str, choices: Sequence[str]) -> str:
        """Draw one of the choices."""
        return self._draw.choice(list(choices))

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        """Draw a number in [low, high]."""
        if not log:
            return self._draw.uniform(low, high)
        return min(max(math.exp(self._draw.uniform(math.log(low), math.log(high))), low), high)
