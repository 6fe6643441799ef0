"""Fixtures of the tests of tasks: a preparation with a cache of its own, and a hub that holds one dataset."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pytest

import trial_runner.huggingface
from search_space.backbones import shape_of
from trial_runner.backbones import config_of, load_tokenizer, tokenizer_id
from trial_runner.tasks import SPLITS, Prepared, Task, prepare_task


@pytest.fixture
def tokenised(tmp_path: Path) -> Callable[..., Prepared]:
    """Prepare a task for a backbone."""

    def run(
        task: Task, backbone: Path | str, tokenizer: Any = None, name: str | None = None, **options: Any
    ) -> Prepared:
        own, stack = tokenizer or load_tokenizer(str(backbone)), shape_of(config_of(str(backbone))).kind
        return prepare_task(task, own, name or tokenizer_id(own), tmp_path / "cache", stack=stack, **options)

    return run


@pytest.fixture
def write_splits(write_rows: Callable[..., Path]) -> Callable[[Callable[[str], list[dict[str, Any]]]], Path]:
    """Write train, validation and test from functions of their names; return the folder."""
    return lambda rows_of: [write_rows(f"{split}.jsonl", rows_of(split)) for split in SPLITS][-1]


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, datasets.Dataset]], list[tuple[Any, ...]]]:
    """Simulate a hub that holds one dataset; record the arguments of its downloads."""
    calls: list[tuple[Any, ...]] = []

    def hold(held: dict[str, datasets.Dataset]) -> list[tuple[Any, ...]]:
        def load_dataset(name: str, configuration: str | None, **options: Any) -> datasets.DatasetDict:
            calls.append((name, configuration, options))
            return datasets.DatasetDict(held)

        monkeypatch.setattr(datasets, "load_dataset", load_dataset)
        monkeypatch.setattr(trial_runner.huggingface, "is_resolved", lambda endpoint: True)
        return calls

    return hold
