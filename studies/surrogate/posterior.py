"""Posterior of the scores of configurations at full length, on the scale of the scores."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np

from studies.history.history import StudyHistory
from studies.records import TrialRecord
from studies.score_evidence import Estimate
from studies.surrogate.features import Features
from studies.surrogate.gaussian_process import GaussianProcess, fit_hyperparameters
from studies.surrogate.hyperparameters import SEARCH_PRIORS, Hyperparameters, Priors
from studies.surrogate.kernel import Points
from studies.surrogate.prior_mean import NO_EXPECTED_RATES, ExpectedRates, Rules, papers_log_odds
from studies.surrogate.process_mixture import ProcessMixture, mixed_marginals, mixed_moments, weights_of
from studies.surrogate.reading_arrays import (
    FIRST_CHECKPOINT,
    LARGEST,
    ReadingCollector,
    Readings,
    used_losses,
    used_scores,
)
from studies.surrogate.score_warp import (
    KNEE,
    NO_KNEE,
    Kind,
    Scale,
    full_scale,
    scales_of,
    standardize,
    unwarp,
)
from studies.surrogate.structure_distances import Array, Indices, StructureDistances

CHECKPOINT_GROWTH = 1.35
_LEAST_REACH = 1e-6
_WIDENING_TRIALS, _WIDENINGS = (20, 40), (1.3, 1.1)

Process = TypeVar("Process", bound=GaussianProcess | ProcessMixture)


def checkpoint(trials: int) -> int | None:
    """Return the last number of trials, up to this one, at which hyper-parameters are fitted; None before the first."""
    last, following = None, FIRST_CHECKPOINT
    while following <= trials:
        last, following = following, max(following + 1, round(following * CHECKPOINT_GROWTH))
    return last


@dataclass(frozen=True, slots=True)
class Posterior(Generic[Process]):
    """Posterior of warped scores. Means on the scale of scores are medians.

    Attributes:
        process: Gaussian process of standardized, warped scores, or a mixture of such processes.
        scale: Scale of the scores at full length.
        trials: Indices of the observed trials in the history.
        points: Function from model features to arrays.
    """

    process: Process
    scale: Scale
    trials: Indices
    points: Callable[[Sequence[Features]], Points]

    def means(self, features: Sequence[Features]) -> Array:
        """Return the posterior medians of true scores at full length, (M,)."""
        return self._scores(self.process.mean(self.points(features)))

    def predict(self, features: Sequence[Features]) -> tuple[Array, Array]:
        """Return the posterior medians and standard deviations of true scores at full length, (M,) each."""
        means, deviations = self.process.predict(self.points(features))
        return self._scores(means), self.scale.spread * deviations * self._stretch(means, deviations)

    def joint(self, features: Sequence[Features]) -> tuple[Array, Array]:
        """Return the posterior medians and covariance of true scores at full length, (M,) and (M, M)."""
        means, covariance = self.process.joint(self.points(features))
        stretch = self._stretch(means, np.sqrt(np.diag(covariance)))
        return self._scores(means), self.scale.spread**2 * covariance * np.outer(stretch, stretch)

    def _scores(self, modelled: Array) -> Array:
        return self.scale.middle + self.scale.spread * unwarp(modelled, self.scale.knee)

    def _stretch(self, means: Array, deviations: Array) -> Array:
        """Return the ratio of deviations of scores to those of warped scores.

        A deviation of scores is half the distance between those one deviation above and below the mean. So it also
        holds at the knee of the warp, where the slope changes tenfold.
        """
        reach = np.maximum(deviations, _LEAST_REACH)
        ends = unwarp(means + reach, self.scale.knee) - unwarp(means - reach, self.scale.knee)
        return np.asarray(ends / (2 * reach))


SearchPosterior = Posterior[GaussianProcess]
"""Posterior for proposals, at the most probable hyper-parameters."""


@dataclass(frozen=True, slots=True)
class EstimatePosterior:
    """Posterior for estimates, with amplitudes integrated, averaged over scores with and without a warp.

    Under the warp, a score below the knee belongs to a bad trial. Without the warp, it may be unlucky.

    Attributes:
        weights: Weights of the posteriors, (K,); they sum to 1.
        posteriors: Posteriors given the same readings.
    """

    weights: Array
    posteriors: Sequence[Posterior[ProcessMixture]]

    @property
    def scale(self) -> Scale:
        """Scale of the scores at full length."""
        return self.posteriors[0].scale

    @property
    def seed_deviation(self) -> float:
        """Standard deviation of the scores of a configuration over seeds of its training, for scores above the knee.

        The scores are of the same examples, of which each training gets others right, so the standard error counts.
        """
        variances = [one.scale.spread**2 * one.process.trial_variance for one in self.posteriors]
        return math.sqrt(self.scale.error**2 + self.weights @ variances)

    @property
    def widening(self) -> float:
        """Factor of the deviations; see `widening_of`."""
        return widening_of(len(self.posteriors[0].trials))

    def predict(self, features: Sequence[Features]) -> tuple[Array, Array]:
        """Return the posterior means and standard deviations of true scores at full length, (M,) each."""
        means, deviations = mixed_marginals(self.weights, [one.predict(features) for one in self.posteriors])
        return means, self.widening * deviations

    def joint(self, features: Sequence[Features]) -> tuple[Array, Array]:
        """Return the posterior means and covariance of true scores at full length, (M,) and (M, M)."""
        means, covariance = mixed_moments(self.weights, [one.joint(features) for one in self.posteriors])
        return means, self.widening**2 * covariance

    def difference(self, first: Features, second: Features) -> Estimate:
        """Return the estimate of the first true score minus the second at full length."""
        return Estimate.of_difference(*self.joint([first, second]))


def widening_of(trials: int) -> float:
    """Return the factor of the deviations of estimates with some observed trials.

    The spread of scores and all hyper-parameters but the amplitudes are uncertain, most of all with few trials, and no
    estimate averages over them. With the factor 95% intervals hold about 90% or more of planted scores.

    Args:
        trials: Number of trials with a reading.
    """
    return float(np.interp(trials, _WIDENING_TRIALS, _WIDENINGS))


class SurrogateFitter:
    """Fits posteriors to histories: a pure function with a cache."""

    def __init__(
        self,
        features_of: Callable[[TrialRecord], Features],
        *,
        rules: Rules = papers_log_odds,
        expected_rates: ExpectedRates = NO_EXPECTED_RATES,
        fits_to: int | None = None,
        priors: Priors = SEARCH_PRIORS,
    ) -> None:
        """Start with an empty cache.

        Args:
            features_of: Function from a trial to its model features.
            rules: Prior log odds of a configuration, learning rates aside.
            expected_rates: Expected best learning rates of some forms.
            fits_to: Number of first trials to which hyper-parameters are fitted; their spreads standardize later
                scores, too, since amplitudes are in units of a spread. None for all trials.
            priors: Priors of the hyper-parameters.
        """
        self._priors = priors
        self._fits_to = fits_to
        self._rules = rules
        self._expected_rates = expected_rates
        self._features_of = features_of
        self._structures = StructureDistances()
        self._features: dict[str, Features] = {}
        self._collector = ReadingCollector()
        self._last_fit: tuple[bytes, tuple[Hyperparameters, Mapping[Kind, Scale]]] | None = None

    def n_observed_trials(self, history: StudyHistory) -> int:
        """Return the number of trials with a reading."""
        return self._collector.collect(history).trial_count

    def features(self, trial: TrialRecord) -> Features:
        """Return the model features of a trial."""
        known = self._features.get(trial.fingerprint)
        if known is None:
            known = self._features[trial.fingerprint] = self._features_of(trial)
        return known

    def posterior(self, history: StudyHistory) -> SearchPosterior:
        """Return the posterior given the readings of a history; trials without readings do not count.

        Hyper-parameters are fitted to the first trials that ended, so that readings of running ones cause no new fit.

        Args:
            history: All trials, in the order of their numbers.
        """
        return self._posterior(history, GaussianProcess)

    def integrated_posterior(self, history: StudyHistory) -> EstimatePosterior:
        """Return the posterior for estimates, with amplitudes integrated while trials are few.

        Where a reading is below the knee, it is averaged over scores with and without the warp, each weighted by the
        density of the readings on the scale of the scores.
        """
        warped = self._posterior(history, ProcessMixture.of)
        slopes = warped.process.processes[0].readings.slopes
        if (slopes == 1).all():
            return EstimatePosterior(np.ones(1), [warped])
        plain = self._posterior(history, ProcessMixture.of, NO_KNEE)
        densities = [warped.process.log_likelihood + np.log(slopes).sum(), plain.process.log_likelihood]
        weights = weights_of(np.array(densities))
        kept = np.flatnonzero(weights)
        return EstimatePosterior(weights[kept], [(warped, plain)[place] for place in kept])

    def _posterior(
        self,
        history: StudyHistory,
        process_of: Callable[[Readings, Points, StructureDistances, Hyperparameters], Process],
        knee: float = KNEE,
    ) -> Posterior[Process]:
        collected = self._collector.collect(history)
        values, fitted_scales = self._fit(_ended(collected, history), history)
        scales = scales_of(collected, None if self._fits_to is None else fitted_scales, knee)
        readings = _used(standardize(collected, scales))
        process = process_of(readings, self._points_of(readings, history), self._structures, values)
        return Posterior(process, full_scale(scales), np.unique(readings.trials), self.points)

    def with_pending(self, posterior: SearchPosterior, pending: Sequence[TrialRecord]) -> SearchPosterior:
        """Return the posterior with pending trials fantasized at their posterior means."""
        if not pending:
            return posterior
        points = self.points([self.features(one) for one in pending])
        return replace(posterior, process=posterior.process.fantasize(points))

    def points(self, features: Sequence[Features]) -> Points:
        """Return model features as arrays."""
        return Points.of(features, self._structures, self._expected_rates, self._rules)

    def _points_of(self, readings: Readings, history: StudyHistory) -> Points:
        """Return the configurations of the trials of readings, in the order of their indices."""
        return self.points([self.features(history[trial]) for trial in np.unique(readings.trials)])

    def _fit(self, collected: Readings, history: StudyHistory) -> tuple[Hyperparameters, Mapping[Kind, Scale]]:
        """Return hyper-parameters fitted to the readings at the last checkpoint, and the scales of those readings."""
        count = collected.trial_count
        at = checkpoint(count if self._fits_to is None else min(count, self._fits_to))
        if at is None:
            return self._priors.medians, {}
        early = collected.until(at)
        key = early.scores.tobytes() + early.trials.tobytes()
        if self._last_fit is None or self._last_fit[0] != key:
            scales = scales_of(early)
            readings = _used(standardize(early, scales))
            points = self._points_of(readings, history)
            fitted = fit_hyperparameters(readings, points, self._structures, self._priors)
            self._last_fit = key, (fitted, scales)
        return self._last_fit[1]


def _used(standard: Readings) -> Readings:
    """Return the standardized readings that a process is given: scores, then losses."""
    losses = used_losses(standard)
    return standard.take(np.concatenate([used_scores(standard, LARGEST - len(losses)), losses]))


def _ended(collected: Readings, history: StudyHistory) -> Readings:
    """Return the readings of trials that have ended."""
    is_ended = np.array([one.state.is_terminal for one in history], dtype=np.bool_)
    return collected.take(np.flatnonzero(is_ended[collected.trials]))
