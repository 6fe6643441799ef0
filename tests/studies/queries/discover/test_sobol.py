"""Shares of variance: closed forms of additive and interacting scores, and that noise of groups is taken off."""

import numpy as np
import pytest

from studies.queries.discover.sobol import first_order, together, total

N = 20_000


def test_shares_of_an_additive_score_are_those_of_its_variances() -> None:
    draw = np.random.default_rng(0)
    one, other, anew = (draw.integers(0, 4, N) for _ in range(3))
    # variances 5/4 * 9 and 5/4: shares 0.9 and 0.1
    scores, changed = 3.0 * one + other, 3.0 * anew + other
    assert total(scores[None], changed[None])[0] == pytest.approx(0.9, abs=0.02)
    assert first_order(scores[None], one)[0] == pytest.approx(0.9, abs=0.02)
    assert first_order(scores[None], other)[0] == pytest.approx(0.1, abs=0.02)


def test_what_two_have_only_together_is_in_neither_first_order_share() -> None:
    draw = np.random.default_rng(1)
    a, b, c, d = (draw.choice([-1.0, 1.0], N) for _ in range(4))

    # one product beside one sum of half its variance
    def score(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.asarray(x * y + x / np.sqrt(2))

    groups = [score(x, y)[None] for x, y in ((a, b), (c, b), (a, d), (c, d))]
    assert together(groups)[0] == pytest.approx(2 / 3, abs=0.02)
    assert first_order(groups[0], (a > 0).astype(int))[0] == pytest.approx(1 / 3, abs=0.02)
    assert total(groups[0], groups[1])[0] == pytest.approx(1.0, abs=0.02)
    assert total(groups[0], groups[2])[0] == pytest.approx(2 / 3, abs=0.02)


def test_groups_of_pure_noise_explain_nothing() -> None:
    draw = np.random.default_rng(2)
    scores = draw.normal(size=(400, 100))
    shares = first_order(scores, draw.integers(0, 20, 100))
    # 19 of 99 degrees of freedom would be explained by chance
    assert shares.mean() < 0.06
    constant = total(scores, scores)
    assert constant.max() == 0.0


def test_the_noise_of_groups_is_taken_off_as_analysis_of_variance_has_it() -> None:
    # between groups 3 * 4 + 3 * 4 = 24; within 4 over 6 - 2 degrees of freedom, so 1; of all 28
    found = first_order(np.array([[1.0, 2.0, 3.0, 5.0, 6.0, 7.0]]), np.array([0, 0, 0, 1, 1, 1]))
    assert found[0] == pytest.approx((24 - 1) / 28)
