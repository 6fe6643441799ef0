"""Learning rates of the task head, for searches that know nothing of them: near those that did well, or anywhere."""

import math
import random
from dataclasses import dataclass, field

from studies.search.seeds import hashed_seed

_ANYWHERE = 1 / 3
"""Share of the trials whose rate is drawn from the whole range."""
_NEAR = 0.35
"""Deviation of the natural logarithm of the others from that of a trial that did well."""
_WELL = 4
"""One trial of so many did well."""


@dataclass(slots=True, kw_only=True)
class HeadRates:
    """What was tried of the range, and how it ended; a rate is told by the trials that have ended and its number.

    Attributes:
        low: Least rate.
        high: Greatest rate.
        seed: Of the study.
    """

    low: float
    high: float
    seed: int
    _tried: dict[int, float] = field(default_factory=dict)
    _scores: dict[int, float] = field(default_factory=dict)

    def take(self, number: int, rate: float) -> None:
        """Know of a trial's rate."""
        self._tried[number] = rate

    def close(self, number: int, score: float) -> None:
        """Know of a trial's last score."""
        self._scores[number] = score

    def next(self, number: int) -> float:
        """The rate of a trial, by its number."""
        draw = random.Random(hashed_seed("head rate", self.seed, number))
        anywhere = math.exp(draw.uniform(math.log(self.low), math.log(self.high)))
        ranked = sorted(self._tried.keys() & self._scores.keys(), key=lambda one: (-self._scores[one], one))
        well = ranked[: len(ranked) // _WELL]
        is_near, aim, step = draw.random() >= _ANYWHERE, draw.random(), draw.gauss(0.0, _NEAR)
        rate = self._tried[well[int(aim * len(well))]] * math.exp(step) if well and is_near else anywhere
        return min(max(rate, self.low), self.high)
