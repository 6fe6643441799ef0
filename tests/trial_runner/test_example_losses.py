"""Losses and correctness of single examples, in bytes."""

import numpy as np
import pytest

from trial_runner.example_losses import ExampleLosses

HALF = 2.0**-11
"""A number is rounded to a half float by no more than this share of it."""


def test_a_loss_takes_two_bytes_and_whether_it_was_right_a_bit():
    found = ExampleLosses.of(np.linspace(0, 3, 500), np.arange(500) % 3 == 0)
    assert (len(found), len(found.losses), len(found.correct or b"")) == (500, 1000, 63)


def test_an_example_adds_one_to_accuracy_where_it_was_right():
    right = np.array([1, 0, 0, 1, 1, 0, 1, 1, 0, 1, 1], dtype=bool)
    assert ExampleLosses.of(np.ones(11), right).scores.tolist() == right.tolist()


def test_without_accuracy_an_example_adds_its_loss_with_a_minus_sign():
    losses = np.array([0.1, 1.0, 2.7, 12.0])
    assert -ExampleLosses.of(losses).scores == pytest.approx(losses, rel=HALF)


def test_a_loss_beyond_half_floats_is_the_largest():
    assert ExampleLosses.of(np.array([1e9, np.inf])).scores.tolist() == [-65504.0, -65504.0]


@pytest.mark.parametrize(
    ("losses", "correct", "message"),
    [(b"", None, "got 0 bytes"), (b"abc", None, "got 3 bytes"), (b"abcd", b"ab", "2 examples must have 1 bytes")],
)
def test_incomplete_examples_are_refused(losses, correct, message):
    with pytest.raises(ValueError, match=message):
        ExampleLosses(losses=losses, correct=correct)
