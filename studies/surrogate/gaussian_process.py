"""A Gaussian process over readings: fitted to what was read, asked about what would be read at full length.

A score of trial i at rung r, the logarithm of its share of the steps, is ``m_r + f(x_i) + t_i + p r u_ir`` and noise: f
with the mean of its trends and the covariance ``k decay^|r-r'|``, the rung's mean m_r, the trial's own t_i and its pace
u_ir with normal priors, the noise of known standard error and a nugget. So the earlier a reading is, the less it
predicts. A loss, negative and standardised, is ``m'_r + g (f(x_i) + t_i + p r u_ir) + q d(x_i) + l e_i`` and noise of
its own nugget, where d is another function like f that has nothing to do with scores, and e_i is the noise of known
standard error of the score that was read with it: the same examples were asked.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular  # type: ignore[import-untyped]
from scipy.optimize import minimize  # type: ignore[import-untyped]

from studies.surrogate.hyperparameters import TRENDS, Hyperparameters, Priors, place
from studies.surrogate.kernel import PointPairs, Points, variance
from studies.surrogate.structure_distances import Array, Indices, StructureDistances

RUNG_VARIANCE = 1.0
"""Of the means of rungs, in squares of the spread of scores: those who get far are better than those who start."""

_JITTER = 1e-8
_STEPS = 40
_WIDEST = 4.0
"""How many deviations of its prior a hyper-parameter may be away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """Standardised readings as arrays of N.

    Attributes:
        points: What was trained, one row per reading.
        trials: Numbers that tell trials apart.
        rungs: Base-2 logarithms of the fractions of a whole trial.
        scores: Standardised.
        errors: Their standard errors; of a loss that of the score that was read with it, 0 where it is not known.
        slopes: By how much all other noise is smaller for the warp of scores; 1 where there is none.
        are_losses: Which are negative losses, and no scores.
    """

    points: Points
    trials: Indices
    rungs: Array
    scores: Array
    errors: Array
    slopes: Array
    are_losses: NDArray[np.bool_]

    def __len__(self) -> int:
        """How many."""
        return len(self.scores)

    def by_trial(self) -> tuple[Points, Indices]:
        """The points of T trials, and of each reading the place of its trial among them, (N,)."""
        _, firsts, places = np.unique(self.trials, return_index=True, return_inverse=True)
        return self.points.taken(firsts), places


