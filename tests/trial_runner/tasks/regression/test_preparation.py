"""Numbers as labels: how they are read, what is refused, and what a constant prediction is worth."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from trial_runner.errors import TaskError
from trial_runner.tasks import Task
from trial_runner.tasks.regression.kind import PreparedRegression

NUMBERS = {"train": (1.0, 4.5, -1, "2.25", 0), "validation": (3, 5.0), "test": (-1.0, -1.0)}

Prepare = Callable[..., PreparedRegression]


@pytest.fixture
def prepared(write_splits: Any, tiny_backbone: Any, tokenised: Any) -> Prepare:
    def run(numbers: dict[str, tuple[object, ...]], metric: str = "pearson") -> PreparedRegression:
        folder = write_splits(lambda s: [{"text": f"{s} {row}", "number": one} for row, one in enumerate(numbers[s])])
        task = Task(kind="regression", folder=str(folder), text=("text",), label="number", metric=metric)
        found = tokenised(task, tiny_backbone("roberta"))
        assert isinstance(found, PreparedRegression)
        return found

    return run


def test_labels_are_the_numbers_and_their_one_name_is_that_of_the_column(prepared):
    task = prepared(NUMBERS | {"test": (2.0, 1.5)})
    assert task.labels == ("number",)
    assert task.objective == "regression"
    assert task.splits["validation"].labels.tolist() == [3.0, 5.0]
    assert task.splits["test"].batch([1], 0).labels.tolist() == [1.5]
    assert sorted(task.splits["train"].labels.tolist()) == [-1.0, 0.0, 1.0, 2.25, 4.5]


def test_hidden_minus_one_labels_are_dropped_unless_in_train(prepared):
    train = tuple(range(60))  # test is carved out of it
    task = prepared(NUMBERS | {"train": train})
    assert any(one.split == "test" and one.count == one.of for one in task.dropped)
    assert set(task.splits["test"].labels) <= set(train)


def test_guessing_is_the_mean_of_train(prepared):
    task = prepared(NUMBERS | {"test": (1.0, 2.0)})
    numbers = np.array([1.0, 4.5, -1.0, 2.25, 0.0])
    assert task.mean == pytest.approx(numbers.mean())
    assert task.guessing_loss == pytest.approx(((numbers - numbers.mean()) ** 2).mean())
    assert task.constant_score == 0.0
    assert prepared(NUMBERS | {"test": (1.0, 2.0)}, "mse").constant_score is None


@pytest.mark.parametrize("values", [("1", "high"), (False, True), ([2.0], [1.0])], ids=["text", "truth", "list"])
def test_invalid_number_is_refused_with_its_row(prepared, values):
    with pytest.raises(TaskError, match=r"a label of a regression must be a number; got .*, row [12]\.") as caught:
        prepared({**NUMBERS, "validation": values})
    assert "\n" not in str(caught.value)


def test_equal_numbers_are_refused(prepared):
    with pytest.raises(TaskError, match="train must have at least two different numbers; every one is 2"):
        prepared({**NUMBERS, "train": (2, 2.0)})
