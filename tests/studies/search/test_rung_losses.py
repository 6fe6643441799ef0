"""Who is better at a rung, against the differences one by one."""

import numpy as np
import pytest

from studies.search import rung_losses
from studies.search.evidence import loss_evidence
from studies.search.rung_losses import RungLosses
from trial_runner.example_losses import ExampleLosses


def test_all_are_compared_at_once_as_they_are_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rung_losses, "_COMPARED_AT_ONCE", 30)
    draws = np.random.default_rng(0)
    common = draws.exponential(size=401)
    each = {number: ExampleLosses.of(common + draws.normal(0.002 * number, 0.3, 401)) for number in range(100, 0, -1)}
    board = RungLosses()
    for number, examples in each.items():
        board.add(number, examples)
    for than, by in ((50, 1.28), (50, 0.0), (1, 1.28), (100, 3.0)):
        found = board.better([*range(1, 101), 500], than, by=by)
        expected = {}
        for number, examples in each.items():
            evidence = loss_evidence(examples, each[than])
            assert evidence is not None
            expected[number] = evidence.mean > by * evidence.standard_error
        assert found == expected
    assert 0 < sum(board.better(list(each), 50, by=1.28).values()) < 50


def test_the_first_measurement_stands_and_other_numbers_of_examples_are_compared_to_none() -> None:
    board = RungLosses()
    board.add(0, ExampleLosses.of(np.array([1.0, 2.0, 3.0])))
    board.add(0, ExampleLosses.of(np.array([9.0, 9.0, 9.0])))
    board.add(1, ExampleLosses.of(np.array([0.5, 1.0, 2.5])))
    board.add(2, ExampleLosses.of(np.array([0.0, 0.0])))
    assert board.better([1, 2], 0, by=1.28) == {1: True}
    assert board.better([0, 1], 2, by=1.28) == {}
