"""The hyper-parameters of the model with their priors: log-normal, weak."""

import math
from dataclasses import dataclass

import numpy as np

from studies.search.factored.distances import DIMENSIONS, Array

_PRIORS: dict[str, tuple[float, float]] = {
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
    "loss.gain": (1.0, 0.3),
    "loss.own": (0.3, 0.7),
    "loss.nugget": (0.2, 0.7),
    "trend.rate": (0.6, 0.5),
    "trend.papers": (0.3, 0.5),
}
"""Median and deviation of the logarithm. Amplitudes are of scores in units of their spread at a rung.

The medians are about what 188 trials on docstrings (the embedded backbone, half a percent) have as most probable.
"""

NAMES: tuple[str, ...] = tuple(_PRIORS)
CENTRES: Array = np.array([math.log(median) for median, _ in _PRIORS.values()])
DEVIATIONS: Array = np.array([deviation for _, deviation in _PRIORS.values()])
_AT = {name: index for index, name in enumerate(NAMES)}
WEIGHTS = slice(_AT["weight.form"], _AT["weight.form"] + len(DIMENSIONS))
TRENDS = slice(_AT["trend.rate"], _AT["trend.papers"] + 1)


@dataclass(frozen=True, slots=True)
class Hyperparameters:
    """Amplitudes, weights of dimensions and lengths, as their logarithms.

    Attributes:
        logarithms: In the order of ``NAMES``.
    """

    logarithms: Array

    @classmethod
    def usual(cls) -> "Hyperparameters":
        """The medians of the priors."""
        return cls(CENTRES.copy())

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
