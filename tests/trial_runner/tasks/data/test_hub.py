import datasets
import pytest
from datasets import ClassLabel, Dataset, Features, Value

import trial_runner.huggingface
from trial_runner.errors import TaskError
from trial_runner.tasks import Task

FEATURES = Features({"sentence": Value("string"), "label": ClassLabel(names=["negative", "neutral", "positive"])})


def split(labels, prefix):
    rows = {"sentence": [f"{prefix} {n}" for n in range(len(labels))], "label": labels}
    return Dataset.from_dict(rows, features=FEATURES)


@pytest.fixture
def prepare(tiny_backbone, tokenised, hub):
    """Prepare a task from a hub that holds one dataset."""

    def run(held, **options):
        hub(held)
        source = Task(hub="owner/dataset", text="sentence", label="label", **options)
        return tokenised(source, tiny_backbone("roberta"))

    return run


def test_classes_that_the_data_declares_keep_their_names_and_order(prepare):
    held = {name: split([2, 0, 2, 0], name) for name in ("train", "validation", "test")}
    task = prepare(held)
    assert task.name == "owner/dataset"
    assert task.labels == ("negative", "positive")
    assert task.splits["validation"].labels.tolist() == [1, 0, 1, 0]


def test_rows_without_a_label_are_dropped_with_a_note(prepare):
    held = {"train": split([0, 1, 2, -1] * 50, "t"), "validation": split([0, -1, 1], "v"), "test": split([-1] * 9, "x")}
    task = prepare(held)
    assert len(task.splits["train"]) + len(task.splits["test"]) == 150
    assert len(task.splits["validation"]) == 2
    assert task.notes[:3] == (
        "train: 50 of 200 rows are dropped: no label.",
        "validation: 1 of 3 rows is dropped: no label.",
        "test: 9 of 9 rows are dropped: no label.",
    )


def test_changed_data_changes_the_fingerprint(prepare):
    held = {name: split([0, 1], name) for name in ("train", "validation", "test")}
    first = prepare(held).fingerprint
    assert prepare(held).fingerprint == first
    assert prepare(held | {"test": split([1, 0], "test")}).fingerprint != first


def test_splits_of_other_names_are_found_and_typos_are_one_clear_line(prepare):
    held = {name: split([0, 1], name) for name in ("train", "validation_matched", "test")}
    task = prepare(held, splits={"validation": "validation_matched"})
    assert len(task.splits["validation"]) == 2
    with pytest.raises(TaskError, match=r"it has: train, validation_matched, test\. Did you mean 'validation_matched'"):
        prepare(held, splits={"validation": "validation_match"})
    with pytest.raises(TaskError, match="a task must have a split 'train'"):
        prepare({"test": split([0, 1], "x")})


def test_a_hub_that_cannot_be_reached_is_one_clear_line_at_once(tiny_backbone, tokenised, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(trial_runner.huggingface, "is_resolved", lambda endpoint: False)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "datasets")
    for name in ("owner/dataset", "not a name"):
        with pytest.raises(TaskError, match=r"'owner/dataset'") as caught:
            tokenised(Task(hub=name, text="text", label="label"), tiny_backbone("roberta"))
        assert "\n" not in str(caught.value)
    assert tuple(capfd.readouterr()) == ("", "")
