"""Statistics and notes about prepared data, against counting by hand."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from studies.resource_estimates.data import data_facts
from trial_runner.tasks import PreparedTask, Split
from trial_runner.tasks.kind import Cut

CUTS = (
    Cut(split="train", what="examples", count=2, of=4, tokens=16),
    Cut(split="test", what="examples", count=1, of=100, tokens=16),
)


def split_of(*labels: int) -> Split:
    ends = np.arange(len(labels) + 1)
    return Split(input_ids=np.arange(len(labels), dtype=np.int32), offsets=ends, labels=np.array(labels))


def task_of(metric: str = "accuracy", **splits: Split) -> PreparedTask:
    held = {"train": split_of(0, 1, 1, 2), "validation": split_of(1, 0, 0, 0), "test": split_of(2), **splits}
    notes = (str(CUTS[0]), "test: carved from train", str(CUTS[1]))
    return PreparedTask(
        name="x", labels=("a", "b", "c"), metric=metric, splits=held, notes=notes, fingerprint="0", cuts=CUTS
    )


def test_examples_and_labels_are_counted():
    facts = data_facts(task_of())
    assert facts.examples == {"train": 4, "validation": 4, "test": 1}
    assert facts.labels["train"] == {"a": 1, "b": 2, "c": 1}
    assert facts.labels["test"] == {"a": 0, "b": 0, "c": 1}
    assert facts.notes == ("test: carved from train",)


def test_a_constant_prediction_is_the_most_frequent_label_of_train():
    assert data_facts(task_of()).constant_score == 0.25
    assert data_facts(task_of("matthews")).constant_score == 0
    both = split_of(0, 1, 1, 2)
    assert data_facts(task_of("f1", validation=both)).constant_score == pytest.approx((2 / 3) / 3)  # mean over classes


def test_labels_that_differ_in_case_and_texts_of_two_labels_are_warned_of():
    tokens, labels = np.array([7, 7, 8, 9, 8, 9, 6], np.int32), np.array([0, 1, 2, 1, 0, 2, 2])
    twice = Split(input_ids=tokens, offsets=np.arange(8), labels=labels)
    task = replace(task_of(train=twice, validation=split_of(0, 1, 1, 2, 2, 2)), labels=("Good", "good ", "b"))
    tokenizer: Any = SimpleNamespace(decode=lambda tokens: " ".join(map(str, tokens)))
    assert data_facts(task, tokenizer).warnings[1:] == (
        "labels that differ only in case or white space are labels of their own: 'Good', 'good '.",
        "3 texts of train with two labels: 7 (Good, good ); 8 (Good, b).",
    )
    assert len(data_facts(task_of("accuracy", validation=split_of(0, 1, 1, 2, 2, 2))).warnings) == 1  # what is cut


def test_cut_texts_are_one_line_and_a_warning_if_many():
    facts = data_facts(task_of())
    lines = (
        "train: 2 of 4 examples are cut to 16 tokens. Raise task.max_tokens.",
        "test: 1 of 100 examples is cut to 16 tokens. Raise task.max_tokens.",
    )
    assert facts.losses == lines
    assert facts.warnings == (
        lines[0],
        "1 of 3 labels does not occur in validation: 'c'.",
    )
    assert facts.summary == (
        "4 train, 4 validation, 1 test examples; 3 labels, a constant prediction has accuracy 0.250"
    )
    few = replace(facts, cuts=CUTS[1:])
    assert [line for line in few.warnings if "cut" in line] == []
    targets = replace(facts, cuts=(replace(CUTS[0], what="targets"),))
    assert "Raise task.max_target_tokens." in targets.warnings[0]
