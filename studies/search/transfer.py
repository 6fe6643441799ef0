"""What earlier studies teach a new one: a portfolio of configurations, and where the best rates of forms are.

Everything goes by posterior means of the model of the search, never by scores: the best of many noisy scores is luck.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from search_space.errors import SearchSpaceError
from search_space.space.space import SearchSpace
from studies.records import TrialState
from studies.search.warm_start import ExpectedRate, WarmStart, WarmStartTrial
from studies.seeds import hashed_seed
from studies.surrogate.encoding import Encoding
from studies.surrogate.features import Features, lr_at, unit_lr_of
from studies.surrogate.observation import Observation
from studies.surrogate.posterior import SurrogateFitter
from studies.surrogate.prior_mean import BEST_UNIT_LR
from studies.surrogate.structure_distances import Array

Ranges = Mapping[str, tuple[float, float]]

_BETTING = 24
"""Structures of every source that can get into the portfolio: its best."""

_ALIKE = 8
"""The best structures with a form, over which its response to the rate is averaged."""

_GRID = np.linspace(-1.0, 1.0, 33)
_DRAWS = 256

UNKNOWN = 0.35
"""Deviation of the best rate of a form about ``BEST_UNIT_LR`` where nothing is known, in halves of its range."""

BETWEEN_TASKS = 0.2
"""The same about the form's own mean, from one task to the next."""

LARGEST_PORTFOLIO = 6
"""Configurations of a portfolio."""

_LEAST_GAIN = 1e-9

_KEPT = "head_only"
"""The reference that everything is compared with: it keeps its place."""


class SourceStudy:
    """An earlier study, and what is believed after it.

    Attributes:
        name: Of the study.
        ranges: Lowest and highest learning rate of every form there.
        posterior: The posterior of its configurations.
        view: What the model sees of one of its trials.
        ranked: Its trials that were read and have not failed, replicates aside, the most promising first.
    """

    def __init__(
        self,
        *,
        name: str,
        history: Sequence[Observation],
        features_of: Callable[[Observation], Features],
        ranges: Ranges,
    ) -> None:
        """Fit the model.

        Args:
            name: Of the study.
            history: Its trials, what was read of them included.
            features_of: What the model sees of one of them.
            ranges: Lowest and highest learning rate of every form there.
        """
        self.name, self.ranges = name, ranges
        fitter = SurrogateFitter(features_of)
        self.posterior, self.view = fitter.posterior(history), fitter.features
        heard = [one for one in history if one.readings and one.state is not TrialState.FAILED]
        trials = [one for one in heard if one.origin != "replicate"]
        means, _ = self.posterior.predict([self.view(one) for one in trials])
        self.ranked = [trials[place] for place in np.argsort(-means, kind="stable")]
        self._sorted = np.sort(means)

    def quantile(self, view: Features) -> float:
        """The share of its trials that are expected to be no better than a configuration."""
        (mean,), _ = self.posterior.predict([view])
        return float(np.searchsorted(self._sorted, mean + 1e-9, side="right")) / len(self._sorted)


def lessons_of(sources: Sequence[SourceStudy], space: SearchSpace, *, replaceable: Sequence[str] = ()) -> WarmStart:
    """What earlier studies teach a study of a space.

    Args:
        sources: What is learned from.
        space: Of the new study.
        replaceable: Published methods that would come first, of which the weakest make room.
    """
    bets = list(_bets(sources, space))
    chosen = portfolio(np.array([worth for _, worth in bets])) if bets else []
    starts = tuple(bets[place][0] for place in chosen)
    return WarmStart(
        sources=tuple(source.name for source in sources),
        starts=starts,
        replaced=_weakest(sources, replaceable, len(starts)),
        rates=_rates(sources, space),
    )


