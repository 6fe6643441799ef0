"""Pruning at rungs: the rules, which trials are protected, and that the order of arrival does not matter."""

import math
from collections.abc import Collection, Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from support.best_share import BestShare

from studies.history.history import StudyHistory
from studies.objectives import SizeMeasure
from studies.pruning.rungs import Protected, Rule, RungPlan, protected, stop_reason
from trial_runner.requests import Reading
from trial_runner.seeds import derived_seed


def reading(trial: int, step: int, score: float, train_loss: float = 0.5, **metrics: float) -> Reading:
    return Reading(trial=trial, step=step, score=score, train_loss=train_loss, metrics=metrics, seconds=1.0)


def history_of(
    readings: Iterable[Reading],
    methods: Mapping[int, str] = {},
    *,
    sizes: Mapping[int, int] = {},
    replicates: Collection[int] = (),
) -> StudyHistory:
    """Return the history of trials with these readings; a trial without a method is one of the search."""
    by_trial: dict[int, list[Reading]] = {}
    for one in readings:
        by_trial.setdefault(one.trial, []).append(one)
    trials: list[Any] = [
        SimpleNamespace(
            number=number,
            method=methods.get(number),
            fingerprint=methods.get(number, ""),
            replicate_of=9 if number in replicates else None,
            stored_parameters=sizes.get(number, 1),
        )
        for number in range(max(by_trial) + 1)
    ]
    return StudyHistory.of(trials, by_trial)


def verdicts(plan: RungPlan, readings: list[Reading], methods: Mapping[int, str] = {}) -> list[str | None]:
    """Return the verdict on each of some readings that arrive one after another."""
    return [
        stop_reason(plan, history_of(readings[:end], methods), readings[end - 1]) for end in range(1, len(readings) + 1)
    ]


def plan(rule: Rule | BestShare = Rule.MEDIAN, **given: Any) -> RungPlan:
    return RungPlan(**{"steps": (25, 50), "rule": rule, **given})


def test_best_share_rule_keeps_top_half_and_gives_reason():
    two = [reading(0, 25, 0.9), reading(1, 25, 0.1)]
    assert verdicts(plan(BestShare(3)), two) == [None, None]
    scores = [reading(trial, 50, score) for trial, score in enumerate((0.455, 0.412, 0.6, 0.55, 0.58))]
    expected = [None, "rung 1 (50 steps): 0.412 below the cut 0.455", None, None, None]
    assert verdicts(plan(BestShare()), scores) == expected


def test_no_trial_stops_between_rungs_or_without_a_rule():
    falling = [reading(trial, 25, 0.9 - 0.1 * trial) for trial in range(8)]
    assert verdicts(plan(Rule.NONE), falling) == [None] * 8
    assert verdicts(plan(BestShare()), [reading(trial, 30, 0.9 - 0.1 * trial) for trial in range(8)]) == [None] * 8


def test_replicates_are_not_compared_at_rungs():
    history = history_of([reading(0, 25, 0.9), reading(1, 25, 0.1)])
    assert stop_reason(plan(BestShare()), history, reading(1, 25, 0.1)) is not None
    history[0].replicate_of = 7
    assert stop_reason(plan(BestShare()), history, reading(1, 25, 0.1)) is None


def test_the_three_best_published_methods_and_the_head_are_protected():
    methods = dict(enumerate(["head_only", "bitfit", "lora_qv", "lora_ffn", "mam_adapter", "prefix_tuning"]))
    scores = [reading(trial, 25, score) for trial, score in enumerate([0.1, 0.2, 0.5, 0.6, 0.7, 0.3])]
    history = history_of([*scores, *(reading(trial, 25, 0.9) for trial in range(6, 12))], methods)
    best, everybody = plan(BestShare(), protected=Protected.BEST), plan(BestShare(), protected=Protected.ALL)
    stopped = [methods[one.trial] for one in scores if stop_reason(best, history, one) is not None]
    assert stopped == ["bitfit", "prefix_tuning"]
    assert [one for one in scores if stop_reason(everybody, history, one) is not None] == []
    assert len([one for one in scores if stop_reason(plan(BestShare()), history, one) is not None]) == 6


def test_the_best_plain_lora_is_protected_with_the_best_methods():
    names = ["bitfit", "prefix_tuning", "mam_adapter", "lora_qv", "lora_all", None]
    methods = {trial: name for trial, name in enumerate(names) if name is not None}
    scores = [reading(trial, 25, score) for trial, score in enumerate([0.9, 0.8, 0.7, 0.2, 0.3, 0.5])]
    best = plan(protected=Protected.BEST)
    assert protected(best, history_of(scores, methods)) == {0, 1, 2, 4}
    assert protected(best, history_of(scores[:4], methods)) == {0, 1, 2, 3}  # the best so far
    assert protected(best, history_of(scores, methods | {5: "lora_ffn"})) == {0, 1, 2, 5}
    assert protected(best, history_of([*scores[:3], reading(4, 25, 0.95)], methods)) == {0, 1, 4}


