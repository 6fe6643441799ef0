"""Warm starts from earlier studies: a portfolio of configurations, and expected best learning rates.

Configurations are ranked by posterior means of the surrogate, never by scores: the best of many noisy scores is biased.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from search_space.errors import SearchSpaceError
from search_space.space.space import SearchSpace
from studies.history.history import StudyHistory
from studies.records import TrialRecord, TrialState
from studies.search.warm_start import ExpectedRate, WarmStart, WarmStartTrial
from studies.seeds import hashed_seed
from studies.surrogate.encoding import Encoding
from studies.surrogate.features import Features, lr_at, unit_lr_of
from studies.surrogate.posterior import SurrogateFitter
from studies.surrogate.prior_mean import BEST_UNIT_LR
from studies.surrogate.structure_distances import Array

Ranges = Mapping[str, tuple[float, float]]

_CANDIDATES_PER_SOURCE = 24
"""Number of best structures of every source that are considered for the portfolio."""

_STRUCTURES_PER_FORM = 8
"""Number of best structures with a form over which its response to the learning rate is averaged."""

_GRID = np.linspace(-1.0, 1.0, 33)
_DRAWS = 256

UNKNOWN = 0.35
"""Prior deviation of a form's best rate about ``BEST_UNIT_LR``, in halves of its range."""

BETWEEN_TASKS = 0.2
"""Deviation of a form's best rate about its own mean from task to task, in the same unit."""

LARGEST_PORTFOLIO = 6
"""Largest number of configurations of a portfolio."""

_LEAST_GAIN = 1e-9

_KEPT = "head_only"
"""Baseline of all comparisons; it always keeps its place in the initial design."""


class SourceStudy:
    """Earlier study with its posterior.

    Attributes:
        name: Name of the study.
        ranges: Lowest and highest learning rate of every form in that study.
        posterior: Posterior of its configurations.
        features: Function from one of its trials to model features.
        ranked: Observed trials that have not failed, without replicates, the best posterior mean first.
    """

    def __init__(
        self,
        *,
        name: str,
        history: StudyHistory,
        features_of: Callable[[TrialRecord], Features],
        ranges: Ranges,
    ) -> None:
        """Fit the surrogate.

        Args:
            name: Name of the study.
            history: Trials of the study with their readings.
            features_of: Function from a trial to its model features.
            ranges: Lowest and highest learning rate of every form in that study.
        """
        self.name, self.ranges = name, ranges
        fitter = SurrogateFitter(features_of)
        self.posterior, self.features = fitter.posterior(history), fitter.features
        trials = [
            one
            for one, readings in history.entries()
            if readings and one.state is not TrialState.FAILED and one.replicate_of is None
        ]
        means, _ = self.posterior.predict([self.features(one) for one in trials])
        self.ranked = [trials[place] for place in np.argsort(-means, kind="stable")]
        self._sorted = np.sort(means)

    def quantile(self, features: Features) -> float:
        """Return the share of the study's trials with a posterior mean no better than that of a configuration."""
        (mean,), _ = self.posterior.predict([features])
        return float(np.searchsorted(self._sorted, mean + 1e-9, side="right")) / len(self._sorted)


def warm_start_from(
    sources: Sequence[SourceStudy], space: SearchSpace, *, replaceable: Sequence[str] = ()
) -> WarmStart:
    """Return the warm start that earlier studies give to a study of a space.

    Args:
        sources: Earlier studies.
        space: Search space of the new study.
        replaceable: Published methods of the initial design, of which the weakest may be replaced.
    """
    candidates = list(_portfolio_candidates(sources, space))
    chosen = portfolio(np.array([worth for _, worth in candidates])) if candidates else []
    starts = tuple(candidates[place][0] for place in chosen)
    return WarmStart(
        sources=tuple(source.name for source in sources),
        starts=starts,
        replaced=_weakest(sources, replaceable, len(starts)),
        rates=_rates(sources, space),
    )


def portfolio(worth: Array, most: int = LARGEST_PORTFOLIO) -> list[int]:
    """Return the rows chosen greedily for the mean over columns of the best entry, the best row first.

    The value of a set is submodular. So a greedy choice has at least 1 - 1/e of the value of the best choice of that
    size (Nemhauser et al. 1978). It ends when no row adds anything.

    Args:
        worth: Value of every configuration on every task, at least 0, (C, S).
        most: Largest number of rows.
    """
    chosen: list[int] = []
    best = np.zeros(worth.shape[1])
    while len(chosen) < min(most, len(worth)):
        values = np.maximum(worth, best).mean(axis=1)
        place = int(np.argmax(values))
        if not values[place] > best.mean() + _LEAST_GAIN:
            break
        chosen.append(place)
        best = np.maximum(best, worth[place])
    return chosen