class KernelBlocks:
    """The covariance of readings with themselves as a function of the hyper-parameters.

    Kernels are of trials, T x T, and handed out to their readings.
    """

    def __init__(self, readings: Readings, structures: StructureDistances) -> None:
        """Work out what does not depend on the hyper-parameters."""
        self.readings = readings
        points, places = readings.by_trial()
        self.pairs = PointPairs(points, points, structures)
        self.handed_out = np.ix_(places, places)
        self.order = np.argsort(places, kind="stable")
        self.firsts = np.flatnonzero(np.diff(places[self.order], prepend=-1))
        self.apart = np.abs(readings.rungs[:, None] - readings.rungs[None, :])
        self.same_trial = (readings.trials[:, None] == readings.trials[None, :]).astype(np.float64)
        lossy = readings.are_losses
        is_one_kind = lossy[:, None] == lossy[None, :]
        self.losses_of_two = lossy[:, None].astype(np.float64) + lossy[None, :]
        noise = np.where(lossy, 0.0, readings.errors**2)
        self.fixed = RUNG_VARIANCE * ((self.apart == 0) & is_one_kind) + np.diag(noise + _JITTER)
        is_one_reading = (self.apart == 0) * self.same_trial
        self.own = self.same_trial * np.outer(readings.slopes, readings.slopes)
        self.luck = is_one_reading * (self.losses_of_two > 0) * np.outer(readings.errors, readings.errors)
        self.early = is_one_reading * np.outer(readings.rungs, readings.rungs)

    def kernel(self, of_trials: Array) -> Array:
        """Of readings, (N, N), from that of trials, (T, T)."""
        return np.asarray(of_trials[self.handed_out])

    def summed(self, matrix: Array) -> Array:
        """Sums of a matrix of readings over those of equal trials, (T, T)."""
        ordered = matrix[np.ix_(self.order, self.order)]
        return np.asarray(np.add.reduceat(np.add.reduceat(ordered, self.firsts, axis=0), self.firsts, axis=1))

    def faded(self, values: Hyperparameters) -> Array:
        """How much of the kernel two readings have in common."""
        own = values["loss.own"] ** 2 * (self.losses_of_two == 2)
        return np.asarray((self.gains(values) + own) * np.exp(-values["decay"] * self.apart))

    def gains(self, values: Hyperparameters) -> Array:
        """What what two readings share with the scores counts for in both, (N, N)."""
        return np.asarray(values["loss.gain"] ** self.losses_of_two)

    def covariance(self, values: Hyperparameters, of_trials: Array) -> Array:
        """Of the readings, (N, N), from the kernel of their trials, (T, T)."""
        total = self.kernel(of_trials) * self.faded(values)
        total += self.fixed + self.own_trial(values) * self.gains(values)
        total += self.shared_luck(values)
        own = np.where(self.readings.are_losses, values["loss.nugget"] ** 2, values["nugget"] ** 2)
        total[np.diag_indices_from(total)] += own * self.readings.slopes**2
        return np.asarray(total)

    def own_trial(self, values: Hyperparameters) -> Array:
        """What two readings have in common that is their trial's alone, and counts for as much as what f gives."""
        return np.asarray(values["trial"] ** 2 * self.own + values["pace"] ** 2 * self.early)

    def shared_luck(self, values: Hyperparameters) -> Array:
        """What the luck of the examples that were asked adds to losses, and to a loss and the score read with it."""
        return np.asarray(self.luck * values["loss.luck"] ** self.losses_of_two)

    def loss(self, logarithms: Array, priors: Priors) -> tuple[float, Array]:
        """Negative log posterior of the hyper-parameters, and its derivatives."""
        values = Hyperparameters(logarithms)
        of_trials = self.pairs.kernel(values)
        covariance = self.covariance(values, of_trials)
        factor = cho_factor(covariance, lower=True, check_finite=False)
        expected = self.readings.points.trends * values.trends * _gain(self.readings, values)[:, None]
        left = self.readings.scores - expected.sum(axis=1)
        solved = cho_solve(factor, left, check_finite=False)
        standard = (logarithms - priors.centres) / priors.deviations
        loss = 0.5 * float(left @ solved) + float(np.log(np.diag(factor[0])).sum())
        adjoint = cho_solve(factor, np.eye(len(solved)), check_finite=False) - np.outer(solved, solved)
        slopes = 0.5 * self._slopes(values, adjoint, self.kernel(of_trials))
        slopes[TRENDS] = -expected.T @ solved
        slopes[place("loss.gain")] -= (expected.sum(axis=1) * self.readings.are_losses) @ solved
        return loss + 0.5 * float(standard @ standard), slopes + standard / priors.deviations

    def _slopes(self, values: Hyperparameters, adjoint: Array, kernel: Array) -> Array:
        faded, gains = self.faded(values), self.gains(values)
        fading = np.exp(-values["decay"] * self.apart)
        lossy, diagonal = self.readings.are_losses, np.diag(adjoint) * self.readings.slopes**2
        slopes = self.pairs.slopes(values, self.summed(adjoint * faded))
        slopes[place("decay")] = -values["decay"] * (adjoint * faded * self.apart * kernel).sum()
        slopes[place("trial")] = 2 * values["trial"] ** 2 * (adjoint * self.own * gains).sum()
        slopes[place("pace")] = 2 * values["pace"] ** 2 * (adjoint * self.early * gains).sum()
        slopes[place("nugget")] = 2 * values["nugget"] ** 2 * diagonal[~lossy].sum()
        if lossy.any():
            through = adjoint * gains * (kernel * fading + self.own_trial(values))
            slopes[place("loss.gain")] = (through * self.losses_of_two).sum()
            both = adjoint * kernel * fading * (self.losses_of_two == 2)
            slopes[place("loss.own")] = 2 * values["loss.own"] ** 2 * both.sum()
            slopes[place("loss.luck")] = (adjoint * self.shared_luck(values) * self.losses_of_two).sum()
            slopes[place("loss.nugget")] = 2 * values["loss.nugget"] ** 2 * diagonal[lossy].sum()
        return slopes


def _gain(readings: Readings, values: Hyperparameters) -> Array:
    """What f counts for in every reading, (N,)."""
    return np.where(readings.are_losses, values["loss.gain"], 1.0)


