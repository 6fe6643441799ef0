"""Contract of every kind of task, the project's own and those of installed packages."""

import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.chat_cases import SHORT, chat_backbone
from support.packing_cases import request_for

from search_space.backbones import shape_of
from search_space.published import published_method
from studies.study_file import specification_from_mapping
from trial_runner.attachment.attention import ATTENTION, register_attention
from trial_runner.backbones import config_of, load_tokenizer, tokenizer_id
from trial_runner.errors import TaskError
from trial_runner.objectives import OBJECTIVES
from trial_runner.runner import TorchRunner
from trial_runner.tasks import METRICS, SPLITS, TASK_KINDS, Decoding, Prepared, Task, TaskKind, check_task, prepare_task

SIZES = {"train": 20, "validation": 6, "test": 5}
TALKS = "talks"
"""The tiny GPT-2 with a chat template."""


def families_of(kind: TaskKind) -> tuple[str, ...]:
    if kind.name == "instruction":
        return (TALKS,)
    return ("roberta", "bart", "gpt2") if kind.prompt is None else ("bart", "gpt2")


CASES = [(name, family) for name, kind in TASK_KINDS.items() for family in families_of(kind)]


def row_of(kind: TaskKind, split: str, number: int) -> dict[str, Any]:
    """Return a text in each input column, and one of two numbers in every other: a class, a number, a short answer.

    Messages are a dialogue of such a text and such a number.
    """
    task = Task(folder="x", kind=kind.name, **{key: key for key in kind.needed})
    read = {column: f"{column} {split} {number}" for column in kind.read_columns(task)}
    question_columns = ("context", "question", "answers")
    names = [name for key in kind.column_keys for name in (question_columns if key == "questions" else (key,))]
    row: dict[str, Any] = {**{name: ("1", "2")[number % 2] for name in names}, **read}
    turns = zip(("user", "assistant"), (read.get("messages"), str(number % 2)), strict=True)
    chat = [{"role": role, "content": content} for role, content in turns]
    return {**row, "messages": chat} if "messages" in read else row


@pytest.fixture
def task_of(tmp_path: Path) -> Callable[..., Task]:
    """Build a task of a kind with its required keys, in a folder of a few rows."""

    def make(name: str, **options: Any) -> Task:
        kind = TASK_KINDS[name]
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        for split, size in SIZES.items():
            rows = [json.dumps(row_of(kind, split, number)) for number in range(size)]
            (folder / f"{split}.jsonl").write_text("\n".join(rows))
        columns = {key: key for key in kind.needed}
        lengths: dict[str, Any] = {"max_tokens": 52 if families_of(kind) == (TALKS,) else 40}
        lengths |= {"decoding": Decoding(max_new_tokens=8)} if "decoding" in kind.other_keys else {}
        lengths |= {"max_target_tokens": 8} if "max_target_tokens" in kind.other_keys else {}
        return Task(**{"kind": name, "folder": str(folder), "metric": kind.metrics[0]} | columns | lengths | options)

    return make


@pytest.fixture
def backbone_of(tiny_backbone: Callable[..., Path], tmp_path: Path) -> Callable[[str], Path]:
    """Return the folder of a tiny backbone, such as `TALKS`."""

    def folder(family: str) -> Path:
        if family != TALKS:
            return tiny_backbone(family)
        own = tmp_path / TALKS
        return own if own.is_dir() else chat_backbone(tiny_backbone("gpt2"), own, SHORT)

    return folder


@pytest.fixture
def prepared(backbone_of: Callable[[str], Path], tmp_path: Path) -> Callable[[Task, str], Prepared]:
    """Prepare a task for a tiny backbone, with a cache of its own."""

    def run(task: Task, family: str) -> Prepared:
        folder = str(backbone_of(family))
        tokenizer, stack = load_tokenizer(folder), shape_of(config_of(folder)).kind
        return prepare_task(task, tokenizer, tokenizer_id(tokenizer), tmp_path / "cache", stack=stack)

    return run


def values_of(task: Any) -> Any:
    """Return all values of a prepared task, arrays with their types, for comparison."""
    if dataclasses.is_dataclass(task) and not isinstance(task, type):
        return {field.name: values_of(getattr(task, field.name)) for field in dataclasses.fields(task)}
    if isinstance(task, dict):
        return {key: values_of(value) for key, value in task.items()}
    return (str(task.dtype), task.tolist()) if isinstance(task, np.ndarray) else task


