"""Tokens beyond the embeddings of a backbone: refused where the data has them, and where padding is."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from trial_runner.backbones import load_tokenizer
from trial_runner.errors import BackboneError
from trial_runner.tasks import Task, prepared_for


@pytest.fixture
def backbone(tiny_backbone: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a backbone whose tokenizer gives "q" an id far beyond its embeddings."""
    monkeypatch.setenv("DELTASPACE_CACHE", str(tmp_path / "cache"))
    folder = shutil.copytree(tiny_backbone("bert"), tmp_path / "bert")
    change(folder / "tokenizer.json", lambda entries: entries["model"]["vocab"].update(q=5000))
    return folder


def change(file: Path, edit: Callable[[dict], None]) -> None:
    entries = json.loads(file.read_text())
    edit(entries)
    file.write_text(json.dumps(entries))


def task_of(write_rows: Callable[..., Path], text: str) -> Task:
    rows = [{"text": f"{n} {text if n == 7 else 'b'}", "label": n % 2} for n in range(60)]
    return Task(folder=str(write_rows("train.jsonl", rows)), text="text", label="label")


def embeddings_of(folder: Path) -> int:
    return json.loads((folder / "config.json").read_text())["vocab_size"]


def test_token_without_embedding_is_refused_by_name(backbone, write_rows):
    task = task_of(write_rows, "q")
    message = f"the tokenizer's largest id must be below the backbone's {embeddings_of(backbone)} embeddings; "
    for _ in range(2):  # the second time from the cache
        with pytest.raises(BackboneError, match=re.escape(f"{message}got 5000 ('q').")):
            prepared_for(task, str(backbone))


def test_token_without_embedding_that_never_occurs_does_no_harm(backbone, write_rows):
    assert len(prepared_for(task_of(write_rows, "c"), str(backbone)).splits["train"])


def test_fewer_tokens_than_embeddings_are_usual(tiny_backbone, tmp_path, write_rows):
    folder = shutil.copytree(tiny_backbone("bert"), tmp_path / "padded")
    change(folder / "config.json", lambda entries: entries.update(vocab_size=1024))
    assert len(prepared_for(task_of(write_rows, "c"), str(folder)).splits["train"])


def test_padding_token_without_embedding_is_refused(backbone):
    change(backbone / "config.json", lambda entries: entries.update(pad_token_id=5000))
    with pytest.raises(BackboneError, match=r"pad_token_id in the config of .* must be below its \d+ .*; got 5000\."):
        load_tokenizer(str(backbone))