def portfolio(worth: Array, most: int = LARGEST_PORTFOLIO) -> list[int]:
    """The rows that are chosen greedily for the mean over columns of the best entry; the best one first.

    The value of a set grows by less the more it holds, so a greedy choice has at least 1 - 1/e of what the best choice
    of so many has (Nemhauser et al. 1978). It ends when no row adds anything.

    Args:
        worth: Of every configuration on every task, at least 0, (C, S).
        most: How many at most.
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


def _bets(sources: Sequence[SourceStudy], space: SearchSpace) -> Iterator[tuple[WarmStartTrial, list[float]]]:
    """What the sources believe in most and the space can propose, every structure once and at its best rates.

    With each come its quantiles in all sources, which see the same rates at other places of their ranges.
    """
    if not space.trees:
        return
    encoding = Encoding(space)
    known: set[object] = set()
    for source in sources:
        found = 0
        for trial in source.ranked:
            encoded = None
            with suppress(SearchSpaceError):  # of a trial that is not in this space
                encoded = encoding.encode(trial) if trial.method is None else None
            if encoded is None:
                continue
            key = tuple(side and (side.parts, side.layers) for side in (encoded.attention, encoded.ffn))
            if key in known:
                continue
            known.add(key)
            proposal = dict(encoding.candidate(encoded).parameters)
            start = WarmStartTrial(study=source.name, trial=trial.number, proposal=proposal)
            yield start, [one.quantile(_seen_by(one, source, trial)) for one in sources]
            found += 1
            if found == _BETTING:
                break


def _seen_by(other: SourceStudy, own: SourceStudy, trial: Observation) -> Features:
    """What a source sees of a trial of another one."""

    def moved(form: str, unit_lr: float) -> float:
        ranges, others = own.ranges, other.ranges
        is_known = form in ranges and form in others
        return unit_lr_of(lr_at(unit_lr, *ranges[form]), *others[form]) if is_known else unit_lr

    return _rerated(own.view(trial), trial.forms, moved)


def _rerated(view: Features, forms: tuple[str | None, str | None], moved: Callable[[str, float], float]) -> Features:
    """A view at other rates, each made of its form and of its place in the range of that."""
    attention, ffn = (
        side if side is None or form is None else replace(side, unit_lr=moved(form, side.unit_lr))
        for side, form in zip(view, forms, strict=True)
    )
    return attention, ffn


def _weakest(sources: Sequence[SourceStudy], methods: Sequence[str], count: int) -> tuple[str, ...]:
    """So many of some published methods: those whose best quantile is the worst in the mean over the sources."""
    worth = []
    for method in methods:
        tried = [[one.quantile(one.view(trial)) for trial in one.ranked if trial.method == method] for one in sources]
        best = [max(quantiles) for quantiles in tried if quantiles]
        if best and method != _KEPT:
            worth.append((sum(best) / len(best), method))
    return tuple(method for _, method in sorted(worth)[:count])


def _rates(sources: Sequence[SourceStudy], space: SearchSpace) -> dict[str, ExpectedRate]:
    """Where the best rates of the forms of a space are expected."""
    found = {}
    for form, (low, high) in space.options.learning_rates.items():
        optima = [one for source in sources if (one := _optimum(source, form)) is not None]
        if optima and low < high:
            found[form] = combined(optima, low, high)
    return found


def _optimum(source: SourceStudy, form: str) -> tuple[float, float] | None:
    """Mean and deviation of the natural logarithm of the best rate of a form; None if it was not tried there."""
    alike = [one for one in source.ranked if form in one.forms][:_ALIKE]
    if not alike or form not in source.ranges:
        return None
    low, high = source.ranges[form]

    def at(place: float) -> Callable[[str, float], float]:
        return lambda name, own: place if name == form else own

    views = [_rerated(source.view(one), one.forms, at(place)) for one in alike for place in _GRID.tolist()]
    means, covariance = source.posterior.joint(views)
    grid, count = len(_GRID), len(alike)
    mean = means.reshape(count, grid).mean(axis=0)
    spread = covariance.reshape(count, grid, count, grid).mean(axis=(0, 2))
    draws = np.random.default_rng(hashed_seed("optimum", form)).standard_normal((_DRAWS, grid))
    values, vectors = np.linalg.eigh(spread)
    drawn = mean + (draws * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    best = _GRID[np.argmax(drawn, axis=1)]
    half = math.log(high / low) / 2
    return math.log(lr_at(float(best.mean()), low, high)), half * float(best.std())


def combined(optima: Sequence[tuple[float, float]], low: float, high: float) -> ExpectedRate:
    """Where the best rate is expected on another task, from where it was on some: normal distributions, multiplied.

    Before any task it is expected at ``BEST_UNIT_LR`` with the deviation ``UNKNOWN``; each task has its own about the
    form's mean, with the deviation ``BETWEEN_TASKS``.

    Args:
        optima: Means and deviations of the natural logarithm.
        low: Lowest rate that is searched, whose logarithm is the unit of the deviations with that of the highest.
        high: The highest.
    """
    half = math.log(high / low) / 2
    between = BETWEEN_TASKS * half
    known = [(math.log(lr_at(BEST_UNIT_LR, low, high)), UNKNOWN * half)]
    known += [(mean, math.hypot(deviation, between)) for mean, deviation in optima]
    weights = [deviation**-2 for _, deviation in known]
    mean = sum(weight * one for weight, (one, _) in zip(weights, known, strict=True)) / sum(weights)
    return ExpectedRate(rate=math.exp(mean), deviation=math.hypot(sum(weights) ** -0.5, between))
