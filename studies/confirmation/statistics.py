"""Statistics of few scores: spread, paired bootstrap interval, permutation tests, Holm's correction.

Runs are paired: the runs of two configurations with one seed share the order of the data. Two permutation tests are
used. Exchange of runs counts how often the runs of both, randomly reassigned, differ as much in the mean. It is exact
for independent runs, and conservative if the runs of a pair are similar. Sign flips do the same with the differences
of the pairs. They are exact in both cases and have more power for similar pairs. But ``n`` pairs allow only ``2 ** n``
of them: with 5 pairs the smallest p-value is 0.0625. So the numbers of seeds and comparisons, which are fixed in
advance, decide which test is used.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

ALPHA = 0.05
"""Significance level."""

LEVEL = 0.95
"""Level of intervals."""

RESAMPLES = 20_000
LARGEST_ENUMERATION = 200_000

_SEED = 0
_ROUNDING = 1e-9
_BATCH = 20_000

Scores = npt.NDArray[np.float64]


class PermutationTest(StrEnum):
    """Kind of permutation test."""

    EXCHANGE = "exchange of runs"
    SIGN_FLIPS = "sign flips of pairs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Spread of the scores of one configuration over seeds.

    Attributes:
        deviation: Standard deviation with n - 1; None for a single score.
        lowest: Score of the worst seed.
    """

    mean: float
    deviation: float | None
    lowest: float


def spread(scores: Sequence[float]) -> Spread | None:
    """Return mean, standard deviation and lowest score; None without a score."""
    if not scores:
        return None
    values = np.asarray(scores, dtype=np.float64)
    deviation = float(values.std(ddof=1)) if len(values) > 1 else None
    return Spread(mean=float(values.mean()), deviation=deviation, lowest=float(values.min()))


def mean_interval(scores: Sequence[float]) -> tuple[float, float] | None:
    """Return Student's interval of the mean of normal scores; None below two scores."""
    if len(scores) < 2:
        return None
    values = _values(scores)
    from scipy import stats  # type: ignore[import-untyped]

    reach = float(stats.t.ppf((1 + LEVEL) / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    return float(values.mean()) - reach, float(values.mean()) + reach


def paired_interval(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """Return the percentile bootstrap interval of the mean difference by resampling pairs, with a fixed seed."""
    from scipy import stats

    found = stats.bootstrap(
        (_values(first) - _values(second),),
        np.mean,
        n_resamples=RESAMPLES,
        confidence_level=LEVEL,
        method="percentile",
        rng=np.random.default_rng(_SEED),
    ).confidence_interval
    return float(found.low), float(found.high)


def permutation_p(first: Sequence[float], second: Sequence[float], test: PermutationTest) -> float:
    """Return the two-sided p-value of the difference of means of pairs.

    All permutations are enumerated up to `LARGEST_ENUMERATION`; else as many are drawn with a fixed seed, and the
    observed one is added.
    """
    ours, theirs = _values(first), _values(second)
    unit = _ROUNDING * float(np.abs([*ours, *theirs]).max()) or 1.0  # of scores that are all 0

    def difference(one: Scores, other: Scores, axis: int = -1) -> Scores:
        """Return the difference of sums in whole units, so that equal values compare equal despite rounding."""
        units: Scores = np.abs(np.round((one.sum(axis=axis) - other.sum(axis=axis)) / unit))
        return units

    from scipy import stats

    found = stats.permutation_test(
        (ours, theirs),
        difference,
        permutation_type="samples" if test is PermutationTest.SIGN_FLIPS else "independent",
        n_resamples=LARGEST_ENUMERATION,
        batch=_BATCH,
        alternative="greater",
        rng=np.random.default_rng(_SEED),
    )
    return float(found.pvalue)


def chosen_test(pairs: int, comparisons: int) -> PermutationTest:
    """Return sign flips if their smallest corrected p-value is well below `ALPHA`; else exchange."""
    corrected = comparisons * smallest_p(pairs, PermutationTest.SIGN_FLIPS)
    return PermutationTest.SIGN_FLIPS if corrected <= ALPHA / 2 else PermutationTest.EXCHANGE


def smallest_p(pairs: int, test: PermutationTest) -> float:
    """Return the smallest two-sided p-value of a test with so many pairs."""
    return 2 / (2**pairs if test is PermutationTest.SIGN_FLIPS else math.comb(2 * pairs, pairs))


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return p-values corrected for all comparisons by Holm 1979, in the order given."""
    order = np.argsort(p_values, kind="stable")
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(np.maximum.accumulate(_values(p_values)[order] * np.arange(len(order), 0, -1)), 1.0)
    return tuple(adjusted.tolist())


def _values(scores: Sequence[float]) -> Scores:
    return np.asarray(scores, dtype=np.float64)