@pytest.mark.parametrize("order", [1, -1])
def test_lower_loss_then_lot_decide_between_equal_published_methods(order):
    """Test that neither the number of a trial nor the order of arrival decides."""
    losses = {"bitfit": 0.9, "lora_qv": 0.5, "lora_ffn": 0.8, "mam_adapter": math.nan, "prefix_tuning": 0.7}

    def protected_of(losses: Mapping[str, float], seed: int) -> set[str]:
        methods = dict(enumerate([*losses][::order]))
        readings = [reading(trial, 25, 0.5, validation_loss=losses[method]) for trial, method in methods.items()]
        found = protected(plan(protected=Protected.BEST, seed=seed), history_of(readings, methods))
        return {methods[trial] for trial in found}

    assert all(protected_of(losses, seed) == {"lora_qv", "prefix_tuning", "lora_ffn"} for seed in range(6))
    drawn = [protected_of(dict.fromkeys(losses, 0.5), seed) for seed in range(6)]
    lots = {seed: sorted(losses, key=lambda one: derived_seed(seed, f"tie {one}")) for seed in range(6)}
    best_lora = {seed: next(one for one in lots[seed] if one.startswith("lora_")) for seed in range(6)}
    assert drawn == [{*lots[seed][:3], best_lora[seed]} for seed in range(6)]
    assert len({frozenset(one) for one in drawn}) > 1


@pytest.mark.parametrize(
    ("scores", "reason"),
    [
        ((0.1, 0.2, 0.5, 0.6), None),
        ((0.1, 0.2, 0.6, 0.6), None),
        ((0.1, 0.3, 0.6, 0.6), "0.4, below 0.45, the median of 4 others"),
        ((0.1, 0.2, 0.41, 0.6, 0.7), "0.4, below 0.41, the median of 5 others"),
        ((0.1, 0.2, 0.4, 0.6, 0.7), None),
        ((0.5, 0.6, 0.7), None),
    ],
)
@pytest.mark.parametrize("place", [0, 2, 9])
def test_trial_below_the_median_of_four_others_stops(scores, reason, place):
    readings = [reading(trial if trial < place else trial + 1, 25, score) for trial, score in enumerate(scores)]
    last = reading(min(place, len(scores)), 25, 0.4)
    found = stop_reason(plan(), history_of([*readings, reading(11, 50, 0.9), last]), last)
    assert found == (None if reason is None else f"rung 0 (25 steps): {reason}")


def test_median_is_that_of_trials_no_larger():
    sizes = {0: 10, 1: 20, 2: 20, 3: 30, 4: 30, 5: 20}
    readings = [reading(trial, 25, score) for trial, score in enumerate((0.9, 0.3, 0.2, 0.9, 0.9, 0.4))]
    history = history_of(readings, sizes=sizes)
    by_size = plan(size=SizeMeasure.PARAMETERS)
    assert stop_reason(by_size, history, readings[5]) is None  # three others are no larger
    larger = history_of(readings, sizes=sizes | {5: 30})
    assert stop_reason(by_size, larger, readings[5]) == "rung 0 (25 steps): 0.4, below 0.9, the median of 5 others"


def test_protected_trials_and_replicates_count_and_do_not_stop():
    best = plan(protected=Protected.BEST)
    readings = [reading(trial, 25, 0.6) for trial in range(4)] + [reading(4, 25, 0.1), reading(5, 25, 0.1)]
    history = history_of(readings, {4: "lora_qv"})
    assert stop_reason(best, history, readings[4]) is None
    assert stop_reason(plan(), history, readings[4]) is not None
    assert stop_reason(best, history, readings[5]) == "rung 0 (25 steps): 0.1, below 0.6, the median of 5 others"
    repeated = history_of(readings, replicates=(0, 1))
    assert stop_reason(best, repeated, readings[5]) is None


def test_collapse_compares_a_trial_with_the_others_alone():
    """Test that a trial's own reading is neither one of the four others nor one of those that are as bad."""
    collapsing = plan(Rule.NONE, stops_collapsed=True, guessing_loss=0.7)
    learned = [reading(trial, 25, 0.8, 0.3, validation_loss=0.3, same_prediction=0.6) for trial in range(3)]
    constant = [reading(trial, 25, 0.5, 0.71, validation_loss=0.71, same_prediction=1.0) for trial in range(3, 7)]
    assert stop_reason(collapsing, history_of([*learned, constant[0]]), constant[0]) is None
    assert stop_reason(collapsing, history_of([*learned, *constant[:3]]), constant[2]) is not None
    assert stop_reason(collapsing, history_of([*learned, *constant]), constant[3]) is None


def test_median_rule_stops_collapsed_trials():
    collapsing = plan(stops_collapsed=True, guessing_loss=0.7)
    learned = [reading(trial, 25, 0.8, 0.3, validation_loss=0.3, same_prediction=0.6) for trial in range(4)]
    collapsed = reading(4, 25, 0.5, 0.71, validation_loss=0.71, same_prediction=1.0)
    history = history_of([*learned, collapsed])
    assert "collapsed" in str(stop_reason(collapsing, history, collapsed))
    assert stop_reason(collapsing, history, learned[0]) is None
