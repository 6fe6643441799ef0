"""Mixture of Gaussian processes over two amplitudes that few trials leave uncertain: the signal and the seeds' noise.

The fitted amplitudes are the most probable ones. With few trials, and where seeds differ much, others are nearly as
probable. Estimates from the fitted ones alone are too sure, and too high for the best of many trials. So the amplitudes
are integrated over a grid, in which each point is weighted by the likelihood of the readings.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import Self

import numpy as np

from studies.surrogate.gaussian_process import GaussianProcess
from studies.surrogate.hyperparameters import Hyperparameters
from studies.surrogate.kernel import Points
from studies.surrogate.reading_arrays import Readings
from studies.surrogate.structure_distances import Array, StructureDistances

LARGEST_INTEGRATED = 256
"""Number of trials up to which the amplitudes are integrated; more determine them."""

_SIGNALS = (0.03, 0.1, 0.3, 0.6, 1.0, 1.5)
"""Factors of the fitted amplitudes and trends of the signal; under the least, configurations hardly differ."""

_TRIALS = (0.1, 0.3, 0.6, 1.0, 1.6)
"""Standard deviations of a trial's own deviation, in spreads."""

_LEAST_WEIGHT = 1e-3


@dataclass(frozen=True, slots=True)
class ProcessMixture:
    """Posterior of the scores of configurations at full length, over several hyper-parameters.

    Attributes:
        weights: Weights of the processes, (K,); they sum to 1.
        processes: Gaussian processes of the same readings.
        log_likelihood: Logarithm of the mean density of the readings over all processes, up to a constant.
    """

    weights: Array
    processes: Sequence[GaussianProcess]
    log_likelihood: float

    @classmethod
    def of(cls, readings: Readings, points: Points, structures: StructureDistances, fitted: Hyperparameters) -> Self:
        """Return the mixture around fitted hyper-parameters; these alone with many trials.

        Args:
            readings: Standardized readings.
            points: Configurations of their trials, in the order of their indices.
            structures: Distances between structures.
            fitted: Hyper-parameters of the highest posterior density.
        """
        factors = product(_SIGNALS, _TRIALS) if len(points) <= LARGEST_INTEGRATED else ()
        processes = []
        for signal, trial in factors:
            with suppress(np.linalg.LinAlgError):  # no density
                values = fitted.with_amplitudes(signal=signal, trial=trial)
                processes.append(GaussianProcess(readings, points, structures, values))
        if not processes:
            processes = [GaussianProcess(readings, points, structures, fitted)]
        densities = np.array([process.log_likelihood for process in processes])
        weights = weights_of(densities)
        kept = np.flatnonzero(weights)
        mean_density = float(np.logaddexp.reduce(densities) - np.log(len(densities)))
        return cls(weights[kept], [processes[place] for place in kept], mean_density)

    @property
    def trial_variance(self) -> float:
        """Variance of a trial's own deviation, in squared spreads."""
        return float(self.weights @ [process.values["trial"] ** 2 for process in self.processes])

    def mean(self, points: Points) -> Array:
        """Return posterior means, (M,)."""
        return np.asarray(self.weights @ np.stack([process.mean(points) for process in self.processes]))

    def predict(self, points: Points) -> tuple[Array, Array]:
        """Return posterior means and standard deviations, (M,) each."""
        return mixed_marginals(self.weights, [process.predict(points) for process in self.processes])

    def joint(self, points: Points) -> tuple[Array, Array]:
        """Return posterior means and covariance, (M,) and (M, M)."""
        return mixed_moments(self.weights, [process.joint(points) for process in self.processes])


def weights_of(log_densities: Array) -> Array:
    """Return the posterior weights of equally probable models, (K,), 0 below a thousandth, from their log densities."""
    weights = np.exp(log_densities - log_densities.max())
    weights[weights < _LEAST_WEIGHT * weights.sum()] = 0.0
    return np.asarray(weights / weights.sum())


def mixed_marginals(weights: Array, pairs: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return means and standard deviations of a mixture, (M,) each, from those of its parts."""
    means, deviations = np.moveaxis(np.array(pairs), 1, 0)
    mean = weights @ means
    return mean, np.sqrt(weights @ (deviations**2 + (means - mean) ** 2))


def mixed_moments(weights: Array, pairs: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return the mean and covariance of a mixture, (M,) and (M, M), from those of its parts."""
    means = np.stack([means for means, _ in pairs])
    mean = weights @ means
    within = np.tensordot(weights, np.stack([covariance for _, covariance in pairs]), axes=1)
    return mean, np.asarray(within + (means - mean).T @ (weights[:, None] * (means - mean)))
