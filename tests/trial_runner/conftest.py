"""Fixtures of the trial runner's tests: backbones of two layers, 16 wide, made on the spot."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def write_rows(tmp_path: Path) -> Callable[[str, list[dict[str, Any]]], Path]:
    """Write a jsonl file into the folder ``task`` of the test and return the folder."""

    def write(name: str, rows: list[dict[str, Any]]) -> Path:
        folder = tmp_path / "task"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
        return folder

    return write


@pytest.fixture
def new_text_runner(tiny_backbone: Callable[..., Path], tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Build runners of a tiny backbone over the task of ``text_cases``, with options of ``text_runner``."""
    from support.text_cases import text_runner, write_task

    made = []
    folder = write_task(tmp_path / "texts")

    def make(family: str, *, dropout: float = 0.0, **options: Any) -> Any:
        made.append(text_runner(tiny_backbone(family, dropout), folder, **options))
        return made[-1]

    yield make
    for runner in made:
        runner.close()
