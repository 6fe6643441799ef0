"""Gaussian process over readings of scores and losses, with predictions of the score at full length.

Rung r is the logarithm of a share of the steps. The score of trial i at it is ``m_r + f(x_i) + t_i + p r u_ir`` plus
noise. Here f has the prior trends as its mean and the covariance ``k decay^|r-r'|``. The mean of the rung is m_r. The
trial's own deviation t_i and pace u_ir have normal priors. The noise is the known standard error and a nugget. So the
earlier a reading is, the less it predicts.

A negative, standardized loss is ``m'_r + g (f(x_i) + t_i + p r u_ir) + q d(x_i) + l e_i`` plus noise. It has a nugget
of its own. Here d is a function like f that is independent of the scores. e_i is the known standard error of the score
read with the loss, since both are measured on the same examples.
"""

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular  # type: ignore[import-untyped]
from scipy.optimize import minimize  # type: ignore[import-untyped]

from studies.surrogate.hyperparameters import TRENDS, Hyperparameters, Priors, index_of
from studies.surrogate.kernel import PointPairs, Points, variance
from studies.surrogate.reading_arrays import Readings
from studies.surrogate.structure_distances import Array, StructureDistances

RUNG_VARIANCE = 1.0
"""Variance of the means of rungs, in squared spreads of the scores; trials that reach late rungs are better."""

_JITTER = 1e-8
_STEPS = 40
_WIDEST = 4.0
"""Largest distance of a hyper-parameter from the median of its prior, in deviations."""


