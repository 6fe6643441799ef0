"""Winner minus baseline: by how much, how sure, and what may be said of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from studies.confirmation.statistics import (
    ALPHA,
    PermutationTest,
    chosen_test,
    holm,
    paired_interval,
    permutation_p,
    smallest_p,
)

LEAST_PAIRS = 2
"""Fewer pairs of scores are not compared."""

_MOST_SEEDS = 100

Scores = Sequence[float | None]


class ConfirmationVerdict(StrEnum):
    """What the winner does to a baseline."""

    BEATS = "beats"
    TIES = "ties"
    NOT_SHOWN = "not shown"
    LOSES = "loses"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The winner beside one baseline.

    Attributes:
        pairs: Seeds with a score of both.
        difference: Mean of winner minus baseline over the pairs; None with fewer than `LEAST_PAIRS`.
        low: Lower end of its 95% paired bootstrap interval.
        high: Upper end.
        test: How the p-value was computed.
        p_value: Two-sided, of this comparison alone.
        adjusted_p: Corrected by Holm for all comparisons of the confirmation.
        smallest_adjusted_p: The smallest that the number of pairs and of comparisons allows.
        verdict: Beats or loses where ``adjusted_p`` is at most 0.05; else ties, or not shown where the interval
            leaves out 0. Undecided with too few pairs, or when the one that is ahead failed with more seeds than the
            other, so that its best runs alone are compared.
    """

    baseline: str
    pairs: int
    difference: float | None
    low: float | None
    high: float | None
    test: PermutationTest
    p_value: float | None
    adjusted_p: float | None
    smallest_adjusted_p: float
    verdict: ConfirmationVerdict

    def entry(self) -> dict[str, int | float | str | None]:
        """What it says, as a row of a frame."""
        names = ("difference", "low", "high", "p_value", "adjusted_p", "pairs")
        return {**{name: getattr(self, name) for name in names}, "verdict": self.verdict.value}


@dataclass(frozen=True, slots=True, kw_only=True)
class _SeedPairs:
    """Scores of the seeds that both have, and how many seeds each one lacks."""

    ours: tuple[float, ...]
    theirs: tuple[float, ...]
    ours_missing: int
    theirs_missing: int

    @property
    def difference(self) -> float:
        return sum(self.ours) / len(self.ours) - sum(self.theirs) / len(self.theirs)


def compare(winner: Scores, baselines: Mapping[str, Scores]) -> tuple[Comparison, ...]:
    """The winner beside every baseline, corrected for their number.

    Args:
        winner: One score per seed; None where the trial failed.
        baselines: The same by label, seeds in the same order.
    """
    return compare_pairs({label: (winner, scores) for label, scores in baselines.items()})


def compare_pairs(scores: Mapping[str, tuple[Scores, Scores]]) -> tuple[Comparison, ...]:
    """The first of each two minus the second, corrected for the number of pairs.

    Args:
        scores: One score per seed of both by the label of the second; None where a trial failed.
    """
    pairs = {label: _pairs(first, second) for label, (first, second) in scores.items()}
    tests = {label: chosen_test(len(one.ours), len(pairs)) for label, one in pairs.items()}
    p_values = [_p_value(one, tests[label]) for label, one in pairs.items()]
    # what cannot be compared counts among the comparisons all the same
    adjusted = holm([1.0 if p_value is None else p_value for p_value in p_values])
    return tuple(
        _comparison(label, one, tests[label], p_value, adjusted_p, len(pairs))
        for (label, one), p_value, adjusted_p in zip(pairs.items(), p_values, adjusted, strict=True)
    )


def least_seeds(comparisons: int) -> int:
    """The smallest number of seeds with which some difference could be shown in each of so many comparisons."""
    for seeds in range(LEAST_PAIRS, _MOST_SEEDS):
        if comparisons * smallest_p(seeds, chosen_test(seeds, comparisons)) <= ALPHA:
            return seeds
    return _MOST_SEEDS


def seeds_for_pairs(comparisons: int) -> int:
    """The smallest number of seeds from which on so many comparisons go by sign flips of pairs."""
    seeds, flips = range(LEAST_PAIRS, _MOST_SEEDS), PermutationTest.SIGN_FLIPS
    return next((count for count in seeds if chosen_test(count, comparisons) is flips), _MOST_SEEDS)


def _pairs(winner: Scores, baseline: Scores) -> _SeedPairs:
    both = [(ours, theirs) for ours, theirs in zip(winner, baseline, strict=True) if None not in (ours, theirs)]
    return _SeedPairs(
        ours=tuple(ours for ours, _ in both if ours is not None),
        theirs=tuple(theirs for _, theirs in both if theirs is not None),
        ours_missing=sum(score is None for score in winner),
        theirs_missing=sum(score is None for score in baseline),
    )


def _p_value(pairs: _SeedPairs, test: PermutationTest) -> float | None:
    return permutation_p(pairs.ours, pairs.theirs, test) if len(pairs.ours) >= LEAST_PAIRS else None


def _comparison(
    label: str, pairs: _SeedPairs, test: PermutationTest, p_value: float | None, adjusted_p: float, comparisons: int
) -> Comparison:
    number = len(pairs.ours)
    is_compared = p_value is not None
    interval = paired_interval(pairs.ours, pairs.theirs) if is_compared else None
    return Comparison(
        baseline=label,
        pairs=number,
        difference=pairs.difference if is_compared else None,
        low=None if interval is None else interval[0],
        high=None if interval is None else interval[1],
        test=test,
        p_value=p_value,
        adjusted_p=adjusted_p if is_compared else None,
        smallest_adjusted_p=min(1.0, comparisons * smallest_p(number, test)),
        verdict=ConfirmationVerdict.UNDECIDED if interval is None else _verdict(pairs, adjusted_p, interval),
    )


def _verdict(pairs: _SeedPairs, adjusted_p: float, interval: tuple[float, float]) -> ConfirmationVerdict:
    if adjusted_p > ALPHA:
        return ConfirmationVerdict.TIES if interval[0] <= 0 <= interval[1] else ConfirmationVerdict.NOT_SHOWN
    is_ahead = pairs.difference > 0
    ahead, behind = pairs.ours_missing, pairs.theirs_missing
    if not is_ahead:
        ahead, behind = behind, ahead
    if ahead > behind:
        return ConfirmationVerdict.UNDECIDED
    return ConfirmationVerdict.BEATS if is_ahead else ConfirmationVerdict.LOSES
