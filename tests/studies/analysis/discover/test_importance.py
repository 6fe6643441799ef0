"""Shares of variance: the closed form of an additive score."""

import numpy as np
import pytest

from studies.analysis.discover.importance import total

N = 20_000


def test_shares_of_an_additive_score_are_those_of_its_variances():
    draw = np.random.default_rng(0)
    one, other, anew = (draw.integers(0, 4, N) for _ in range(3))
    # variances 5/4 * 9 and 5/4: shares 0.9 and 0.1
    scores, changed = 3.0 * one + other, 3.0 * anew + other
    assert total(scores[None], changed[None])[0] == pytest.approx(0.9, abs=0.02)
