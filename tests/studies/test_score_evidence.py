"""Standard errors of scores and of paired differences, against closed forms."""

import math

import numpy as np
import pytest

from studies.score_evidence import Evidence, paired_evidence
from trial_runner.example_losses import ExampleLosses

RIGHT = np.array([1, 1, 1, 1, 1, 1, 0, 0, 0, 0], dtype=bool)


def measured(right: np.ndarray) -> ExampleLosses:
    return ExampleLosses.of(np.where(right, 0.25, 1.5), right)


def test_the_error_of_an_accuracy_is_binomial():
    found = Evidence.of(measured(RIGHT).scores)
    assert (found.mean, found.examples) == (0.6, 10)
    assert found.standard_error == pytest.approx(math.sqrt(0.6 * 0.4 / 9), rel=1e-12)


def test_the_error_of_a_loss_is_that_of_a_mean():
    losses = np.array([0.5, 1.0, 1.5, 4.0])
    found = Evidence.of(ExampleLosses.of(losses).scores)
    assert found.mean == -1.75
    assert found.standard_error == pytest.approx(np.std(losses, ddof=1) / 2, rel=1e-12)


def test_a_paired_difference_is_surer_than_the_difference_of_two_scores():
    other = RIGHT.copy()
    other[[0, 1, 6]] = [0, 0, 1]
    found = paired_evidence(measured(RIGHT), measured(other))
    assert found is not None
    assert found.mean == pytest.approx(0.1, rel=1e-12)
    # McNemar: two examples against one; (b + c - (b - c)^2 / n) / (n (n - 1))
    assert found.standard_error == pytest.approx(math.sqrt((3 - 1 / 10) / 90), rel=1e-12)
    errors = [Evidence.of(measured(one).scores).standard_error for one in (RIGHT, other)]
    assert found.standard_error < math.hypot(*errors)


def test_where_one_has_no_accuracy_losses_are_compared():
    first, second = measured(RIGHT), ExampleLosses.of(np.full(10, 0.75))
    found = paired_evidence(first, second)
    assert found is not None
    assert found.mean == pytest.approx(0.75 - (6 * 0.25 + 4 * 1.5) / 10, rel=1e-12)


def test_evidence_needs_two_common_examples():
    assert paired_evidence(measured(RIGHT), measured(RIGHT[:9])) is None
    assert Evidence.of(np.array([1.0])).standard_error == math.inf
