"""Mixture of Gaussian processes over two amplitudes that few trials leave uncertain: the signal and the seeds' noise.

The fitted amplitudes are the most probable ones. With few trials, and where seeds differ much, others are nearly as
probable. Estimates from the fitted ones alone are too sure, and too high for the best of many trials. So the amplitudes
are integrated over a grid, in which each point is weighted by the likelihood of the readings.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import Self

import numpy as np

from studies.surrogate.gaussian_process import GaussianProcess, Readings
from studies.surrogate.hyperparameters import Hyperparameters
from studies.surrogate.kernel import Points
from studies.surrogate.structure_distances import Array, StructureDistances

LARGEST_INTEGRATED = 64
"""Number of trials up to which the amplitudes are integrated; more determine them."""

_SIGNALS = (0.1, 0.3, 0.6, 1.0, 1.5)
"""Factors of the fitted amplitudes and trends of the signal."""

_TRIALS = (0.1, 0.3, 0.6, 1.0, 1.6)
"""Standard deviations of a trial's own deviation, in spreads."""

_LEAST_WEIGHT = 1e-3


@dataclass(frozen=True, slots=True)
class ProcessMixture:
    """Posterior of the scores of configurations at full length, over several hyper-parameters.

    Attributes:
        weights: Weights of the processes, (K,); they sum to 1.
        processes: Gaussian processes of the same readings.
    """

    weights: Array
    processes: Sequence[GaussianProcess]

    @classmethod
    def of(cls, readings: Readings, structures: StructureDistances, fitted: Hyperparameters) -> Self:
        """Return the mixture around fitted hyper-parameters; these alone with many trials.

        Args:
            readings: Standardized readings.
            structures: Distances between structures.
            fitted: Hyper-parameters of the highest posterior density.
        """
        if len(np.unique(readings.trials)) > LARGEST_INTEGRATED:
            return cls(np.ones(1), [GaussianProcess(readings, structures, fitted)])
        points = [fitted.with_amplitudes(signal=signal, trial=trial) for signal, trial in product(_SIGNALS, _TRIALS)]
        processes = []
        for values in points:
            with suppress(np.linalg.LinAlgError):  # no density
                processes.append(GaussianProcess(readings, structures, values))
        if not processes:
            return cls(np.ones(1), [GaussianProcess(readings, structures, fitted)])
        likelihoods = np.array([process.log_likelihood for process in processes])
        weights = np.exp(likelihoods - likelihoods.max())
        weights[weights < _LEAST_WEIGHT * weights.sum()] = 0.0
        kept = np.flatnonzero(weights)
        return cls(weights[kept] / weights.sum(), [processes[place] for place in kept])

    def mean(self, points: Points) -> Array:
        """Return posterior means, (M,)."""
        return np.asarray(self.weights @ self._of_each(lambda process: process.mean(points)))

    def predict(self, points: Points) -> tuple[Array, Array]:
        """Return posterior means and standard deviations, (M,) each."""
        means, deviations = np.moveaxis(self._of_each(lambda process: np.stack(process.predict(points))), 1, 0)
        mean = self.weights @ means
        return mean, np.sqrt(self.weights @ (deviations**2 + (means - mean) ** 2))

    def joint(self, points: Points) -> tuple[Array, Array]:
        """Return posterior means and covariance, (M,) and (M, M)."""
        pairs = [process.joint(points) for process in self.processes]
        means = np.stack([means for means, _ in pairs])
        mean = self.weights @ means
        within = np.tensordot(self.weights, np.stack([covariance for _, covariance in pairs]), axes=1)
        return mean, np.asarray(within + (means - mean).T @ (self.weights[:, None] * (means - mean)))

    def _of_each(self, value: Callable[[GaussianProcess], Array]) -> Array:
        """Return a value of every process, stacked."""
        return np.stack([value(process) for process in self.processes])
