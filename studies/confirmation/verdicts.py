"""Comparisons of the winner with baselines: difference, uncertainty and verdict."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

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
"""Least number of pairs of scores for a comparison."""

_MOST_SEEDS = 100

SeedScores = Sequence[float | None]


class ConfirmationVerdict(StrEnum):
    """Verdict on the winner against a baseline."""

    BEATS = "beats"
    TIES = "ties"
    NOT_SHOWN = "not shown"
    LOSES = "loses"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Comparison of the winner with one baseline.

    Attributes:
        pairs: Number of seeds with a score of both.
        difference: Mean of winner minus baseline over the pairs; None with fewer than `LEAST_PAIRS`.
        low: Lower end of its 95% paired bootstrap interval.
        high: Upper end of its 95% paired bootstrap interval.
        test: Test of the p-value.
        p_value: Two-sided p-value of this comparison alone.
        adjusted_p: P-value corrected by Holm for all comparisons of the confirmation.
        smallest_adjusted_p: Smallest p-value that the numbers of pairs and comparisons allow.
        verdict: Beats or loses if ``adjusted_p`` is at most 0.05; else ties, or not shown if the interval excludes 0.
            Undecided with too few pairs, or if the better one failed with more seeds, so that its best runs alone
            remain.
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
        """Return the comparison as a row of a frame."""
        names = ("difference", "low", "high", "p_value", "adjusted_p", "pairs")
        return {**{name: getattr(self, name) for name in names}, "verdict": self.verdict.value}


def compare(winner: SeedScores, baselines: Mapping[str, SeedScores]) -> tuple[Comparison, ...]:
    """Return the comparisons of the winner with every baseline, corrected for their number.

    Args:
        winner: Score of each seed; None where the trial failed.
        baselines: SeedScores of the baselines by label, seeds in the same order.
    """
    return compare_pairs({label: (winner, scores) for label, scores in baselines.items()})


def compare_pairs(scores: Mapping[str, tuple[SeedScores, SeedScores]]) -> tuple[Comparison, ...]:
    """Return the comparisons of pairs, the first minus the second, corrected for their number.

    Args:
        scores: SeedScores of each seed of both by the label of the second; None where a trial failed.
    """
    pairs = {label: _both(first, second) for label, (first, second) in scores.items()}
    tests = {label: chosen_test(len(ours), len(pairs)) for label, (ours, _) in pairs.items()}
    p_values = [
        permutation_p(ours, theirs, tests[label]) if len(ours) >= LEAST_PAIRS else None
        for label, (ours, theirs) in pairs.items()
    ]
    # pairs that cannot be compared count among the comparisons
    adjusted = holm([1.0 if p_value is None else p_value for p_value in p_values])
    return tuple(
        _comparison(label, scores[label], tests[label], p_value, adjusted_p, len(pairs))
        for label, p_value, adjusted_p in zip(scores, p_values, adjusted, strict=True)
    )


def least_seeds(comparisons: int) -> int:
    """Return the smallest number of seeds with which each of so many comparisons can show a difference."""
    for seeds in range(LEAST_PAIRS, _MOST_SEEDS):
        if comparisons * smallest_p(seeds, chosen_test(seeds, comparisons)) <= ALPHA:
            return seeds
    return _MOST_SEEDS


def seeds_for_pairs(comparisons: int) -> int:
    """Return the smallest number of seeds from which on so many comparisons use sign flips."""
    seeds, flips = range(LEAST_PAIRS, _MOST_SEEDS), PermutationTest.SIGN_FLIPS
    return next((count for count in seeds if chosen_test(count, comparisons) is flips), _MOST_SEEDS)


def _both(first: SeedScores, second: SeedScores) -> tuple[list[float], list[float]]:
    """Return the scores of the seeds that both have."""
    found = [(ours, theirs) for ours, theirs in zip(first, second, strict=True) if None not in (ours, theirs)]
    return [ours for ours, _ in found if ours is not None], [theirs for _, theirs in found if theirs is not None]


def _comparison(
    label: str,
    scores: tuple[SeedScores, SeedScores],
    test: PermutationTest,
    p_value: float | None,
    adjusted_p: float,
    comparisons: int,
) -> Comparison:
    ours, theirs = _both(*scores)
    found: dict[str, Any] = dict.fromkeys(("difference", "low", "high", "adjusted_p"))
    verdict = ConfirmationVerdict.UNDECIDED
    if p_value is not None:
        difference = sum(ours) / len(ours) - sum(theirs) / len(theirs)
        low, high = paired_interval(ours, theirs)
        found = {"difference": difference, "low": low, "high": high, "adjusted_p": adjusted_p}
        verdict = _verdict(scores, difference, adjusted_p, holds_zero=low <= 0 <= high)
    return Comparison(
        baseline=label,
        pairs=len(ours),
        test=test,
        p_value=p_value,
        smallest_adjusted_p=min(1.0, comparisons * smallest_p(len(ours), test)),
        verdict=verdict,
        **found,
    )


def _verdict(
    scores: tuple[SeedScores, SeedScores], difference: float, adjusted_p: float, *, holds_zero: bool
) -> ConfirmationVerdict:
    if adjusted_p > ALPHA:
        return ConfirmationVerdict.TIES if holds_zero else ConfirmationVerdict.NOT_SHOWN
    ahead, behind = scores if difference > 0 else scores[::-1]
    if ahead.count(None) > behind.count(None):
        return ConfirmationVerdict.UNDECIDED
    return ConfirmationVerdict.BEATS if difference > 0 else ConfirmationVerdict.LOSES
