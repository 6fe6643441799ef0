"""Statistics of a few scores: spread, paired bootstrap interval, permutation tests, Holm's correction.

Runs come in pairs: the runs of two configurations with one seed share the order of the data. Two permutation tests
use that differently. Exchange of runs asks how often the runs of both, dealt out anew, differ in the mean as much as
they did; it is exact when runs are independent and conservative when the runs of a pair resemble one another. Sign
flips ask the same of the differences of the pairs; they are exact in both cases and see more where pairs resemble one
another, but ``n`` pairs have only ``2 ** n`` of them: with 5 the smallest p-value is 0.0625, so nothing could ever be
shown. Hence the number of seeds and of comparisons, known before anything is measured, decides which test is used.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

ALPHA = 0.05
"""A p-value at most so large shows a difference."""

LEVEL = 0.95
"""Of intervals."""

RESAMPLES = 20_000
LARGEST_ENUMERATION = 200_000

_SEED = 0
_ROUNDING = 1e-9
_BATCH = 20_000

Scores = npt.NDArray[np.float64]


class PermutationTest(StrEnum):
    """How two samples are permuted."""

    EXCHANGE = "exchange of runs"
    SIGN_FLIPS = "sign flips of pairs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Scores of one configuration over seeds.

    Attributes:
        deviation: Their standard deviation, with n - 1; None for a single score.
    """

    mean: float
    deviation: float | None
    median: float


def spread(scores: Sequence[float]) -> Spread | None:
    """Mean, standard deviation and median; None without a score."""
    if not scores:
        return None
    values = np.asarray(scores, dtype=np.float64)
    deviation = float(values.std(ddof=1)) if len(values) > 1 else None
    return Spread(mean=float(values.mean()), deviation=deviation, median=float(np.median(values)))


def mean_interval(scores: Sequence[float]) -> tuple[float, float] | None:
    """Student's interval of the mean of seeds that are drawn from a normal distribution; None below two scores."""
    if len(scores) < 2:
        return None
    values = _values(scores)
    from scipy import stats  # type: ignore[import-untyped]

    reach = float(stats.t.ppf((1 + LEVEL) / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    return float(values.mean()) - reach, float(values.mean()) + reach


def paired_interval(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean difference, by resampling pairs; the same at every call."""
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
    """Two-sided p-value of the difference of means of pairs.

    Every permutation counts where there are at most `LARGEST_ENUMERATION`; else so many are drawn, the same at every
    call, and the one that was observed counts with them.
    """
    ours, theirs = _values(first), _values(second)
    unit = _ROUNDING * float(np.abs([*ours, *theirs]).max()) or 1.0  # of scores that are all 0

    def difference(one: Scores, other: Scores, axis: int = -1) -> Scores:
        """Of the sums, in whole units, so that what is equal but for rounding is equal."""
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
    """Sign flips where even the smallest p-value they can have, corrected, is well below `ALPHA`; else exchange."""
    corrected = comparisons * smallest_p(pairs, PermutationTest.SIGN_FLIPS)
    return PermutationTest.SIGN_FLIPS if corrected <= ALPHA / 2 else PermutationTest.EXCHANGE


def smallest_p(pairs: int, test: PermutationTest) -> float:
    """The smallest two-sided p-value that a test of so many pairs can have."""
    return 2 / (2**pairs if test is PermutationTest.SIGN_FLIPS else math.comb(2 * pairs, pairs))


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm 1979: p-values that hold for all comparisons together, in the order given."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * p_values[index]))
        adjusted[index] = largest
    return tuple(adjusted)


def _values(scores: Sequence[float]) -> Scores:
    return np.asarray(scores, dtype=np.float64)
