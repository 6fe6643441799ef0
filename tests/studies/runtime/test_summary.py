"""Progress of a study, from its history: best trials, rises of the best score, last ends, expected steps."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from studies.history.history import StudyHistory
from studies.records import TrialState
from studies.runtime.progress import LAST, TrialProgress
from studies.runtime.summary import PRIOR_TRIALS, EndedTrials

WHY = "rung 0 (50 steps): no good"
BEGAN_AT = datetime(2026, 1, 1, tzinfo=UTC)


def complete(score: float, **fields: Any) -> dict[str, Any]:
    return {"state": TrialState.COMPLETE, "steps": 200, "last_score": 0.25, "score": score, "reason": None, **fields}


def pruned() -> dict[str, Any]:
    return {"state": TrialState.PRUNED, "steps": 50, "last_score": 0.25, "score": None, "reason": WHY}


def history_of(*trials: dict[str, Any], ends: list[int] | None = None) -> StudyHistory:
    """Return the history of trials that ended one after another, or at these seconds."""
    places = list(range(len(trials))) if ends is None else ends
    records: list[Any] = [
        SimpleNamespace(
            number=number,
            method=fields.get("method"),
            replicate_of=fields.get("replicate_of"),
            description=f"what {number} is",
            stored_parameters=100,
            ended_at=BEGAN_AT + timedelta(seconds=places[number]),
            **{name: value for name, value in fields.items() if name not in ("method", "replicate_of")},
        )
        for number, fields in enumerate(trials)
    ]
    return StudyHistory.of(records, {})


def best_and_last(history: StudyHistory) -> tuple[list[TrialProgress], list[TrialProgress]]:
    ended = EndedTrials.of(history)
    return list(ended.best_trials(history)), list(ended.last(history))


def test_trial_that_ended_as_the_best_is_marked():
    best, last = best_and_last(history_of(*map(complete, [0.1, 0.5, 0.3, 0.5, 0.6])))
    assert [one.is_best for one in last] == [True, True, False, False, True]
    assert [one.number for one in best] == [4, 1, 3, 2, 0]


def test_the_order_of_ends_decides_which_trial_was_the_best():
    history = history_of(*map(complete, [0.1, 0.5, 0.3]), ends=[2, 1, 0])
    assert [(one.number, one.is_best) for one in best_and_last(history)[1]] == [(2, True), (1, True), (0, False)]
    assert EndedTrials.of(history).rises == ((1, 0.3), (2, 0.5))


def test_a_pruned_trial_has_its_newest_score_and_is_never_among_the_best():
    best, last = best_and_last(history_of(complete(0.1), pruned()))
    assert [one.number for one in best] == [0]
    assert (last[-1].state, last[-1].score, last[-1].step, last[-1].reason) == (TrialState.PRUNED, 0.25, 50, WHY)


def test_a_replicate_ends_without_being_a_best():
    history = history_of(complete(0.1), complete(0.9, replicate_of=0))
    best, last = best_and_last(history)
    assert [one.number for one in best] == [0]
    assert (last[-1].score, last[-1].is_best) == (0.9, False)
    assert EndedTrials.of(history).rises == ((1, 0.1),)


def test_replicate_moves_its_original_to_the_mean_score():
    scores = map(complete, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    history = history_of(*scores, complete(0.0, replicate_of=5), complete(0.15, replicate_of=5))
    best, _ = best_and_last(history)
    assert [(one.number, one.score) for one in best][:3] == [(4, 0.5), (3, 0.4), (2, 0.3)]
    assert best[3].score == pytest.approx(0.25)
    assert [one.number for one in best] == [4, 3, 2, 5, 1]


def test_best_after_a_fall_is_marked_again():
    replicated = [complete(0.5), complete(0.6), complete(0.0, replicate_of=1), complete(0.55)]
    assert [one.is_best for one in best_and_last(history_of(*replicated))[1]] == [True, True, False, True]


def test_the_head_alone_is_a_reference_once_it_is_complete():
    assert EndedTrials.of(history_of(complete(0.5))).head_only is None
    assert EndedTrials.of(history_of(complete(0.5), complete(0.4, method="head_only"))).head_only == 0.4


def test_confirmation_has_no_best_trial():
    history = history_of(complete(0.5), complete(0.4, method="head_only"))
    ended = EndedTrials.of(history, has_best=False)
    assert (len(ended.top), ended.rises, ended.head_only) == (0, (), None)
    assert [one.is_best for one in ended.last(history)] == [False, False]


def test_last_ended_trials_are_kept():
    _, last = best_and_last(history_of(*[complete(0.1)] * 40, complete(0.2)))
    assert (len(last), last[-1].number) == (LAST, 40)


def test_a_trial_is_expected_to_come_as_far_as_those_before():
    assert EndedTrials.of(history_of()).expected_steps(200) == 200
    many = EndedTrials.of(history_of(*[pruned()] * 2 * PRIOR_TRIALS))
    assert many.expected_steps(200) == pytest.approx((200 + 2 * 50) / 3)