def fitted(readings: Readings, structures: StructureDistances, priors: Priors) -> Hyperparameters:
    """The most probable hyper-parameters, from the medians of their priors on."""
    blocks = KernelBlocks(readings, structures)
    found = minimize(
        blocks.loss,
        priors.centres.copy(),
        args=(priors,),
        jac=True,
        method="L-BFGS-B",
        bounds=priors.logarithms(_WIDEST),
        options={"maxiter": _STEPS},
    )
    return Hyperparameters(np.asarray(found.x, dtype=np.float64))


class GaussianProcess:
    """The posterior of what trials would score at full length, given readings.

    Attributes:
        points: What the readings are of, a row for each trial; those that it was `told` of are among them.
    """

    def __init__(self, readings: Readings, structures: StructureDistances, values: Hyperparameters) -> None:
        """Factorise the covariance of the readings; there may be none.

        Args:
            readings: Standardised.
            structures: The numbers of structures.
            values: Hyper-parameters.
        """
        self.values = values
        self._readings = readings
        self._structures = structures
        self.points, self._places = readings.by_trial()
        blocks = KernelBlocks(readings, structures)
        self._kernel = blocks.pairs.kernel(values)
        covariance = blocks.covariance(values, self._kernel)
        self._factor = cho_factor(covariance, lower=True, check_finite=False)[0] if len(readings) else covariance
        left = readings.scores - _gain(readings, values) * (readings.points.trends @ values.trends)
        self._weights = self._solve(self._solve(left), transposed=True)

    def _solve(self, right: Array, *, transposed: bool = False) -> Array:
        if not len(self._readings):
            return right
        trans = 1 if transposed else 0
        return np.asarray(solve_triangular(self._factor, right, lower=True, trans=trans, check_finite=False))

    def _covariance(self, points: Points) -> Array:
        """Of the readings with what ``points`` would score at full length, (N, M)."""
        return self._at_full_length(PointPairs(self.points, points, self._structures).kernel(self.values))

    def _at_full_length(self, kernel: Array) -> Array:
        """The same, from the kernel of their trials with the points, (T, M)."""
        shared = kernel[self._places]
        apart = np.abs(self._readings.rungs)[:, None]
        faded = _gain(self._readings, self.values)[:, None] * np.exp(-self.values["decay"] * apart)
        return np.asarray(shared * faded + RUNG_VARIANCE * ((apart == 0) & ~self._readings.are_losses[:, None]))

    def mean(self, points: Points) -> Array:
        """Posterior means, (M,)."""
        return np.asarray(points.trends @ self.values.trends + self._covariance(points).T @ self._weights)

    def own_means(self, count: int) -> Array:
        """Posterior means of the first trials that it has readings of, (count,)."""
        trends = self.points.trends[:count] @ self.values.trends
        return np.asarray(trends + self._at_full_length(self._kernel[:, :count]).T @ self._weights)

    def predict(self, points: Points) -> tuple[Array, Array]:
        """Posterior means and standard deviations, (M,) each."""
        shared = self._covariance(points)
        reduced = self._solve(shared)
        left = variance(self.values) + RUNG_VARIANCE - (reduced * reduced).sum(axis=0)
        means = points.trends @ self.values.trends + shared.T @ self._weights
        return means, np.sqrt(np.maximum(left, 1e-12))

    def joint(self, points: Points) -> tuple[Array, Array]:
        """Posterior means and covariance, (M,) and (M, M)."""
        shared = self._covariance(points)
        reduced = self._solve(shared)
        prior = PointPairs(points, points, self._structures).kernel(self.values) + RUNG_VARIANCE
        means = points.trends @ self.values.trends + shared.T @ self._weights
        return means, np.asarray(prior - reduced.T @ reduced)

    def told(self, points: Points) -> "GaussianProcess":
        """The process if trials of some points are read at their posterior means."""
        known, count = self._readings, len(points)
        first = int(known.trials.max(initial=0)) + 1
        readings = Readings(
            points=known.points.joined(points),
            trials=np.concatenate([known.trials, np.arange(first, first + count)]),
            rungs=np.concatenate([known.rungs, np.zeros(count)]),
            scores=np.concatenate([known.scores, self.mean(points)]),
            errors=np.concatenate([known.errors, np.full(count, np.median(known.errors) if len(known) else 0.0)]),
            slopes=np.concatenate([known.slopes, np.ones(count)]),
            are_losses=np.concatenate([known.are_losses, np.zeros(count, dtype=np.bool_)]),
        )
        return GaussianProcess(readings, self._structures, self.values)
