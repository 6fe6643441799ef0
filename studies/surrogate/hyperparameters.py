"""Hyper-parameters of the surrogate with weakly informative log-normal priors."""

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
    "loss.example_noise": (0.0, 0.5),
    "trend.rate": (0.6, 0.5),
    "trend.papers": (0.3, 0.5),
}
"""Median, and deviation of the logarithm. Amplitudes are in units of the spread of scores at a rung.

The medians are about the most probable values for 188 trials on docstrings (embedded backbone, budget 0.5%).
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
    "loss.example_noise": (0.5, 0.5),
    "trend.rate": (0.42, 0.5),
    "pace": (0.4, 0.5),
}
"""Priors under which held-out trials of docstrings, sst2 and banking77 are predicted better.

A loss shares example noise with its score, and some trials learn sooner than others without ending higher.
"""

NAMES: tuple[str, ...] = tuple(_ANALYSIS)
_AT = {name: index for index, name in enumerate(NAMES)}
WEIGHTS = slice(_AT["weight.form"], _AT["weight.form"] + len(DIMENSIONS))
TRENDS = slice(_AT["trend.rate"], _AT["trend.papers"] + 1)
_SIGNAL = [_AT[name] for name in ("level", "attention", "ffn", "pair", "trend.rate", "trend.papers")]

_FIXED_AT_ZERO = -800.0
"""Logarithm of a hyper-parameter fixed at 0; its exponential is 0."""


@dataclass(frozen=True)
class Priors:
    """Log-normal priors of the hyper-parameters.

    Attributes:
        by_name: Median, and deviation of the logarithm, by name; a median of 0 fixes the hyper-parameter at 0.
    """

    by_name: Mapping[str, tuple[float, float]]

    @cached_property
    def centres(self) -> Array:
        """Logarithms of the medians, in the order of `NAMES`."""
        return np.array([math.log(median) if median else _FIXED_AT_ZERO for median, _ in self.by_name.values()])

    @cached_property
    def deviations(self) -> Array:
        """Standard deviations of the logarithms."""
        return np.array([deviation for _, deviation in self.by_name.values()])

    @cached_property
    def medians(self) -> "Hyperparameters":
        """Hyper-parameters at the medians."""
        return Hyperparameters(self.centres.copy())

    def logarithms(self, widest: float) -> list[tuple[float, float]]:
        """Return the bounds of each logarithm, ``widest`` deviations from its median; fixed ones stay fixed."""
        reach = widest * self.deviations * (self.centres > _FIXED_AT_ZERO)
        return list(zip(self.centres - reach, self.centres + reach, strict=True))


SEARCH_PRIORS = Priors(_SEARCH)
"""Priors of the model for proposals and estimates."""

ANALYSIS_PRIORS = Priors(_ANALYSIS)
"""Priors of the model for the importance of choices; its answers were validated with them."""


@dataclass(frozen=True, slots=True)
class Hyperparameters:
    """Amplitudes, weights of dimensions and length scales, stored as logarithms.

    Attributes:
        logarithms: Logarithms in the order of ``NAMES``.
    """

    logarithms: Array

    def __getitem__(self, name: str) -> float:
        """Return the value of a hyper-parameter."""
        return math.exp(self.logarithms[_AT[name]])

    @property
    def weights(self) -> Array:
        """Weights of the dimensions, in the order of ``DIMENSIONS``."""
        return np.exp(self.logarithms[WEIGHTS])

    @property
    def trends(self) -> Array:
        """Weights of the prior trends."""
        return np.exp(self.logarithms[TRENDS])

    def with_amplitudes(self, *, signal: float, trial: float) -> "Hyperparameters":
        """Return the same with other amplitudes.

        Args:
            signal: Factor of the amplitudes of the score's function and of its trends.
            trial: Standard deviation of a trial's own deviation, in spreads.
        """
        logarithms = self.logarithms.copy()
        logarithms[_SIGNAL] += math.log(signal)
        logarithms[_AT["trial"]] = math.log(trial)
        return Hyperparameters(logarithms)


def index_of(name: str) -> int:
    """Return the index of a hyper-parameter among the logarithms."""
    return _AT[name]
