"""Tokenizers that transformers has in Python alone, as those of Marian: counted and told apart as the fast ones are."""

import json
import shutil
from pathlib import Path

from transformers import ByT5Tokenizer

from trial_runner.backbones import load_tokenizer, tokenizer_id
from trial_runner.tasks.token_rows import encoded

BYTES = 384


def folder_of(tiny_t5: Path, folder: Path, tokenizer: ByT5Tokenizer) -> Path:
    folder.mkdir()
    config = json.loads((tiny_t5 / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "vocab_size": BYTES}))
    tokenizer.save_pretrained(folder)
    return folder


def test_python_tokenizer_is_identified_by_its_behaviour(tiny_backbone, tmp_path):
    first = folder_of(tiny_backbone("t5"), tmp_path / "first", ByT5Tokenizer())
    shutil.copytree(first, tmp_path / "second")
    other = folder_of(tiny_backbone("t5"), tmp_path / "other", ByT5Tokenizer(extra_ids=100))
    assert not load_tokenizer(str(first)).is_fast
    same, another = (tokenizer_id(load_tokenizer(str(folder))) for folder in (tmp_path / "second", other))
    assert tokenizer_id(load_tokenizer(str(first))) == same != another


def test_texts_that_one_in_python_cuts_are_counted():
    found, cut = encoded(ByT5Tokenizer(), {"text": ["ab", "abc", "abcd"]}, 4)
    assert ([len(row) for row in found["input_ids"]], cut) == ([3, 4, 4], 1)
