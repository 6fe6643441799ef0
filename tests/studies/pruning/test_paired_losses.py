"""Who is better at a rung, against the differences one by one."""

import numpy as np
import pytest

from studies.pruning.paired_losses import RungLosses
from studies.score_evidence import loss_evidence
from trial_runner.example_losses import ExampleLosses


@pytest.mark.parametrize("count", [4, 20, 401])
def test_all_are_compared_at_once_as_they_are_one_by_one(count: int) -> None:
    draws = np.random.default_rng(0)
    common = draws.exponential(size=count)
    each = {number: ExampleLosses.of(common + draws.normal(0.002 * number, 0.3, count)) for number in range(100, 0, -1)}
    board = RungLosses()
    for number, examples in each.items():
        board.add(number, examples)
    for than, by in ((50, 1.28), (50, 0.01), (1, 1.28), (100, 3.0)):
        found = board.better([*range(1, 101), 500], than, by=by)
        expected = {}
        for number, examples in each.items():
            evidence = loss_evidence(examples, each[than])
            assert evidence is not None
            expected[number] = evidence.mean > by * evidence.standard_error
        assert found == expected
    assert 0 < sum(board.better(list(each), 50, by=1.28).values()) < 90


def test_the_first_measurement_stands_and_other_numbers_of_examples_are_compared_to_none() -> None:
    board = RungLosses()
    board.add(0, ExampleLosses.of(np.array([1.0, 2.0, 3.0])))
    board.add(0, ExampleLosses.of(np.array([9.0, 9.0, 9.0])))
    board.add(1, ExampleLosses.of(np.array([0.5, 1.0, 2.5])))
    board.add(2, ExampleLosses.of(np.array([0.0, 0.0])))
    assert board.better([1, 2], 0, by=1.28) == {1: True}
    assert board.better([0, 1], 2, by=1.28) == {}


def test_where_rounding_could_change_the_answer_the_differences_decide() -> None:
    draws = np.random.default_rng(3)
    examples = {0: ExampleLosses.of(1000 + draws.normal(size=50))}
    examples |= {row: ExampleLosses.of(1000 + draws.normal(0.1, 1, 50)) for row in range(1, 20)}
    board = RungLosses()
    for trial, one in examples.items():
        board.add(trial, one)
    for other in range(1, 20):
        evidence = loss_evidence(examples[other], examples[0])
        assert evidence is not None
        if evidence.mean > 0:  # by exactly as many errors as it is lower, and a little less
            by = evidence.mean / evidence.standard_error
            assert board.better([other], 0, by=by * (1 - 1e-9)) == {other: True}
            assert board.better([other], 0, by=by * (1 + 1e-9)) == {other: False}
