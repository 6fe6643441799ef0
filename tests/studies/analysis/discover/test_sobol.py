"""Shares of variance: closed forms of additive and interacting scores."""

import numpy as np
import pytest

from studies.analysis.discover.sobol import together, total

N = 20_000


def test_shares_of_an_additive_score_are_those_of_its_variances():
    draw = np.random.default_rng(0)
    one, other, anew = (draw.integers(0, 4, N) for _ in range(3))
    # variances 5/4 * 9 and 5/4: shares 0.9 and 0.1
    scores, changed = 3.0 * one + other, 3.0 * anew + other
    assert total(scores[None], changed[None])[0] == pytest.approx(0.9, abs=0.02)


def test_what_two_have_only_together_is_a_share_of_its_own():
    draw = np.random.default_rng(1)
    a, b, c, d = (draw.choice([-1.0, 1.0], N) for _ in range(4))

    # one product beside one sum of half its variance
    def score(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.asarray(x * y + x / np.sqrt(2))

    groups = [score(x, y)[None] for x, y in ((a, b), (c, b), (a, d), (c, d))]
    assert together(groups)[0] == pytest.approx(2 / 3, abs=0.02)
    assert total(groups[0], groups[1])[0] == pytest.approx(1.0, abs=0.02)
    assert total(groups[0], groups[2])[0] == pytest.approx(2 / 3, abs=0.02)
