"""Decisions at rungs that other records contradict are found; those that may have been made are not."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from studies.pruning.consistency import pruning_differences
from studies.pruning.rungs import Protected, Rule, RungPlan
from studies.records import TrialState
from trial_runner.requests import Reading

METHODS = ("mam_adapter", "bitfit", "lora_qv", "lora_ffn")
PLAN = RungPlan(steps=(4, 8), rule=Rule.MEDIAN, protected=Protected.BEST, stops_collapsed=True, guessing_loss=0.7)
BEGUN_AT = datetime(2026, 1, 1, tzinfo=UTC)
LAST = 9


def reading(trial: int, step: int, score: float, loss: float = 0.3, same: float = 0.6) -> Reading:
    metrics = {"validation_loss": loss, "same_prediction": same}
    return Reading(trial=trial, step=step, score=score, train_loss=loss, metrics=metrics, seconds=1.0)


def differences(
    arrived: Iterable[Reading], reasons: Mapping[int, str], plan: RungPlan = PLAN, replicate_of: int | None = None
) -> list[str]:
    """Return those of ten trials, of which the first four are published methods, with readings in this order."""
    by_trial: dict[int, list[Reading]] = {}
    for second, one in enumerate(arrived):
        by_trial.setdefault(one.trial, []).append(replace(one, heard_at=BEGUN_AT + timedelta(seconds=second)))
    trials = [
        SimpleNamespace(
            number=number,
            method=METHODS[number] if number < len(METHODS) else None,
            state=TrialState.PRUNED if number in reasons else TrialState.COMPLETE,
            reason=reasons.get(number),
            replicate_of=replicate_of if number == LAST else None,
            fingerprint=str(number),
            steps=16,
        )
        for number in range(LAST + 1)
    ]
    return list(pruning_differences(trials, by_trial, plan))


def found(last: Reading, reason: str | None, **given: Any) -> list[str]:
    """Return the differences of a study in which a reading follows one of each earlier trial."""
    earlier = [reading(trial, 4, 0.1 + 0.1 * trial) for trial in range(LAST)]
    reasons = {} if reason is None else {last.trial: f"rung 0 (4 steps): {reason}"}
    return differences([*earlier, last], reasons, **given)


BAD, CONSTANT = reading(LAST, 4, 0.05), reading(LAST, 4, 0.5, 0.75, 1.0)
BELOW = "0.05, below 0.5, the median of 9 others"
COLLAPSED = "collapsed: all its predictions are the same, its loss is 0.75, and guessing has 0.7"


def test_decisions_of_the_rule_have_no_differences():
    assert found(BAD, BELOW) == found(CONSTANT, COLLAPSED) == found(reading(LAST, 4, 0.6), None) == []


@pytest.mark.parametrize(
    "reason",
    [None, BELOW.replace("0.05", "0.04"), BELOW.replace("0.5", "0.6"), BELOW.replace("9", "8"), COLLAPSED, "by hand"],
)
def test_pruning_against_the_rule_is_found(reason):
    (line,) = found(BAD, reason)
    assert line.startswith(f"trial 9: after the reading of step 4 it must be pruned, rung 0 (4 steps): {BELOW}; got ")
    assert line.endswith("complete" if reason is None else reason)
    (line,) = found(reading(LAST, 4, 0.5), "0.5, below 0.6, the median of 9 others")
    assert line.startswith("trial 9: after the reading of step 4 it must go on; got ")


def test_pruning_without_a_rule_is_found():
    assert len(found(BAD, BELOW, plan=replace(PLAN, rule=Rule.NONE))) == 1
    assert found(CONSTANT, COLLAPSED, plan=replace(PLAN, rule=Rule.NONE)) == []


def test_pruning_of_a_protected_method_is_found():
    arrived = [reading(trial, 4, 0.9 - 0.1 * trial) for trial in range(LAST, -1, -1)]
    assert differences(arrived, {}) == []
    reason = "rung 0 (4 steps): 0.7, below 0.8, the median of 5 others"
    assert [line.partition(":")[0] for line in differences(arrived, {2: reason})] == ["trial 2"]


def test_collapsed_trial_that_goes_on_is_found():
    (line,) = found(CONSTANT, None)
    assert line.endswith(f" it must be pruned, rung 0 (4 steps): {COLLAPSED}; got complete")
    assert found(CONSTANT, None, replicate_of=0) == []
    assert len(found(CONSTANT, BELOW)) == 1


def test_collapse_is_not_decided_without_the_loss_of_guessing():
    unknown = replace(PLAN, stops_collapsed=False)
    assert found(CONSTANT, None, plan=unknown) == found(BAD, COLLAPSED, plan=unknown) == []
    assert len(found(BAD, "by hand", plan=unknown)) == 1
    infinite = reading(LAST, 4, 0.5, math.nan, 1.0)
    assert found(infinite, COLLAPSED.replace("0.75", "inf")) == found(infinite, None) == []


def test_only_earlier_readings_decide():
    others = [reading(trial, 4, 0.5) for trial in range(LAST)]
    assert differences([CONSTANT, *others], {}) == []
    assert len(differences([*others[:4], CONSTANT, *others[4:]], {})) == 1
    assert differences([*others[:3], CONSTANT, *others[3:]], {}) == []