class KernelBlocks:
    """Covariance of readings as a function of the hyper-parameters.

    Kernels are computed between trials, (T, T), and expanded to their readings, (N, N).
    """

    def __init__(self, readings: Readings, points: Points, structures: StructureDistances) -> None:
        """Compute all terms that do not depend on the hyper-parameters.

        Args:
            readings: Standardized readings.
            points: Configurations of their trials, (T,), in the order of their indices.
            structures: Distances between structures.
        """
        self.readings = readings
        self.places = places = np.unique(readings.trials, return_inverse=True)[1]
        self.trends = points.trends[places]
        self.pairs = PointPairs(points, points, structures)
        self.trial_indices = np.ix_(places, places)
        self.order = np.argsort(places, kind="stable")
        self.firsts = np.flatnonzero(np.diff(places[self.order], prepend=-1))
        distinct, self.rung_places = np.unique(readings.rungs, return_inverse=True)
        self.distinct_distances = np.abs(distinct[:, None] - distinct[None, :])
        self.rung_distances = self.between_rungs(self.distinct_distances)
        self.same_trial = (readings.trials[:, None] == readings.trials[None, :]).astype(np.float64)
        are_losses = readings.are_losses
        same_kind = are_losses[:, None] == are_losses[None, :]
        self.losses_of_two = are_losses[:, None].astype(np.float64) + are_losses[None, :]
        noise = np.where(are_losses, 0.0, readings.errors**2)
        self.fixed = RUNG_VARIANCE * ((self.rung_distances == 0) & same_kind) + np.diag(noise + _JITTER)
        same_reading = (self.rung_distances == 0) * self.same_trial
        self.same_trial_slopes = self.same_trial * np.outer(readings.slopes, readings.slopes)
        self.example_noise = same_reading * (self.losses_of_two > 0) * np.outer(readings.errors, readings.errors)
        self.pace_products = same_reading * np.outer(readings.rungs, readings.rungs)

    def kernel(self, of_trials: Array) -> Array:
        """Return the kernel between readings, (N, N), from that between trials, (T, T)."""
        return np.asarray(of_trials[self.trial_indices])

    def between_rungs(self, of_distinct: Array) -> Array:
        """Return a matrix between readings, (N, N), from that between the distinct rungs."""
        return np.asarray(of_distinct[np.ix_(self.rung_places, self.rung_places)])

    def decay(self, values: Hyperparameters) -> Array:
        """Return the decay of the kernel with the distance of rungs, (N, N)."""
        return self.between_rungs(np.exp(-values["decay"] * self.distinct_distances))

    def sum_by_trial(self, matrix: Array) -> Array:
        """Return the sums of a matrix of readings over the readings of each trial, (T, T)."""
        ordered = matrix[np.ix_(self.order, self.order)]
        return np.asarray(np.add.reduceat(np.add.reduceat(ordered, self.firsts, axis=0), self.firsts, axis=1))

    def decay_factors(self, values: Hyperparameters) -> Array:
        """Return the factor of the kernel by rungs and by kinds of readings, (N, N)."""
        own = values["loss.own"] ** 2 * (self.losses_of_two == 2)
        return np.asarray((self.loss_gain_factors(values) + own) * self.decay(values))

    def loss_gain_factors(self, values: Hyperparameters) -> Array:
        """Return the factor of terms shared with the scores: the loss gain once for each loss of the pair, (N, N)."""
        gains = _gain(self.readings, values)
        return np.outer(gains, gains)

    def covariance(self, values: Hyperparameters, of_trials: Array) -> Array:
        """Return the covariance of the readings, (N, N), from the kernel of their trials, (T, T)."""
        total = self.kernel(of_trials) * self.decay_factors(values)
        total += self.fixed + self.trial_covariance(values) * self.loss_gain_factors(values)
        total += self.shared_example_noise(values)
        own = np.where(self.readings.are_losses, values["loss.nugget"] ** 2, values["nugget"] ** 2)
        total[np.diag_indices_from(total)] += own * self.readings.slopes**2
        return np.asarray(total)

    def trial_covariance(self, values: Hyperparameters) -> Array:
        """Return the covariance by the trial's own deviation and pace, (N, N)."""
        return np.asarray(values["trial"] ** 2 * self.same_trial_slopes + values["pace"] ** 2 * self.pace_products)

    def shared_example_noise(self, values: Hyperparameters) -> Array:
        """Return the covariance of losses, and of a loss and its score, by the noise of the same examples, (N, N)."""
        shares = np.where(self.readings.are_losses, values["loss.example_noise"], 1.0)
        return np.asarray(self.example_noise * np.outer(shares, shares))

    def loss(self, logarithms: Array, priors: Priors) -> tuple[float, Array]:
        """Return the negative log posterior of the hyper-parameters and its gradient."""
        values = Hyperparameters(logarithms)
        of_trials = self.pairs.kernel(values)
        covariance = self.covariance(values, of_trials)
        factor = cho_factor(covariance, lower=True, check_finite=False)
        expected = self.trends * values.trends * _gain(self.readings, values)[:, None]
        residuals = self.readings.scores - expected.sum(axis=1)
        solved = cho_solve(factor, residuals, check_finite=False)
        standard = (logarithms - priors.centres) / priors.deviations
        loss = 0.5 * float(residuals @ solved) + float(np.log(np.diag(factor[0])).sum())
        adjoint = cho_solve(factor, np.eye(len(solved)), check_finite=False) - np.outer(solved, solved)
        slopes = 0.5 * self._slopes(values, adjoint, self.kernel(of_trials))
        slopes[TRENDS] = -expected.T @ solved
        slopes[index_of("loss.gain")] -= (expected.sum(axis=1) * self.readings.are_losses) @ solved
        return loss + 0.5 * float(standard @ standard), slopes + standard / priors.deviations

    def _slopes(self, values: Hyperparameters, adjoint: Array, kernel: Array) -> Array:
        decay_factors, loss_gains = self.decay_factors(values), self.loss_gain_factors(values)
        decay = self.decay(values)
        are_losses, diagonal = self.readings.are_losses, np.diag(adjoint) * self.readings.slopes**2
        slopes = self.pairs.slopes(values, self.sum_by_trial(adjoint * decay_factors))
        slopes[index_of("decay")] = -values["decay"] * (adjoint * decay_factors * self.rung_distances * kernel).sum()
        slopes[index_of("trial")] = 2 * values["trial"] ** 2 * (adjoint * self.same_trial_slopes * loss_gains).sum()
        slopes[index_of("pace")] = 2 * values["pace"] ** 2 * (adjoint * self.pace_products * loss_gains).sum()
        slopes[index_of("nugget")] = 2 * values["nugget"] ** 2 * diagonal[~are_losses].sum()
        if are_losses.any():
            through = adjoint * loss_gains * (kernel * decay + self.trial_covariance(values))
            slopes[index_of("loss.gain")] = (through * self.losses_of_two).sum()
            both = adjoint * kernel * decay * (self.losses_of_two == 2)
            slopes[index_of("loss.own")] = 2 * values["loss.own"] ** 2 * both.sum()
            slopes[index_of("loss.example_noise")] = (
                adjoint * self.shared_example_noise(values) * self.losses_of_two
            ).sum()
            slopes[index_of("loss.nugget")] = 2 * values["loss.nugget"] ** 2 * diagonal[are_losses].sum()
        return slopes


def _gain(readings: Readings, values: Hyperparameters) -> Array:
    """Return the factor of f in every reading, (N,)."""
    return np.where(readings.are_losses, values["loss.gain"], 1.0)


def fit_hyperparameters(
    readings: Readings, points: Points, structures: StructureDistances, priors: Priors
) -> Hyperparameters:
    """Return the maximum a posteriori hyper-parameters, found from the medians of their priors."""
    blocks = KernelBlocks(readings, points, structures)
    result = minimize(
        blocks.loss,
        priors.centres.copy(),
        args=(priors,),
        jac=True,
        method="L-BFGS-B",
        bounds=priors.logarithms(_WIDEST),
        options={"maxiter": _STEPS},
    )
    return Hyperparameters(np.asarray(result.x, dtype=np.float64))


