"""Statistics of confirmations against closed forms and simulated studies."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from studies.confirmation import statistics
from studies.confirmation.statistics import (
    ALPHA,
    PermutationTest,
    chosen_test,
    holm,
    mean_interval,
    paired_interval,
    permutation_p,
    spread,
)
from studies.confirmation.verdicts import ConfirmationVerdict, compare, least_seeds, seeds_for_pairs


def scores(
    seeds: int, *, difference: float = 0.0, seed: int = 0, shared: float = 0.0
) -> tuple[list[float], list[float]]:
    """Draw scores of two configurations around 0.8 with a deviation of 0.01, of which seeds may share a part."""
    draw = np.random.default_rng(seed)
    common = draw.normal(0, 0.01 * math.sqrt(shared), seeds)
    own = draw.normal(0, 0.01 * math.sqrt(1 - shared), (2, seeds))
    return list(0.8 + difference + common + own[0]), list(0.8 + common + own[1])


def enumerated_p(first: Sequence[float], second: Sequence[float], test: PermutationTest) -> Fraction:
    """Compute the exact share of all permutations whose difference is at least as large."""
    ours, theirs = ([Fraction(score).limit_denominator(10**12) for score in one] for one in (first, second))
    observed = abs(sum(ours) - sum(theirs))
    if test is PermutationTest.SIGN_FLIPS:
        differences = [one - other for one, other in zip(ours, theirs, strict=True)]
        permuted = [
            sum(sign * each for sign, each in zip(signs, differences, strict=True))
            for signs in product((1, -1), repeat=len(differences))
        ]
    else:
        pooled = ours + theirs
        permuted = [2 * sum(half) - sum(pooled) for half in combinations(pooled, len(ours))]
    return Fraction(sum(abs(one) >= observed for one in permuted), len(permuted))


@pytest.mark.parametrize("test", PermutationTest)
@pytest.mark.parametrize("seeds", [2, 3, 5, 7])
@pytest.mark.parametrize("difference", [0.0, 0.012, -0.03])
def test_exact_p_values_are_those_of_the_closed_form(test, seeds, difference):
    first, second = scores(seeds, difference=difference, seed=seeds)
    assert permutation_p(first, second, test) == pytest.approx(float(enumerated_p(first, second, test)), abs=1e-12)


def test_p_value_of_one_sided_pairs_is_two_over_permutations():
    first, second = [0.9, 0.91, 0.93, 0.95, 0.99], [0.5, 0.51, 0.52, 0.55, 0.6]
    assert permutation_p(first, second, PermutationTest.SIGN_FLIPS) == pytest.approx(2 / 2**5, abs=1e-15)
    assert permutation_p(first, second, PermutationTest.EXCHANGE) == pytest.approx(2 / 252, abs=1e-15)


@pytest.mark.parametrize("test", PermutationTest)
@pytest.mark.parametrize("unit", [1, 100, 1000, 3])
def test_scores_that_tie_but_for_rounding_tie(test, unit):
    first, second = [24, 26, 26, 28], [24, 24, 26, 25]
    exact = pytest.approx(float(enumerated_p(first, second, test)), abs=1e-15)
    assert permutation_p([score / unit for score in first], [score / unit for score in second], test) == exact


@pytest.mark.parametrize("test", PermutationTest)
def test_sampled_p_values_are_near_the_exact_ones(test, monkeypatch):
    first, second = scores(7, difference=0.008, seed=3)
    exact = permutation_p(first, second, test)
    monkeypatch.setattr(statistics, "LARGEST_ENUMERATION", 100)
    rough = permutation_p(first, second, test)
    assert rough != exact
    assert rough == pytest.approx(exact, abs=0.15)
    assert rough > 0


def test_sampled_permutations_give_smallest_p_to_large_gap():
    first, second = scores(40, difference=0.1)
    assert permutation_p(first, second, PermutationTest.SIGN_FLIPS) == 1 / 200_001
    assert permutation_p(first, second, PermutationTest.EXCHANGE) == 1 / 200_001


def test_equal_scores_have_a_p_value_of_one_and_an_interval_of_one_point():
    same = [0.81, 0.79, 0.80, 0.82, 0.80]
    assert [permutation_p(same, same, test) for test in PermutationTest] == [1.0, 1.0]
    assert paired_interval(same, same) == (0.0, 0.0)


def test_bootstrap_of_two_pairs_has_three_possible_means():
    # resamples of {a, b} have the means a, (a + b) / 2 and b with odds of 1 : 2 : 1, so both tails are the ends
    assert paired_interval([0.8, 0.9], [0.7, 0.6]) == pytest.approx((0.1, 0.3), abs=1e-12)


def test_bootstrap_of_skewed_pairs_equals_full_enumeration():
    differences = [0.0, 0.1, 0.2, 0.3, 3.0]
    means = np.array([np.mean(drawn) for drawn in product(differences, repeat=5)])
    low, high = np.quantile(means, [0.025, 0.975])
    assert (low, high) == pytest.approx((0.08, 1.88))
    # reflected about the mean it would be (-0.44, 1.36), and corrected for its bias (0.10, 2.42)
    assert paired_interval(differences, [0.0] * 5) == pytest.approx((low, high), abs=1e-9)


def test_bootstrap_of_many_pairs_is_nearly_normal():
    first, second = scores(400, difference=0.01, shared=0.5)
    differences = np.subtract(first, second)
    half = 1.959964 * differences.std(ddof=1) / math.sqrt(len(differences))
    expected = (differences.mean() - half, differences.mean() + half)
    assert paired_interval(first, second) == pytest.approx(expected, abs=0.06 * half)


def test_spread_has_mean_deviation_and_lowest_score():
    found, reference = spread([0.2, 0.1, 0.6]), stats.describe([0.1, 0.2, 0.6])
    assert (found.mean, found.deviation) == pytest.approx((reference.mean, math.sqrt(reference.variance)))
    assert (found.lowest, spread([0.5]).mean, spread([0.5]).deviation) == (0.1, 0.5, None)
    assert spread([]) is None


def test_holm_is_the_step_down_of_the_paper():
    # Holm 1979: 4 * 0.005, 3 * 0.01, 2 * 0.03 and 1 * 0.04, each at least the one before
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([0.4, 0.9]) == pytest.approx((0.8, 0.9))
    assert holm([0.7, 0.8]) == (1.0, 1.0)
    assert holm([]) == ()


@pytest.mark.slow
@pytest.mark.parametrize("comparisons", [1, 3, 9])
def test_from_the_least_number_of_seeds_on_a_difference_can_be_shown(comparisons, monkeypatch):
    monkeypatch.setattr(statistics, "RESAMPLES", 10)  # all are above 0
    least = least_seeds(comparisons)
    for seeds in (2, least - 1, least, least + 1, least + 4):
        winner = [0.9 + 0.001 * seed for seed in range(seeds)]
        others = {str(index): [score - 0.5 for score in winner] for index in range(comparisons)}
        verdicts = {one.verdict for one in compare(winner, others)}
        # half a point more in every pair: no interval holds 0
        assert verdicts == ({ConfirmationVerdict.BEATS} if seeds >= least else {ConfirmationVerdict.NOT_SHOWN}), seeds


def test_planted_difference_is_found_with_its_sign():
    winner, weaker = scores(5, difference=0.05)
    (won,) = compare(winner, {"weaker": weaker})
    (lost,) = compare(weaker, {"stronger": winner})
    assert (won.verdict, lost.verdict) == (ConfirmationVerdict.BEATS, ConfirmationVerdict.LOSES)
    assert won.difference == pytest.approx(np.mean(winner) - np.mean(weaker))
    assert won.difference == pytest.approx(-lost.difference)
    assert 0 < won.low < won.difference < won.high
    assert won.smallest_adjusted_p <= won.adjusted_p <= ALPHA


@pytest.mark.slow
@pytest.mark.parametrize("shared", [0.0, 0.95])
@pytest.mark.parametrize("seeds", [5, 8])
def test_null_studies_win_at_most_one_in_twenty(seeds, shared, monkeypatch):
    """Test 120 confirmations of a configuration against one and three copies of it."""
    monkeypatch.setattr(statistics, "RESAMPLES", 10)  # no verdict goes by the interval
    wins = {1: 0, 3: 0}
    for study in range(120):
        winner, copy = scores(seeds, seed=study, shared=shared)
        copies = {"copy": copy} | {str(more): scores(seeds, seed=1000 * more + study)[0] for more in (1, 2)}
        for count in wins:
            found = compare(winner, dict(list(copies.items())[:count]))
            wins[count] += any(one.verdict is ConfirmationVerdict.BEATS for one in found)
    assert all(count <= 0.05 * 120 for count in wins.values()), wins


def test_accuracies_of_a_small_test_split_are_no_win_either(monkeypatch):
    """Test scores in steps of 1/100, which tie often."""
    monkeypatch.setattr(statistics, "RESAMPLES", 10)
    draw = np.random.default_rng(0)
    wins = 0
    for _ in range(200):
        winner, copy = draw.binomial(100, 0.8, (2, 5)) / 100
        wins += compare(list(winner), {"copy": list(copy)})[0].verdict is ConfirmationVerdict.BEATS
    assert 0 < wins <= 10


def test_seeds_that_failed_leave_their_pair_out():
    winner = [0.90, None, 0.91, 0.92, 0.93, 0.94]
    baseline = [0.50, 0.99, 0.51, None, 0.53, 0.54]
    (found,) = compare(winner, {"baseline": baseline})
    assert found.pairs == 4
    assert found.difference == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("winner_failed", "baseline_failed", "verdict"),
    [(0, 1, ConfirmationVerdict.BEATS), (1, 1, ConfirmationVerdict.BEATS), (2, 1, ConfirmationVerdict.UNDECIDED)],
)
def test_leader_by_failed_runs_is_no_winner(winner_failed, baseline_failed, verdict):
    def failing(scores: list[float], failed: int) -> list[float | None]:
        return [None if place < failed else score for place, score in enumerate(scores)]

    good, bad = scores(8, difference=0.1)
    (ahead,) = compare(failing(good, winner_failed), {"b": failing(bad, baseline_failed)})
    (behind,) = compare(failing(bad, baseline_failed), {"b": failing(good, winner_failed)})
    assert ahead.verdict is verdict
    assert behind.verdict is (ConfirmationVerdict.LOSES if verdict is ConfirmationVerdict.BEATS else verdict)


def test_too_few_pairs_are_not_compared_but_count_among_the_comparisons():
    winner, weaker = scores(5, difference=0.05)
    lost, compared = compare(winner, {"lost": [None, None, None, None, 0.5], "weaker": weaker})
    assert (lost.verdict, lost.pairs, lost.p_value, lost.difference) == (ConfirmationVerdict.UNDECIDED, 1, None, None)
    assert compared.adjusted_p == pytest.approx(2 * compared.p_value)
    assert compare(winner, {}) == ()


def test_the_interval_of_a_mean_is_that_of_student():
    found = mean_interval([1.0, 2.0, 3.0])
    # the 97.5% point of Student's t with two degrees of freedom, over the root of three seeds of deviation one
    assert found == pytest.approx((2 - 4.302652729911275 / math.sqrt(3), 2 + 4.302652729911275 / math.sqrt(3)))
    assert mean_interval([1.0]) is None


@pytest.mark.parametrize(("comparisons", "seeds"), [(1, 7), (3, 8), (8, 10)])
def test_from_so_many_seeds_on_comparisons_go_by_pairs(comparisons, seeds):
    # 2 / 2 ** seeds, for each comparison, is at most 0.025; sign flips of 7 pairs reach 0.047 for 3, and only just
    assert seeds_for_pairs(comparisons) == seeds
    assert chosen_test(seeds, comparisons) is PermutationTest.SIGN_FLIPS
    assert chosen_test(seeds - 1, comparisons) is PermutationTest.EXCHANGE
    assert least_seeds(3) == 5, "enough for three baselines, by the exchange of runs"


@pytest.mark.parametrize(
    ("seeds", "baselines", "test"),
    [
        (7, 1, PermutationTest.SIGN_FLIPS),
        (7, 3, PermutationTest.EXCHANGE),  # sign flips of 7 pairs reach 3 * 2 / 128 = 0.047, and only just
        (8, 3, PermutationTest.SIGN_FLIPS),
    ],
)
def test_comparisons_use_the_test_for_their_number(seeds, baselines, test, monkeypatch):
    monkeypatch.setattr(statistics, "RESAMPLES", 10)
    winner, weaker = scores(seeds, difference=0.012, seed=seeds, shared=0.5)
    found = compare(winner, {str(index): [score - 0.001 * index for score in weaker] for index in range(baselines)})
    assert [one.test for one in found] == [test] * baselines
    assert found[0].p_value == permutation_p(winner, weaker, test)
    smallest = enumerated_p([1.0] * seeds, [0.0] * seeds, test)
    assert found[0].smallest_adjusted_p == pytest.approx(baselines * float(smallest))
