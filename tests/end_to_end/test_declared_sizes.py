"""Declared sizes of a config.json: no command's time or memory follows a number in it, however large."""

import json
from pathlib import Path

import pytest
from support import rotation

from deltaspace.commands.main import main
from search_space.backbones import FAMILIES, family_of, shape_of
from search_space.backbones.entries import MAX_ENTRY_VALUES
from search_space.errors import UnsupportedBackboneError
from trial_runner.backbones.locate import entries_of

COMMANDS = ("check", "count", "methods", "plan", "space")
DECLARED = [
    ("bert", "num_hidden_layers", 10**9),
    ("bert", "num_hidden_layers", 10**6),
    ("bert", "num_attention_heads", 10**9),
    ("bert", "hidden_size", 10**12),
    ("bert", "intermediate_size", 10**15),
    ("bert", "vocab_size", 10**9),
    ("bert", "max_position_embeddings", 10**9),
    ("bert", "type_vocab_size", 10**9),
    ("marian", "decoder_layers", 10**6),
    ("marian", "max_position_embeddings", 10**9),
    ("t5", "num_decoder_layers", 10**6),
    ("t5", "relative_attention_num_buckets", 10**9),
    ("gpt2", "n_layer", 10**6),
    ("deberta-v2", "position_buckets", 10**9),
    ("mixtral", "num_experts", 10**9),
    ("roberta", "num_labels", 10**9),
]
UNKNOWN = {"model_type": "opt", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 1_000_000}


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DELTASPACE_CACHE", str(tmp_path / "cache"))


def folder_of(tmp_path: Path, config: dict[str, object]) -> str:
    (tmp_path / "backbone").mkdir()
    (tmp_path / "backbone" / "config.json").write_text(json.dumps(config))
    return str(tmp_path / "backbone")


def arguments(command: str, backbone: str) -> list[str]:
    if command in ("plan", "space"):
        return [command, "docstrings", "--set", f"backbone={backbone}"]
    return [*(["count", "bitfit"] if command == "count" else [command]), "--backbone", backbone]


def error_of(command: str, config: dict[str, object], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the error of a command that must fail."""
    assert main(arguments(command, folder_of(tmp_path, config))) in (1, 2)
    printed = capsys.readouterr()
    if command != "check":  # it shows what it found
        assert not printed.out
        assert len(printed.err.strip().splitlines()) == 1
    return " ".join((printed.out + printed.err).split())


@pytest.mark.parametrize(
    ("family", "entry", "number", "command"),
    rotation.third([(*declared, command) for declared in DECLARED for command in COMMANDS]),
)
def test_impossible_declared_size_is_refused_before_counting(family, entry, number, command, tmp_path, capsys):
    config = {**FAMILIES[family].example, "model_type": FAMILIES[family].model_types[0], entry: number}
    assert "of a backbone" in error_of(command, config, tmp_path, capsys)


@pytest.mark.parametrize("command", COMMANDS)
def test_so_it_is_where_no_family_knows_the_backbone(command, tmp_path, capsys):
    message = error_of(command, UNKNOWN, tmp_path, capsys)
    assert "num_hidden_layers of a backbone config must be at most 256; got 1,000,000" in message


@pytest.mark.parametrize("command", ["count", "methods", "space"])
def test_large_width_costs_no_time(command, tmp_path, capsys):
    config = {**FAMILIES["bert"].example, "model_type": "bert", "intermediate_size": 10**11}
    assert main(arguments(command, folder_of(tmp_path, config))) == 0
    capsys.readouterr()


@pytest.mark.parametrize(
    "name", ["num_hidden_layers", "n_layer", "num_blocks", "num_experts", "encoder_attention_heads"]
)
def test_a_config_within_a_config_is_bounded_too(name):
    with pytest.raises(UnsupportedBackboneError, match=f"{name} of a backbone config must be at most"):
        family_of({"model_type": "bert", "text_config": {name: 10**6}})


def test_the_largest_numbers_are_taken():
    config = {**FAMILIES["bert"].example, "model_type": "bert", "num_hidden_layers": MAX_ENTRY_VALUES["layer"]}
    assert shape_of(config).encoder_layers == MAX_ENTRY_VALUES["layer"]
    with pytest.raises(UnsupportedBackboneError, match="must be at most 256; got 257"):
        shape_of(config | {"num_hidden_layers": MAX_ENTRY_VALUES["layer"] + 1})
    with pytest.raises(UnsupportedBackboneError, match="parameters of a backbone must be at most"):
        shape_of(config | {"hidden_size": 4 * 10**9})


def test_sizes_are_refused_wherever_the_config_is_read(tmp_path):
    with pytest.raises(UnsupportedBackboneError, match="num_hidden_layers of a backbone config must be at most 256"):
        entries_of(folder_of(tmp_path, {"model_type": "mean_pooled_classifier", "backbone": UNKNOWN}))
