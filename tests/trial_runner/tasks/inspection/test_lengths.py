"""Quantiles of lengths and the length that is proposed, against counting."""

import pytest

from trial_runner.tasks.inspection import Lengths, longest

HUNDRED = Lengths(tokens=tuple(range(1, 101)))


def test_a_quantile_is_the_smallest_length_that_so_many_do_not_exceed():
    assert [HUNDRED.quantile(share) for share in (0.01, 0.5, 0.501, 0.95, 1.0)] == [1, 50, 51, 95, 100]
    assert Lengths(tokens=(7,)).quantile(0.5) == 7


def test_the_share_that_is_cut_is_that_of_the_longer_ones():
    assert (HUNDRED.share_cut(100), HUNDRED.share_cut(98), HUNDRED.share_cut(0)) == (0, 0.02, 1)


@pytest.mark.parametrize(("most", "proposed"), [(512, 104), (64, 64), (4, 8)])
def test_the_proposed_length_is_a_multiple_of_eight_that_leaves_most_texts_whole(most, proposed):
    assert HUNDRED.proposed(most=most) == proposed  # 98 texts have at most 98 tokens


def test_of_several_splits_the_longer_counts():
    assert longest([Lengths(tokens=(3, 4)), Lengths(tokens=(1, 9)), HUNDRED]) is HUNDRED