class GaussianProcess:
    """Posterior of the scores of configurations at full length, given readings.

    Attributes:
        readings: Standardized readings.
        points: Configurations with readings, one row per trial; fantasized ones included.
        log_likelihood: Logarithm of the density of the readings, up to a constant.
    """

    def __init__(
        self, readings: Readings, points: Points, structures: StructureDistances, values: Hyperparameters
    ) -> None:
        """Factorize the covariance of the readings; there may be none.

        Args:
            readings: Standardized readings.
            points: Configurations of their trials, (T,), in the order of their indices.
            structures: Distances between structures.
            values: Hyper-parameters.
        """
        self.values = values
        self.readings = readings
        self.points = points
        self._structures = structures
        blocks = KernelBlocks(readings, points, structures)
        self._places = blocks.places
        self._kernel = blocks.pairs.kernel(values)
        covariance = blocks.covariance(values, self._kernel)
        self._factor = cho_factor(covariance, lower=True, check_finite=False)[0] if len(readings) else covariance
        residuals = readings.scores - _gain(readings, values) * (blocks.trends @ values.trends)
        self._weights = self._solve(self._solve(residuals), transposed=True)
        self.log_likelihood = float(-0.5 * residuals @ self._weights - np.log(np.diag(self._factor)).sum())

    def _solve(self, right: Array, *, transposed: bool = False) -> Array:
        if not len(self.readings):
            return right
        trans = 1 if transposed else 0
        return np.asarray(solve_triangular(self._factor, right, lower=True, trans=trans, check_finite=False))

    def _covariance(self, points: Points) -> Array:
        """Return the covariance of the readings with the scores of ``points`` at full length, (N, M)."""
        return self._at_full_length(PointPairs(self.points, points, self._structures).kernel(self.values))

    def _at_full_length(self, kernel: Array) -> Array:
        """Return the same from the kernel between trials and points, (T, M)."""
        shared = kernel[self._places]
        distances = np.abs(self.readings.rungs)[:, None]
        decay_factors = _gain(self.readings, self.values)[:, None] * np.exp(-self.values["decay"] * distances)
        same_rung = (distances == 0) & ~self.readings.are_losses[:, None]
        return np.asarray(shared * decay_factors + RUNG_VARIANCE * same_rung)

    def mean(self, points: Points) -> Array:
        """Return posterior means, (M,)."""
        return np.asarray(points.trends @ self.values.trends + self._covariance(points).T @ self._weights)

    def observed_means(self, count: int) -> Array:
        """Return the posterior means of the first observed trials, (count,)."""
        trends = self.points.trends[:count] @ self.values.trends
        return np.asarray(trends + self._at_full_length(self._kernel[:, :count]).T @ self._weights)

    def predict(self, points: Points) -> tuple[Array, Array]:
        """Return posterior means and standard deviations, (M,) each."""
        shared = self._covariance(points)
        reduced = self._solve(shared)
        variances = variance(self.values) + RUNG_VARIANCE - (reduced * reduced).sum(axis=0)
        means = points.trends @ self.values.trends + shared.T @ self._weights
        return means, np.sqrt(np.maximum(variances, 1e-12))

    def joint(self, points: Points) -> tuple[Array, Array]:
        """Return posterior means and covariance, (M,) and (M, M)."""
        shared = self._covariance(points)
        reduced = self._solve(shared)
        prior = PointPairs(points, points, self._structures).kernel(self.values) + RUNG_VARIANCE
        means = points.trends @ self.values.trends + shared.T @ self._weights
        return means, np.asarray(prior - reduced.T @ reduced)

    def fantasize(self, points: Points) -> "GaussianProcess":
        """Return the process with fantasy readings of some points at their posterior means (kriging believer).

        Ginsbourger et al. 2010, "Kriging is well-suited to parallelize optimization".
        """
        known, count = self.readings, len(points)
        first = int(known.trials.max(initial=0)) + 1
        readings = Readings(
            trials=np.concatenate([known.trials, np.arange(first, first + count)]),
            rungs=np.concatenate([known.rungs, np.zeros(count)]),
            scores=np.concatenate([known.scores, self.mean(points)]),
            errors=np.concatenate([known.errors, np.full(count, np.median(known.errors) if len(known) else 0.0)]),
            slopes=np.concatenate([known.slopes, np.ones(count)]),
            are_losses=np.concatenate([known.are_losses, np.zeros(count, dtype=np.bool_)]),
        )
        return GaussianProcess(readings, self.points.concatenate(points), self._structures, self.values)
