"""Files of a tokenizer may be anybody's: neither reading them nor what they do to a text is without a bound."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from trial_runner.backbones import load_tokenizer
from trial_runner.backbones.locate import embedded_folder
from trial_runner.errors import BackboneError, panics_as_errors


def added(count: int) -> list[dict[str, Any]]:
    plain = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return [{"id": 5 + number, "content": f"<{number}>", "special": True, **plain} for number in range(count)]


def replaced(content: str, times: int = 1) -> dict[str, Any]:
    step = {"type": "Replace", "pattern": {"String": "e"}, "content": content}
    return {"normalizer": {"type": "Sequence", "normalizers": [step] * times}}


ENDS = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}] * 1_100
TOO_MUCH: dict[str, tuple[str, dict[str, Any], str]] = {
    "added tokens": (
        "tokenizer.json",
        {"added_tokens": added(20_100)},
        "20,000 entries of added_tokens; it has 20,100",
    ),
    "declared tokens": (
        "tokenizer_config.json",
        {"added_tokens_decoder": {str(one["id"]): one for one in added(20_100)}},
        "20,000 entries of added_tokens_decoder",
    ),
    "a long text": ("tokenizer.json", {"normalizer": {"type": "Prepend", "prepend": "ab" * 6_000}}, "letters"),
    "a letter for a text": ("tokenizer.json", replaced("e" * 200), "100 times the letters"),
    "doubled and doubled": ("tokenizer.json", replaced("ee", 40), "it has 1,099,511,627,776"),
    "at every place": (
        "tokenizer.json",
        {"normalizer": {"type": "Replace", "pattern": {"Regex": ""}, "content": "e" * 150}},
        "100 times the letters",
    ),
    "tokens of every text": (
        "tokenizer.json",
        {"post_processor": {"type": "TemplateProcessing", "single": ENDS}},
        "steps",
    ),
}


REAL = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}]*[\p{Ll}\p{M}]+(?i:'s|'t|'re)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n/]*|\s+",
    r" ?[^(\s|[.,!?…])]+",
    " {2,}",
    r"\p{N}{1,3}(?=(?:\p{N}{3})*(?:\P{N}|$))",
)
"""Expressions of Llama 3, of GPT-4o, of Bloom, of T5, and of tokenizers that part digits from the right."""


@pytest.mark.parametrize("expression", ["(a+)+b", "(a|aa)*", "((a|b)c)+", r"^(\w+\s?){1,99}$", *REAL])
def test_expression_with_nested_repetition_is_refused(folder, expression):
    file = folder / "tokenizer.json"
    step = {"type": "Split", "pattern": {"Regex": expression}, "behavior": "Isolated", "invert": False}
    file.write_text(json.dumps(json.loads(file.read_text()) | {"pre_tokenizer": step}))
    if expression in REAL:
        assert load_tokenizer(str(folder))("some words")["input_ids"]
        return
    with pytest.raises(BackboneError, match="repeats what repeats"):
        load_tokenizer(str(folder))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(embedded_folder(), tmp_path / "backbone"))


@pytest.mark.parametrize("name", TOO_MUCH)
def test_a_tokenizer_that_asks_for_too_much_is_refused_before_it_is_made(folder, name):
    file, entries, message = TOO_MUCH[name]
    there = folder / file
    entries_before = json.loads(there.read_text()) if there.exists() else {}
    there.write_text(json.dumps(entries_before | entries))
    with pytest.raises(BackboneError, match=message):
        load_tokenizer(str(folder))


def deep(folder: Path) -> None:
    (folder / "tokenizer.json").write_text('{"normalizer": ' + "[" * 100_000 + "]" * 100_000 + "}")


def wide(folder: Path) -> None:
    (folder / "tokenizer.json").write_text('{"model": [' + "[]," * 2_600_000 + "[]]}")


def large(folder: Path) -> None:
    with (folder / "tokenizer.json").open("ab") as file:
        file.truncate(1 << 32)  # no disk is taken: nothing is written there


def listed(folder: Path) -> None:
    (folder / "vocab.txt").write_text("a\n" * 5_000_100)


@pytest.mark.parametrize(
    ("spoil", "message"), [(deep, "too deep"), (wide, "entries"), (large, "67,108,864 bytes"), (listed, "entries")]
)
def test_a_file_that_is_too_large_or_too_deep_is_refused(folder, spoil, message):
    spoil(folder)
    with pytest.raises(BackboneError, match=message):
        load_tokenizer(str(folder))


def test_folder_with_a_special_file_is_refused(folder):
    (folder / "weights.bin").symlink_to("/dev/zero")
    with pytest.raises(BackboneError, match="regular files alone"):
        load_tokenizer(str(folder))


def test_tokenizer_failure_is_wrapped_and_other_errors_are_not():
    panic = type("PanicException", (BaseException,), {})  # what a library in Rust raises
    with pytest.raises(BackboneError, match="it says: retry-limit-in-match over"), panics_as_errors():
        raise panic("retry-limit-in-match over")
    with pytest.raises(KeyboardInterrupt), panics_as_errors():
        raise KeyboardInterrupt
