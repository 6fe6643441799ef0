"""The hyper-parameters of the model with their priors: log-normal, weak."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from studies.surrogate.structure_distances import DIMENSIONS, Array

_ANALYSIS: Mapping[str, tuple[float, float]] = {
    "level": (0.5, 0.7),
    "attention": (0.65, 0.7),
    "ffn": (0.65, 0.7),
    "pair": (0.3, 0.7),
    "weight.form": (0.5, 0.8),
    "weight.write": (0.5, 0.8),
    "weight.read": (0.1, 0.8),
    "weight.insertion": (0.06, 0.8),
    "weight.heads": (0.06, 0.8),
    "weight.gate": (0.2, 0.8),
    "weight.activation": (0.05, 0.8),
    "weight.other": (0.15, 0.8),
    "weight.layers": (0.4, 0.8),
    "weight.scale": (0.05, 0.8),
    "length.rate": (1.0, 0.5),
    "length.size": (3.0, 0.5),
    "decay": (0.3, 0.7),
    "trial": (0.3, 0.7),
    "nugget": (0.2, 0.7),
    "pace": (0.0, 0.5),
    "loss.gain": (1.0, 0.3),
    "loss.own": (0.3, 0.7),
    "loss.nugget": (0.2, 0.7),
    "loss.luck": (0.0, 0.5),
    "trend.rate": (0.6, 0.5),
    "trend.papers": (0.3, 0.5),
}
"""Median and deviation of the logarithm. Amplitudes are of scores in units of their spread at a rung.

The medians are about what 188 trials on docstrings (the embedded backbone, half a percent) have as most probable.
"""

_SEARCH: Mapping[str, tuple[float, float]] = {
    **_ANALYSIS,
    **{
        name: (1.7 * median, 0.7 * deviation)
        for name, (median, deviation) in _ANALYSIS.items()
        if name.startswith("weight.")
    },
    "decay": (0.45, 0.7),
    "loss.own": (0.6, 0.7),
    "loss.luck": (0.5, 0.5),
    "trend.rate": (0.42, 0.5),
    "pace": (0.4, 0.5),
}
"""The same with what predicts held-out trials of docstrings, sst2 and banking77 better: a loss shares its luck with the
score that is read with it, and some trials learn sooner than others and come no further."""

NAMES: tuple[str, ...] = tuple(_ANALYSIS)
_AT = {name: index for index, name in enumerate(NAMES)}
WEIGHTS = slice(_AT["weight.form"], _AT["weight.form"] + len(DIMENSIONS))
TRENDS = slice(_AT["trend.rate"], _AT["trend.papers"] + 1)

_NOTHING = -800.0
"""Its exponential is 0: the logarithm of what a prior knows nothing of."""


@dataclass(frozen=True)
class Priors:
    """What is expected of the hyper-parameters before anything was read.

    Attributes:
        known: Median, and deviation of the logarithm, by name; what has a median of 0 is 0.
    """

    known: Mapping[str, tuple[float, float]]

    @cached_property
    def centres(self) -> Array:
        """Logarithms of the medians, in the order of `NAMES`."""
        return np.array([math.log(median) if median else _NOTHING for median, _ in self.known.values()])

    @cached_property
    def deviations(self) -> Array:
        """Standard deviations of the logarithms."""
        return np.array([deviation for _, deviation in self.known.values()])

    @cached_property
    def medians(self) -> "Hyperparameters":
        """The medians."""
        return Hyperparameters(self.centres.copy())

    def logarithms(self, widest: float) -> list[tuple[float, float]]:
        """Lowest and highest logarithms, so many deviations away; what is 0 stays 0."""
        reach = widest * self.deviations * (self.centres > _NOTHING)
        return list(zip(self.centres - reach, self.centres + reach, strict=True))


SEARCH_PRIORS = Priors(_SEARCH)
"""Of the model that proposes and estimates."""

ANALYSIS_PRIORS = Priors(_ANALYSIS)
"""Of the model that is asked what matters, whose answers were proved under them."""


@dataclass(frozen=True, slots=True)
class Hyperparameters:
    """Amplitudes, weights of dimensions and lengths, as their logarithms.

    Attributes:
        logarithms: In the order of ``NAMES``.
    """

    logarithms: Array

    def __getitem__(self, name: str) -> float:
        """The value of a name."""
        return math.exp(self.logarithms[_AT[name]])

    @property
    def weights(self) -> Array:
        """Of the dimensions, in the order of ``DIMENSIONS``."""
        return np.exp(self.logarithms[WEIGHTS])

    @property
    def trends(self) -> Array:
        """Weights of what is expected beforehand."""
        return np.exp(self.logarithms[TRENDS])


def place(name: str) -> int:
    """Where a hyper-parameter is among the logarithms."""
    return _AT[name]
