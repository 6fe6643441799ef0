"""Fixtures of the trial runner's tests: backbones of two layers, 16 wide, made on the spot."""

import json
import string
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import pytest

_SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "vocab_size": 200,
    "max_position_embeddings": 66,
    "initializer_range": 0.1,
}
_SPECIAL = {
    "roberta": {"bos": "<s>", "pad": "<pad>", "eos": "</s>", "unk": "<unk>", "mask": "<mask>"},
    "bert": {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"},
}


class TinyBackbone(Protocol):
    """What the fixture ``tiny_backbone`` is."""

    def __call__(self, family: str, dropout: float = 0.0) -> Path: ...


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DELTASPACE_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(scope="session")
def tiny_backbone(tmp_path_factory: pytest.TempPathFactory) -> TinyBackbone:
    """Makes the folder of a backbone (config, weights, tokenizer) of a family: ``roberta`` or ``bert``.

    The folder is shared by all tests that ask for the same one; copy it to change it.
    """

    @cache
    def make(family: str, dropout: float = 0.0) -> Path:
        folder = tmp_path_factory.mktemp(f"tiny-{family}")
        _save_model(family, dropout, folder)
        _save_tokenizer(family, folder)
        return folder

    return make


@pytest.fixture
def write_rows(tmp_path: Path) -> Callable[[str, list[dict[str, Any]]], Path]:
    """Writes a jsonl file into the folder ``task`` of the test and returns the folder."""

    def write(name: str, rows: list[dict[str, Any]]) -> Path:
        folder = tmp_path / "task"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
        return folder

    return write


def _save_model(family: str, dropout: float, folder: Path) -> None:
    import torch
    from transformers import BertConfig, BertModel, RobertaConfig, RobertaModel

    rates = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    torch.manual_seed(0)
    if family == "roberta":
        # As in every RoBERTa checkpoint, the first pad_token_id + 1 position rows are never used.
        ids = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "type_vocab_size": 1}
        model = RobertaModel(RobertaConfig(**_SIZES, **rates, **ids), add_pooling_layer=False)
    else:
        model = BertModel(BertConfig(**_SIZES, **rates, pad_token_id=0), add_pooling_layer=False)
    model.save_pretrained(folder)


def _save_tokenizer(family: str, folder: Path) -> None:
    """A WordPiece tokenizer that spells words out, with the special tokens and the pairs of the family."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = _SPECIAL[family]
    letters = string.ascii_lowercase + string.digits
    pieces = [*special.values(), *letters, *(f"##{letter}" for letter in letters), *string.punctuation]
    vocabulary = {piece: index for index, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=special["unk"]))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    first, last = (special["bos"], special["eos"]) if family == "roberta" else (special["cls"], special["sep"])
    between, second = (f"{last} {last}", 0) if family == "roberta" else (last, 1)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}",
        pair=f"{first} $A {between} $B:{second} {last}:{second}",
        special_tokens=[(first, vocabulary[first]), (last, vocabulary[last])],
    )
    inputs = ["input_ids", "attention_mask"] + (["token_type_ids"] if family == "bert" else [])
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=64,
        model_input_names=inputs,
        **{f"{role}_token": token for role, token in special.items()},
    ).save_pretrained(folder)