def _portfolio_candidates(
    sources: Sequence[SourceStudy], space: SearchSpace
) -> Iterator[tuple[WarmStartTrial, list[float]]]:
    """Yield the best trials of the sources that the space can propose, each structure once, with their quantiles.

    The quantiles are those of the same configuration in all sources, whose ranges of rates may differ.
    """
    if not space.trees:
        return
    encoding = Encoding(space)
    known: set[object] = set()
    for source in sources:
        found = 0
        for trial in source.ranked:
            encoded = None
            with suppress(SearchSpaceError):  # the trial may not be in this space
                encoded = encoding.encode(trial) if trial.method is None else None
            if encoded is None:
                continue
            key = tuple(side and (side.parts, side.layers) for side in (encoded.attention, encoded.ffn))
            if key in known:
                continue
            known.add(key)
            proposal = dict(encoding.candidate(encoded).parameters)
            start = WarmStartTrial(study=source.name, trial=trial.number, proposal=proposal)
            yield start, [one.quantile(_features_in(one, source, trial)) for one in sources]
            found += 1
            if found == _CANDIDATES_PER_SOURCE:
                break


def _features_in(other: SourceStudy, own: SourceStudy, trial: TrialRecord) -> Features:
    """Return the features of a trial of one source in another source."""

    def rate_in(form: str, unit_lr: float) -> float:
        ranges, others = own.ranges, other.ranges
        is_known = form in ranges and form in others
        return unit_lr_of(lr_at(unit_lr, *ranges[form]), *others[form]) if is_known else unit_lr

    return _with_rates(own.features(trial), trial.forms, rate_in)


def _with_rates(
    features: Features, forms: tuple[str | None, str | None], rate_in: Callable[[str, float], float]
) -> Features:
    """Return the features at other learning rates, each a function of its form and its position in the range."""
    attention, ffn = (
        side if side is None or form is None else replace(side, unit_lr=rate_in(form, side.unit_lr))
        for side, form in zip(features, forms, strict=True)
    )
    return attention, ffn


def _weakest(sources: Sequence[SourceStudy], methods: Sequence[str], count: int) -> tuple[str, ...]:
    """Return the ``count`` published methods whose best quantile has the lowest mean over the sources."""
    worth = []
    for method in methods:
        tried = [
            [one.quantile(one.features(trial)) for trial in one.ranked if trial.method == method] for one in sources
        ]
        best = [max(quantiles) for quantiles in tried if quantiles]
        if best and method != _KEPT:
            worth.append((sum(best) / len(best), method))
    return tuple(method for _, method in sorted(worth)[:count])


def _rates(sources: Sequence[SourceStudy], space: SearchSpace) -> dict[str, ExpectedRate]:
    """Return the expected best learning rates of the forms of a space."""
    found = {}
    for form, (low, high) in space.options.learning_rates.items():
        optima = [one for source in sources if (one := _optimum(source, form)) is not None]
        if optima and low < high:
            found[form] = combine_optima(optima, low, high)
    return found


def _optimum(source: SourceStudy, form: str) -> tuple[float, float] | None:
    """Return mean and deviation of the natural logarithm of a form's best rate; None if it was not tried."""
    structures = [one for one in source.ranked if form in one.forms][:_STRUCTURES_PER_FORM]
    if not structures or form not in source.ranges:
        return None
    low, high = source.ranges[form]

    def at(place: float) -> Callable[[str, float], float]:
        return lambda name, own: place if name == form else own

    features = [
        _with_rates(source.features(one), one.forms, at(place)) for one in structures for place in _GRID.tolist()
    ]
    means, covariance = source.posterior.joint(features)
    grid, count = len(_GRID), len(structures)
    mean = means.reshape(count, grid).mean(axis=0)
    spread = covariance.reshape(count, grid, count, grid).mean(axis=(0, 2))
    draws = np.random.default_rng(hashed_seed("optimum", form)).standard_normal((_DRAWS, grid))
    values, vectors = np.linalg.eigh(spread)
    drawn = mean + (draws * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    best = _GRID[np.argmax(drawn, axis=1)]
    half = math.log(high / low) / 2
    return math.log(lr_at(float(best.mean()), low, high)), half * float(best.std())


def combine_optima(optima: Sequence[tuple[float, float]], low: float, high: float) -> ExpectedRate:
    """Return the expected best rate on another task: a product of normal distributions.

    The prior has its mean at ``BEST_UNIT_LR`` and the deviation ``UNKNOWN``. The best rates of the tasks vary about the
    form's mean, with the deviation ``BETWEEN_TASKS``.

    Args:
        optima: Means and deviations of the natural logarithm on some tasks.
        low: Lowest rate of the search; its logarithm and that of ``high`` define the unit of the deviations.
        high: Highest rate of the search.
    """
    half = math.log(high / low) / 2
    between = BETWEEN_TASKS * half
    known = [(math.log(lr_at(BEST_UNIT_LR, low, high)), UNKNOWN * half)]
    known += [(mean, math.hypot(deviation, between)) for mean, deviation in optima]
    weights = [deviation**-2 for _, deviation in known]
    mean = sum(weight * one for weight, (one, _) in zip(weights, known, strict=True)) / sum(weights)
    return ExpectedRate(rate=math.exp(mean), deviation=math.hypot(sum(weights) ** -0.5, between))
