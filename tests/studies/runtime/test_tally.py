"""Ended trials of one launch."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from studies.records import TrialRecord, TrialState
from studies.runtime.progress import LAST
from studies.runtime.roster import OpenTrial
from studies.runtime.tally import PRIOR_TRIALS, ProgressTally


def ended(number: int, state: TrialState, *, step: int = 200, **fields: Any) -> OpenTrial:
    facts = {"method": None, "replicate_of": None, "score": None, "reason": None, **fields}
    new = SimpleNamespace(number=number, state=state, **facts, description=f"what {number} is", stored_parameters=100)
    return OpenTrial(trial=cast(TrialRecord, new), attempt=1, step=step, last_score=0.25)


def complete(number: int, score: float, **fields: Any) -> OpenTrial:
    return ended(number, TrialState.COMPLETE, score=score, **fields)


def pruned(number: int) -> OpenTrial:
    return ended(number, TrialState.PRUNED, step=50, reason=WHY)


WHY = "rung 0 (50 steps): no good"


def build_tally(scores: list[float], *, is_here: bool = True) -> ProgressTally:
    tally = ProgressTally(steps=200, constant=0.1)
    for number, score in enumerate(scores):
        tally.add(complete(number, score), is_here=is_here)
    return tally


def test_trial_that_ended_as_the_best_is_marked():
    tally = build_tally([0.1, 0.5, 0.3, 0.5, 0.6])
    assert [one.is_best for one in tally.just_ended] == [True, True, False, False, True]


def test_a_pruned_trial_has_its_newest_score_and_is_never_among_the_best():
    tally = build_tally([0.1])
    tally.add(pruned(1))
    assert [one.number for one in tally.top] == [0]
    last = tally.just_ended[-1]
    assert (last.state, last.score, last.step, last.reason) == (TrialState.PRUNED, 0.25, 50, WHY)


def test_a_replicate_ends_without_being_a_best():
    tally = build_tally([0.1])
    tally.add(complete(1, 0.9, replicate_of=0))
    assert [one.number for one in tally.top] == [0]
    assert tally.just_ended[-1].score == 0.9
    assert tally.improvements == ((1, 0.1),)


def test_replicate_moves_its_original_to_the_mean_score():
    tally = build_tally([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    tally.add(complete(6, 0.0, replicate_of=5))
    tally.add(complete(7, 0.15, replicate_of=5))
    assert [(one.number, one.score) for one in tally.top][:3] == [(4, 0.5), (3, 0.4), (2, 0.3)]
    assert tally.top[3].number == 5
    assert tally.top[3].score == pytest.approx(0.25)
    assert [one.number for one in tally.top] == [4, 3, 2, 5, 1]


def test_the_head_alone_is_a_reference_once_it_is_complete():
    tally = build_tally([0.5])
    assert (tally.head_only, tally.constant) == (None, 0.1)
    tally.add(complete(1, 0.4, method="head_only"))
    assert tally.head_only == 0.4


def test_tally_keeps_the_last_ended_trials_of_this_launch():
    tally = build_tally([0.1] * 40, is_here=False)
    assert (len(tally.just_ended), tally.ended_here) == (LAST, 0)
    tally.add(complete(40, 0.2))
    assert (tally.just_ended[-1].number, tally.ended_here) == (40, 1)


def test_a_trial_is_expected_to_come_as_far_as_those_before():
    tally = ProgressTally(steps=200, constant=None)
    assert tally.expected_steps == 200
    for number in range(2 * PRIOR_TRIALS):
        tally.add(pruned(number))
    assert tally.expected_steps == pytest.approx((200 + 2 * 50) / 3)