@pytest.mark.parametrize("name", TASK_KINDS)
def test_a_kind_has_its_name_an_objective_and_metrics_that_exist(name):
    kind = TASK_KINDS[name]
    assert kind.name == name
    assert set(kind.needed) <= set(kind.column_keys)
    assert len(set(kind.metrics)) == len(kind.metrics) > 0
    assert set(kind.metrics) <= set(METRICS)
    if kind.prompt is not None:
        assert "loss" in kind.metrics, "a kind whose answer is a text is measured by its loss, too"
    assert {*kind.column_keys, *kind.other_keys} <= {field.name for field in dataclasses.fields(Task)}


@pytest.mark.parametrize("name", TASK_KINDS)
def test_study_file_needs_only_the_columns_of_a_task(name, task_of):
    kind, folder = TASK_KINDS[name], task_of(name).folder
    section = {"kind": name, "folder": folder, **{key: key for key in kind.needed}}
    study = specification_from_mapping({"name": "a", "backbone": "embedded", "task": section, "budget": 9})
    assert study.task.metric == kind.metrics[0]
    check_task(study.task)


@pytest.mark.parametrize("name", TASK_KINDS)
def test_keys_of_other_kinds_and_metrics_of_other_kinds_are_refused(name, task_of):
    kind = TASK_KINDS[name]
    foreign = {key for other in TASK_KINDS.values() for key in other.column_keys} - {*kind.column_keys}
    for key in sorted(foreign - {"labels"}):
        with pytest.raises(TaskError, match=f"must not have {key}, because its kind is {name}"):
            check_task(task_of(name, **{key: {"context": "x"} if key == "questions" else "x"}))
    for metric in METRICS:
        if metric not in kind.metrics:
            with pytest.raises(TaskError, match=f"metric of a {name} task must be one of"):
                check_task(task_of(name, metric=metric))


@pytest.mark.parametrize("name", TASK_KINDS)
def test_prompt_of_a_language_model_has_all_columns(name, task_of):
    kind, task = TASK_KINDS[name], task_of(name)
    columns = kind.read_columns(task)
    assert columns
    assert set(columns) <= {*row_of(kind, "train", 0)}
    if kind.prompt is not None:
        texts = [f"text of {column}" for column in columns]
        read = kind.prompt(task, texts)
        assert all(text in read for text in texts)
        assert kind.encoder is not None
        if "instruction" in kind.other_keys:
            assert kind.prompt(dataclasses.replace(task, instruction="do:"), texts) == f"do: {read}"


@pytest.mark.parametrize(("name", "family"), CASES)
def test_prepared_task_keeps_all_rows_through_the_cache(name, family, task_of, prepared):
    task = task_of(name)
    first = prepared(task, family)
    assert first.name == task.title
    assert first.metric == task.metric
    assert first.objective in OBJECTIVES
    assert {split: len(first.splits[split]) for split in SPLITS} == SIZES
    assert values_of(prepared(task, family)) == values_of(first)
    moved = dataclasses.replace(task, max_tokens=task.max_tokens + 1)
    assert prepared(moved, family).fingerprint != first.fingerprint


@pytest.mark.parametrize(("name", "family"), CASES)
def test_batch_has_the_requested_rows(name, family, task_of, prepared):
    split = prepared(task_of(name), family).splits["train"]
    both, one = split.batch([3, 1], 0), split.batch([1], 0)
    assert both.input_ids.shape == both.attention_mask.shape
    assert len(both.input_ids) == 2
    assert both.input_ids[1][both.attention_mask[1]].tolist() == one.input_ids[0][one.attention_mask[0]].tolist()
    assert split.batch([1], 0, multiple_of=64).input_ids.shape[1] % 64 == 0


@pytest.mark.parametrize(("name", "family"), CASES)
def test_a_trial_learns_it_and_is_measured_by_every_metric(name, family, task_of, prepared, backbone_of):
    torch.set_num_threads(1)
    register_attention()
    task = prepared(task_of(name), family)
    model = OBJECTIVES[task.objective].load(
        str(backbone_of(family)), precision="float64", attn_implementation=ATTENTION
    )
    runner = TorchRunner(model, task, precision="fp64")
    configuration = published_method("lora_qv").structure(runner.backbone.shape)
    pack = runner.open_pack(1)
    pack.admit(request_for(configuration, 0, steps=2))
    last = list(pack.advance(2))[-1]
    runner.close()
    assert math.isfinite(last.train_loss)
    assert math.isfinite(last.score)
    assert set(TASK_KINDS[name].metrics) | {"validation_loss"} <= set(last.metrics)
    for metric in TASK_KINDS[name].metrics:
        low, high = METRICS[metric].bounds
        assert low <= last.metrics[metric] <= high
    assert last.score == METRICS[task.metric].score(last.metrics[task.metric])
