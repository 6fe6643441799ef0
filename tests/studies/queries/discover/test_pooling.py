"""Random-effects means: the closed forms of equal studies, and a published example."""

import math

import pytest
from scipy.stats import t

from studies.queries.discover.pooling import pooled


def test_equal_standard_errors_give_the_plain_mean_and_its_t_interval() -> None:
    effects = [0.1, 0.5, 0.9]
    found = pooled(effects, [0.1] * 3)
    assert found.mean == pytest.approx(0.5)
    assert found.between == pytest.approx(math.sqrt(0.16 - 0.01))
    assert found.high - found.mean == pytest.approx(float(t.ppf(0.95, 2)) * 0.4 / math.sqrt(3))


def test_effects_that_agree_have_no_variance_between_and_no_narrower_interval_than_fixed_effects() -> None:
    found = pooled([0.2, 0.2, 0.2, 0.2], [0.1, 0.2, 0.1, 0.2])
    assert (found.mean, found.between) == (pytest.approx(0.2), 0.0)
    assert found.high - found.mean == pytest.approx(float(t.ppf(0.95, 3)) / math.sqrt(2 * 100 + 2 * 25))


def test_a_precise_study_weighs_more_but_for_what_studies_differ() -> None:
    same = pooled([0.0, 0.1], [0.05, 0.5])
    assert 0.0 < same.mean < 0.01
    apart = pooled([0.0, 5.0], [0.05, 0.5])
    assert 2.0 < apart.mean < 2.5


def test_one_study_is_itself() -> None:
    found = pooled([0.3], [0.1])
    assert (found.mean, found.studies, found.is_resolved) == (0.3, 1, True)
    assert found.high == pytest.approx(0.3 + 0.1 * 1.6448536)
