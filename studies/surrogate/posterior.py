"""What is believed of configurations, given a history: the posterior at full length, on the scale of the scores."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from studies.score_evidence import Estimate
from studies.surrogate.features import Features
from studies.surrogate.gaussian_process import GaussianProcess, Readings, fitted
from studies.surrogate.hyperparameters import SEARCH_PRIORS, Hyperparameters, Priors
from studies.surrogate.kernel import Points
from studies.surrogate.observation import Observation
from studies.surrogate.prior_mean import NO_PLACES, Places, Rules, papers_log_odds
from studies.surrogate.reading_arrays import (
    FIRST_CHECKPOINT,
    LARGEST,
    ReadingArrays,
    ReadingCollector,
    thinned,
    with_losses,
)
from studies.surrogate.score_warp import Scale, Standardised, Units, standardised, unwarped, warp_slope
from studies.surrogate.structure_distances import Array, Indices, StructureDistances

CHECKPOINT_GROWTH = 1.35


def checkpoint(trials: int) -> int | None:
    """The last number of trials, up to this one, at which hyper-parameters are fitted; None before the first."""
    found, following = None, FIRST_CHECKPOINT
    while following <= trials:
        found, following = following, max(following + 1, round(following * CHECKPOINT_GROWTH))
    return found


@dataclass(frozen=True, slots=True)
class Posterior:
    """A posterior of warped scores; what is said in scores is its median, and its deviation about there.

    Attributes:
        process: Of standardised, warped scores.
        scale: Of scores at full length.
        trials: Places in the history of the trials that it was told of.
        points: Makes arrays of what is asked about.
    """

    process: GaussianProcess
    scale: Scale
    trials: Indices
    points: Callable[[Sequence[Features]], Points]

    def means(self, views: Sequence[Features]) -> Array:
        """Posterior medians of true scores at full length."""
        return self._scores(self.process.mean(self.points(views)))

    def predict(self, views: Sequence[Features]) -> tuple[Array, Array]:
        """Posterior medians and standard deviations of true scores at full length."""
        means, deviations = self.process.predict(self.points(views))
        return self._scores(means), self.scale.spread * deviations * self._stretch(means)

    def joint(self, views: Sequence[Features]) -> tuple[Array, Array]:
        """Posterior medians and covariance of true scores at full length, (M,) and (M, M)."""
        means, covariance = self.process.joint(self.points(views))
        stretch = self._stretch(means)
        return self._scores(means), self.scale.spread**2 * covariance * np.outer(stretch, stretch)

    def difference(self, first: Features, second: Features) -> Estimate:
        """How much better the true score of the first is at full length."""
        return Estimate.of_difference(*self.joint([first, second]))

    def chance(self, first: Features, second: Features) -> float:
        """The probability that the true score of the first is higher at full length; the warp changes no order."""
        return Estimate.of_difference(*self.process.joint(self.points([first, second]))).chance

    def _scores(self, modelled: Array) -> Array:
        return self.scale.middle + self.scale.spread * unwarped(modelled)

    def _stretch(self, modelled: Array) -> Array:
        """By how much the inverse of the warp stretches what is near."""
        return 1 / warp_slope(unwarped(modelled))


class SurrogateFitter:
    """Makes beliefs of histories; a pure function, but what was computed before is remembered."""

    def __init__(
        self,
        view_of: Callable[[Observation], Features],
        *,
        rules: Rules = papers_log_odds,
        places: Places = NO_PLACES,
        fits_to: int | None = None,
        priors: Priors = SEARCH_PRIORS,
    ) -> None:
        """Begin with nothing remembered.

        Args:
            view_of: What the model sees of a trial.
            rules: What is expected of configurations before anything was tried, but for their rates.
            places: Where the rates of some forms are expected to be best.
            fits_to: How many of the first trials hyper-parameters are fitted to, and scores measured by: an amplitude
                is one of a spread, so what is heard later is measured by the same. None for as many as there are.
            priors: Of the hyper-parameters.
        """
        self._priors = priors
        self._fits_to = fits_to
        self._rules = rules
        self._places = places
        self._view_of = view_of
        self._structures = StructureDistances()
        self._views: dict[str, Features] = {}
        self._listener = ReadingCollector()
        self._fitted: dict[bool, tuple[int, bytes, tuple[Hyperparameters, Units]]] = {}

    def trials_heard_of(self, history: Sequence[Observation]) -> int:
        """Of how many trials something was read."""
        return self._listener.hear(history).trial_count

    def view(self, observation: Observation) -> Features:
        """What the model sees of a trial."""
        known = self._views.get(observation.fingerprint)
        if known is None:
            known = self._views[observation.fingerprint] = self._view_of(observation)
        return known

    def belief(self, history: Sequence[Observation], *, is_settled: bool = False) -> Posterior:
        """The posterior given the readings of a history; trials without any are not asked about.

        Args:
            history: All trials, in the order of their numbers.
            is_settled: Whether hyper-parameters are fitted to trials that have ended alone, and not again with every
                reading of those that run.
        """
        heard = self._listener.hear(history)
        told = _ended(heard, history) if is_settled else heard
        values, units = self._fit(told, history, is_settled=is_settled)
        readings, standard, _ = self._readings(heard, history, Units() if self._fits_to is None else units)
        process = GaussianProcess(readings, self._structures, values)
        return Posterior(process, standard.full, np.unique(readings.trials), self.points)

    def with_pending(self, belief: Posterior, pending: Sequence[Observation]) -> Posterior:
        """The posterior if pending trials end at their posterior means: less is left to learn about them."""
        if not pending:
            return belief
        points = self.points([self.view(one) for one in pending])
        return replace(belief, process=belief.process.told(points))

    def points(self, views: Sequence[Features]) -> Points:
        """Views as arrays."""
        return Points.of(views, self._structures, self._places, self._rules)

    def _fit(
        self, heard: ReadingArrays, history: Sequence[Observation], *, is_settled: bool
    ) -> tuple[Hyperparameters, Units]:
        """Fitted to what had been heard at the last checkpoint, and in which units that was."""
        count = heard.trial_count
        at = checkpoint(count if self._fits_to is None else min(count, self._fits_to))
        if at is None:
            return self._priors.medians, Units()
        early = heard.until(at)
        key = early.scores.tobytes() + early.trials.tobytes()
        known = self._fitted.get(is_settled)
        if known is None or known[:2] != (at, key):
            readings, scores, losses = self._readings(early, history, Units())
            units = Units(scores=scores.units, losses=losses.units)
            known = at, key, (fitted(readings, self._structures, self._priors), units)
            self._fitted[is_settled] = known
        return known[2]

    def _readings(
        self, heard: ReadingArrays, history: Sequence[Observation], units: Units
    ) -> tuple[Readings, Standardised, Standardised]:
        """What the process hears, and all scores and losses that are known without unit."""
        standard = standardised(heard.scores, heard.errors, heard.rungs, units.scores)
        known = np.flatnonzero(np.isfinite(heard.losses))
        # negative, so that higher is better
        negative = -heard.losses[known]
        losses = standardised(negative, np.zeros(len(known)), heard.rungs[known], units.losses)
        lossy = with_losses(heard, standard.scores)
        scored = thinned(heard, standard.scores, LARGEST - len(lossy))
        rows = np.concatenate([scored, lossy])
        trials, places = np.unique(heard.trials[rows], return_inverse=True)
        points = self.points([self.view(history[trial]) for trial in trials])
        among = np.searchsorted(known, lossy)
        # of the same examples: in the units of the loss, not of the score
        luck = standard.errors[lossy] / standard.slopes[lossy] * losses.slopes[among]
        readings = Readings(
            points=points.taken(places),
            trials=heard.trials[rows],
            rungs=heard.rungs[rows],
            scores=np.concatenate([standard.scores[scored], losses.scores[among]]),
            errors=np.concatenate([standard.errors[scored], luck]),
            slopes=np.concatenate([standard.slopes[scored], losses.slopes[among]]),
            are_losses=np.arange(len(rows)) >= len(scored),
        )
        return readings, standard, losses


def _ended(heard: ReadingArrays, history: Sequence[Observation]) -> ReadingArrays:
    """What was read of trials that have ended."""
    is_ended = np.array([one.state.is_terminal for one in history], dtype=np.bool_)
    return heard.taken(np.flatnonzero(is_ended[heard.trials]))
