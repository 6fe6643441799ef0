"""Planted true score over the real search space, from random effects of a task's seed.

The gain of a side over the task head alone is a sum of effects of its dimensions. It is scaled by the fourth root of
the side's share of the budget. The means of the effects follow He et al. 2022 (parallel before sequential, the FFN
before attention, scaling, heads). The learning rate costs a quadratic, whose optimum is drawn per functional form;
rates beyond an edge collapse to a constant prediction. The sum of the gains of two sides saturates. Every structure,
and every pair of structures, has a random effect of its own: the ruggedness.

All numbers are percentage points.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist, fmean

from search_space.configuration import Configuration
from search_space.edit import Edit
from search_space.parameter_counts.counts import count_edits
from search_space.space.random_draw import RandomTrial
from search_space.space.space import Candidate, SearchSpace
from search_space.words.describe import SideView, side_view
from studies.search.initial_design import InitialDesign

HEAD_ALONE = 41.0
"""Score of the task head alone on docstrings."""

COLLAPSED = 18.0
"""Score of a constant prediction."""

_FLAT = 46.0
"""True score of all configurations where none is better."""

_SIDE = {"attention": 3.4, "ffn": 3.9}
_SATURATION = 14.0
_RATE_COST = 3.0
"""Points lost by a rate that is half of its logarithmic range away from the optimum."""

_BEST_RATE = 0.4
"""Mean position of the best rate in its range, -1 to 1; on docstrings it was in the upper half."""

_DIRECTIONS = {
    ("form", "softmax_memory"): 0.1,
    ("form", "bottleneck"): 0.2,
    ("form", "lowrank"): 0.4,
    ("form", "diag"): -0.8,
    ("form", "const"): -1.2,
    ("insertion", "parallel"): 0.3,
    ("insertion", "sequential"): -0.3,
    ("gate", "add"): -0.2,
    ("gate", "scale"): 0.3,
    ("gate", "scale_learned"): 0.2,
    ("heads", "single"): -0.1,
    ("heads", "query_heads"): 0.1,
}
"""Means of the effects, after He et al. 2022; 0 for others."""

_SPREADS = {
    "form": 0.9,
    "write": 0.8,
    "read": 0.4,
    "insertion": 0.3,
    "gate": 0.45,
    "heads": 0.3,
    "activation": 0.25,
    "scale": 0.35,
}
"""Standard deviation of the effects of a dimension over tasks."""

_RUGGEDNESS = 0.4
"""Standard deviation of the effect of a structure or a pair itself, in points."""

_NORMAL = NormalDist()


def draw_normal(*parts: object, mean: float = 0.0, spread: float = 1.0) -> float:
    """Draw a normal number that depends on the parts alone, equal in every process."""
    digest = hashlib.blake2b("/".join(map(str, parts)).encode(), digest_size=8).digest()
    uniform = (int.from_bytes(digest, "big") + 0.5) / 2**64
    return mean + spread * _NORMAL.inv_cdf(uniform)


@dataclass(frozen=True, slots=True)
class RateResponse:
    """Response of a functional form to its learning rate; the range of rates is -1 to 1.

    Attributes:
        best: Best rate.
        edge: Rate above which training collapses.
    """

    best: float
    edge: float

    def cost(self, z: float) -> float:
        """Return the points lost at a rate."""
        return _RATE_COST * (z - self.best) ** 2


class PlantedTruth:
    """True score of every configuration of a space on one simulated task.

    Args:
        seed: Seed of the task.
    """

    def __init__(self, space: SearchSpace, seed: int) -> None:
        """Store the seed; effects are drawn when they are needed."""
        self.space = space
        self.seed = seed
        self._gain = lru_cache(maxsize=None)(self._structure_gain)

    def score(self, candidate: Candidate) -> float:
        """Return the true score of a proposal at full length."""
        configuration = candidate.configuration
        rates = candidate.attention_learning_rate, candidate.ffn_learning_rate
        zs = [
            0.0 if rate is None else self._z(edits, rate)
            for edits, rate in zip((configuration.attention, configuration.ffn), rates, strict=True)
        ]
        return self.at(configuration, zs)

    def tuned(self, configuration: Configuration) -> float:
        """Return the true score of a configuration at the best rates."""
        sides = configuration.attention, configuration.ffn
        return self.at(configuration, [self.rates(edits[0].form.name).best if edits else 0.0 for edits in sides])

    def best_published(self) -> float:
        """Return the true score of the best published method of the space at its best rates."""
        names = self.space.published_that_fit()
        candidates = [self.space.suggest_published(name, RandomTrial(0)) for name in names]
        return max(self.tuned(candidate.configuration) for candidate in candidates)

    def published_as_tried(self, initial_design: InitialDesign) -> list[float]:
        """Return the true scores of the published methods at the rates that studies try first."""
        given = initial_design.rates(self.space.options.learning_rates)
        return [self.score(self.space.suggest_published(name, given)) for name in self.space.published_that_fit()]

    def rates(self, form: str) -> RateResponse:
        """Return the response of a form to its rate."""
        best = min(max(self._draw_normal("rate", form, mean=_BEST_RATE, spread=0.35), -0.4), 0.9)
        edge = max(self._draw_normal("edge", form, mean=1.05, spread=0.1), best + 0.1)
        return RateResponse(best=best, edge=edge)

    def _draw_normal(self, *parts: object, mean: float = 0.0, spread: float = 1.0) -> float:
        """Draw a normal number of the task."""
        return draw_normal(self.seed, *parts, mean=mean, spread=spread)

    def at(self, configuration: Configuration, zs: Sequence[float]) -> float:
        """Return the true score of a configuration at relative rates of both sides; a side without edits needs none."""
        gains, keys = [], []
        for side, edits, z in zip(_SIDE, (configuration.attention, configuration.ffn), zs, strict=True):
            if not edits:
                continue
            rates = self.rates(edits[0].form.name)
            if z > rates.edge:
                return COLLAPSED
            gain, key = self._gain(side, edits)
            gains.append(gain - rates.cost(z))
            keys.append(key)
        pair = self._draw_normal("pair", *keys, spread=_RUGGEDNESS) if len(keys) > 1 else 0.0
        return HEAD_ALONE + _saturated(sum(gains)) + pair

    def _structure_gain(self, side: str, edits: tuple[Edit, ...]) -> tuple[float, str]:
        """Return the gain of a side at its best rate, and a key of its structure."""
        view = side_view(edits)
        if view is None:
            return 0.0, ""
        effects = sum(self._effect(side, name, value) for name, value in _dimensions(view))
        key = f"{side} {'/'.join(f'{name}={value}' for name, value in _dimensions(view))} {view.variant} {view.layers}"
        own = self._draw_normal("structure", key, spread=_RUGGEDNESS)
        share = count_edits(edits, self.space.shape).stored / self.space.budget
        return _of_share(_SIDE[side] + effects + own, share), key

    def _effect(self, side: str, dimension: str, value: str) -> float:
        """Return the effect of a value at a side; of values joined by ``+`` (tensors written together) the mean."""
        words = value.split("+")
        spread = _SPREADS[dimension]
        return fmean(
            self._draw_normal(
                side,
                dimension,
                word,
                mean=_DIRECTIONS.get((dimension, word), 0.0),
                spread=spread,
            )
            for word in words
        )

    def _z(self, edits: Sequence[Edit], rate: float) -> float:
        low, high = map(math.log, self.space.peak_lr_range(edits))
        return 0.0 if high == low else 2 * (math.log(rate) - low) / (high - low) - 1


class FlatTruth(PlantedTruth):
    """Task on which all configurations have one true score."""

    def at(self, configuration: Configuration, zs: Sequence[float]) -> float:
        """Return the true score of any configuration."""
        return _FLAT


def _of_share(gain: float, share: float) -> float:
    """Return the gain at a share of the budget; a loss does not shrink."""
    return gain * min(1.0, share) ** 0.25 if gain > 0 else gain


def _dimensions(view: SideView) -> list[tuple[str, str]]:
    """Return the dimensions of a side that have effects, with their values."""
    named = [(name, getattr(view, name)) for name in _SPREADS]
    return [(name, str(value)) for name, value in named if value is not None]


def _saturated(gain: float) -> float:
    return _SATURATION * (1 - math.exp(-gain / _SATURATION)) if gain > 0 else gain
