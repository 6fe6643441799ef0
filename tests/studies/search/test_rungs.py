"""Asynchronous successive halving: the rule, its ties, and that order of arrival is all it depends on."""

from dataclasses import dataclass

import pytest

from studies.errors import LaunchError
from studies.search.rungs import RungBoard, RungPlan


@dataclass(frozen=True)
class Score:
    trial: int
    step: int
    score: float


def arrive(board: RungBoard, *scores: Score) -> list[str | None]:
    verdicts = []
    for score in scores:
        board.add(score)
        verdicts.append(board.verdict(score))
    return verdicts


def board(reduction: int = 2, steps: tuple[int, ...] = (25, 50)) -> RungBoard:
    return RungBoard(RungPlan(steps=steps, reduction=reduction))


def test_every_trial_goes_on_while_a_rung_has_fewer_readings_than_the_reduction():
    verdicts = arrive(board(3), Score(0, 25, 0.9), Score(1, 25, 0.1))
    assert verdicts == [None, None]


def test_the_top_half_goes_on_at_reduction_two():
    verdicts = arrive(
        board(), Score(0, 25, 0.5), Score(1, 25, 0.4), Score(2, 25, 0.6), Score(3, 25, 0.55), Score(4, 25, 0.58)
    )
    assert [verdict is None for verdict in verdicts] == [True, False, True, True, True]


def test_the_reason_names_rung_step_score_and_cut():
    assert (
        arrive(board(), Score(0, 50, 0.455), Score(1, 50, 0.412))[1] == "rung 1 (50 steps): 0.412 below the cut 0.455"
    )


def test_of_equal_scores_the_lower_trial_number_goes_on():
    first, second = arrive(board(), Score(3, 25, 0.5), Score(1, 25, 0.5))
    assert first is None
    assert second is None
    verdict = arrive(board(), Score(1, 25, 0.5), Score(3, 25, 0.5))[1]
    assert verdict is not None
    assert "ties the cut" in verdict


def test_rungs_are_apart():
    halves = board()
    arrive(halves, Score(0, 25, 0.9), Score(1, 25, 0.95))
    assert arrive(halves, Score(2, 50, 0.1)) == [None]


def test_a_reading_between_rungs_is_never_pruned():
    assert arrive(board(), Score(0, 25, 0.9), Score(1, 25, 0.95), Score(2, 30, 0.0))[2] is None


def test_a_reduction_of_one_never_prunes():
    verdicts = arrive(board(1), *(Score(trial, 25, -float(trial)) for trial in range(20)))
    assert verdicts == [None] * 20


def test_a_reading_that_is_repeated_counts_once():
    halves = board()
    assert halves.add(Score(0, 25, 0.5))
    assert not halves.add(Score(0, 25, 0.7))
    assert halves.ranking(0) == ((0, 0.5),)


def test_a_board_rebuilt_from_the_ledger_equals_the_one_that_grew():
    scores = [Score(trial, step, (trial * 37 % 11) / 11) for step in (25, 50) for trial in range(30)]
    grown = board()
    arrive(grown, *scores)
    rebuilt = RungBoard(grown.plan, list(reversed(scores)))
    assert [grown.ranking(rung) for rung in (0, 1)] == [rebuilt.ranking(rung) for rung in (0, 1)]


@pytest.mark.parametrize("reduction", [2, 3, 4])
def test_about_one_in_reduction_survives_a_long_sequence_in_random_order(reduction):
    # closed form: of scores in random order the i-th survives with probability floor(i/r)/i, the first r-1 always
    count = 3000
    order = sorted(range(count), key=lambda trial: (trial * 7919) % 3001)
    survivors = sum(
        verdict is None
        for verdict in arrive(board(reduction), *(Score(i, 25, float(rank)) for i, rank in enumerate(order)))
    )
    expected = reduction - 1 + sum((i // reduction) / i for i in range(reduction, count + 1))
    assert abs(survivors - expected) < 0.1 * count


@pytest.mark.parametrize("steps", [(0,), (50, 25), (25, 25)])
def test_rungs_must_ascend_from_step_one(steps):
    with pytest.raises(LaunchError, match="ascending"):
        RungPlan(steps=steps, reduction=2)


def test_a_reduction_below_one_is_refused():
    with pytest.raises(LaunchError, match="at least 1"):
        RungPlan(steps=(25,), reduction=0)


def test_a_step_knows_its_rung():
    plan = RungPlan(steps=(25, 50), reduction=2)
    assert [plan.rung_at(step) for step in (25, 30, 50)] == [0, None, 1]
