"""Which trials stop because they learn nothing or unlearn, and which only begin slowly."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from search_space.published import HEAD_ONLY
from studies.history.history import StudyHistory
from studies.pruning.degenerate import FEWEST, collapse
from studies.pruning.rungs import Protected, RungPlan, stop_reason
from trial_runner.requests import Reading
from trial_runner.tasks.classification.split import PreparedTask, Split


def learned(train: float, validation: float, same: float = math.nan) -> Reading:
    metrics = {"validation_loss": validation, "same_prediction": same}
    return Reading(trial=0, step=50, score=0.5, metrics=metrics, train_loss=train, seconds=1.0)


GUESSING = math.log(6)
LEARNS = (learned(1.6, 1.5, 0.4), None)
GUESSES = (learned(GUESSING, GUESSING + 0.1, 1.0), None)
BAD = {"train": 1.9, "validation": 1.8, "same": 1.0}


def collapse_of(others: int = FEWEST, guessing_others: int = 0, **changes: float) -> str | None:
    return collapse(learned(**BAD | changes), None, [LEARNS] * others + [GUESSES] * guessing_others, GUESSING)


def test_a_trial_that_predicts_a_constant_has_collapsed():
    assert collapse_of() == "collapsed: all its predictions are the same, its loss is 1.8, and guessing has 1.792"


@pytest.mark.parametrize(
    "better",
    [
        {"train": GUESSING - 0.001},
        {"validation": GUESSING - 0.001},
        {"same": 0.999},
        {"same": math.nan},
        {"validation": math.nan},
    ],
)
def test_one_loss_below_guessing_or_a_second_prediction_is_a_beginning(better):
    assert collapse_of(**better) is None


@pytest.mark.parametrize(("learning", "guessing"), [(FEWEST - 1, 0), (4, 4), (3, 5), (0, 20)])
def test_collapse_needs_enough_others_that_learned(learning, guessing):
    assert collapse_of(learning, guessing) is None


def test_a_majority_of_others_that_learn_is_enough():
    assert collapse_of(5, 4) is not None


def test_identical_texts_are_a_collapse_where_others_differ():
    reason = collapse(learned(**BAD), None, [LEARNS] * FEWEST, None)
    assert reason == "collapsed: all its predictions are the same, its loss is 1.8"


def test_loss_above_first_rung_is_a_collapse():
    first, now = learned(2.5, 2.4), learned(2.6, 2.5)
    others = [(learned(2.0, 2.0), first)] * FEWEST
    assert collapse(now, first, others, None) == "collapsed: its training loss has risen from 2.5 to 2.6"
    assert collapse(learned(2.57, 2.5), first, others, None) is None  # by the luck of the batches
    assert collapse(learned(2.6, 2.3), first, others, None) is None  # it generalises better
    assert collapse(learned(2.4, 2.9), first, others, None) is None  # it overfits
    assert collapse(now, None, others, None) is None
    assert collapse(now, first, [(now, first)] * FEWEST, None) is None


METHODS = dict.fromkeys(range(4), "lora_qv") | {5: "lora_ffn", 6: HEAD_ONLY.name}


def reading(trial: int, step: int, loss: float, score: float = 0.5) -> Reading:
    metrics = {"validation_loss": loss, "same_prediction": float(loss >= 1.8)}
    return Reading(trial=trial, step=step, score=score, metrics=metrics, train_loss=loss, seconds=1.0)


def verdicts_on(readings: list[Reading], *, stops_collapsed: bool = True) -> list[str | None]:
    """Return the verdicts on trials from number 4 on, after four published methods that learn at step 50."""
    plan = RungPlan(steps=(50, 100), protected=Protected.ALL, stops_collapsed=stops_collapsed, guessing_loss=1.8)
    by_trial = {trial: [reading(trial, 50, 1.6), reading(trial, 100, 1.5)] for trial in range(4)}
    for one in readings:
        by_trial.setdefault(one.trial, []).append(one)
    trials: list[Any] = [
        SimpleNamespace(number=number, method=METHODS.get(number), fingerprint="", replicate_of=None)
        for number in range(7)
    ]
    return [stop_reason(plan, StudyHistory.of(trials, by_trial), one) for one in readings]


def test_collapsed_trials_stop_except_head_only():
    constant = [reading(trial, 50, 1.85, score=0.9) for trial in (4, 5, 6)]
    reason = "rung 0 (50 steps): collapsed: all its predictions are the same, its loss is 1.85, and guessing has 1.8"
    assert verdicts_on(constant) == [reason, reason, None]


def test_loss_above_that_of_the_first_rung_stops_a_trial_at_the_second():
    risen = [reading(4, 50, 1.6), reading(4, 100, 1.7), reading(5, 50, 1.6), reading(5, 100, 1.62)]
    reason = "rung 1 (100 steps): collapsed: its training loss has risen from 1.6 to 1.7"
    assert verdicts_on(risen) == [None, reason, None, None]


def test_a_study_that_was_begun_without_the_rule_goes_on_without_it():
    assert verdicts_on([reading(5, 50, 1.85, score=0.9)], stops_collapsed=False) == [None]


def test_the_loss_of_guessing_is_the_entropy_of_the_labels_of_train():
    labels = np.repeat([0, 1, 3], [2, 1, 1])
    train = Split(
        input_ids=np.zeros(4, np.int32), offsets=np.arange(5), labels=labels, token_type_ids=None, groups=None
    )
    task = PreparedTask(
        name="t", labels=tuple("abcd"), metric="accuracy", splits={"train": train}, notes=(), fingerprint=""
    )
    assert task.guessing_loss == pytest.approx(1.5 * math.log(2), rel=1e-12)
