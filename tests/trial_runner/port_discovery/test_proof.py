"""Backbones without a table: derived tables, the contract, and refusals."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig

from search_space.backbones import FAMILIES, family_of, shape_of
from search_space.backbones.declared import ENTRY
from search_space.dimensions import Port, Positions, Site, StackKind
from search_space.errors import UnsupportedBackboneError
from trial_runner.backbones import config_of
from trial_runner.port_discovery.derivation import derive
from trial_runner.port_discovery.proof import ensure_supported, proof_of
from trial_runner.port_discovery.small_copy import model_of, shape_of_model
from trial_runner.port_discovery.trace import TRACED, register_tracing, traced

SIZES: dict[str, Any] = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 3, "vocab_size": 90}
OPT = {**SIZES, "ffn_dim": 96, "word_embed_proj_dim": 64, "max_position_embeddings": 70}
TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
BY_HAND = ("bart", "mbart", "marian", "t5", "gpt2", "modernbert", "deberta-v2", "mpnet")
"""Families whose ports, or some of them, nobody finds who looks at one block of one stack and its linear layers."""
GPT_OSS = {**SIZES, "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 32, "num_local_experts": 2}


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    monkeypatch.setenv("DELTASPACE_CACHE", str(tmp_path / "cache"))


def folder_of(tmp_path: Path, model_type: str, sizes: dict[str, Any]) -> str:
    folder = tmp_path / model_type
    AutoConfig.for_model(model_type, **sizes).save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize("name", sorted({*FAMILIES} - {*BY_HAND}))
def test_derived_table_and_shape_equal_those_of_the_family(name):
    """Test that tables derived from values in a model equal handwritten ones, for names without roles too."""
    family = FAMILIES[name]
    config = AutoConfig.for_model(family.model_types[0], **{**TOKENS, **family.example, "vocab_size": 90})
    shape = shape_of(json.loads(config.to_json_string()))
    expected = family.ports(shape)
    register_tracing()
    base = model_of(config, TRACED)
    found = derive(traced(base), config, shape.kind)
    table = found.table(shape.query_heads, shape.key_value_heads)
    assert table.ports == expected.ports
    assert (table.layers, table.attention_modules) == (expected.layers, expected.attention_modules)
    assert (table.embeddings, table.stack_norms) == (expected.embeddings, expected.stack_norms)
    assert (table.positions, table.token_types) == (expected.positions, expected.token_types)
    again = shape_of_model(name, found, base, base, config)
    if not shape.has(Site.FFN, Port.U):  # how wide experts are is nothing that passes between modules
        again = replace(again, ffn_width=shape.ffn_width, lacks=shape.lacks)
    for size in ("norm", "width", "query_heads", "key_value_heads", "head_width", "ffn_width", "gated_ffn"):
        assert getattr(again, size) == getattr(shape, size), size
    for size in ("biased_ports", "positions", "parameter_tensors", "embedding_width", "lacks", "stack_norms"):
        assert getattr(again, size) == getattr(shape, size), size
    assert again.parameters == shape.frozen_parameters


@pytest.mark.slow
def test_unknown_family_is_used_through_a_proven_table(tmp_path):
    folder = folder_of(tmp_path, "opt", OPT)
    with pytest.raises(UnsupportedBackboneError, match="must be one of"):
        family_of(config_of(folder))
    proof = proof_of(folder)
    assert (proof.problem, proof.table, dict(proof.broken), proof.lacks) == (None, "model", {}, ())
    assert len(proof.kept) > 80
    config = config_of(folder)
    assert ENTRY in config
    shape, family = shape_of(config), family_of(config)
    assert shape == proof.shape
    assert (shape.kind, shape.positions) == (StackKind.DECODER, Positions.ABSOLUTE)
    assert (shape.decoder_layers, shape.width, shape.ffn_width, shape.query_heads) == (3, 64, 96, 4)
    places = family.ports(shape).ports
    assert places["decoder", Site.FFN, Port.M].module == "fc2"
    assert places["decoder", Site.DECODER_SELF, Port.O].module == "self_attn.out_proj"
    ensure_supported(folder)  # what is kept is taken


def test_unsupported_attention_argument_is_named(tmp_path):
    folder = folder_of(tmp_path, "gpt_oss", GPT_OSS)
    with pytest.raises(UnsupportedBackboneError, match=r"gpt_oss backbones have no table.*got s_aux") as caught:
        ensure_supported(folder)
    assert "\n" not in str(caught.value)
    with pytest.raises(UnsupportedBackboneError) as again:
        config_of(folder)
    assert str(again.value) == str(caught.value)


def test_an_encoder_decoder_of_no_family_is_refused_as_such(tmp_path):
    sizes = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "vocab_size": 90, "max_position_embeddings": 32}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
    folder = folder_of(tmp_path, "pegasus", {**sizes, **heads})
    with pytest.raises(
        UnsupportedBackboneError, match=r"it is an encoder-decoder, .* bart, mbart, marian, t5"
    ) as refused:
        ensure_supported(folder)
    assert "\n" not in str(refused.value)


@pytest.mark.slow
@pytest.mark.parametrize(("heads", "lacks"), [(8, ()), pytest.param(2, (("attn", "head"),), marks=pytest.mark.slow)])
def test_small_copy_keeps_heads_of_both_stacks(heads, lacks, tmp_path):
    sizes = {**FAMILIES["marian"].example, "encoder_attention_heads": 8, "decoder_attention_heads": heads}
    proof = proof_of(folder_of(tmp_path, "marian", sizes | {"vocab_size": 90, "decoder_vocab_size": 90, **TOKENS}))
    assert (proof.problem, proof.table, proof.lacks, dict(proof.broken)) == (None, "family", lacks, {})
    assert any("q -> head" in edit for edit in proof.kept) == (not lacks)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model_type", "lacks"),
    [
        ("albert", set()),
        ("cohere", set()),
        ("glm", set()),
        ("phi", set()),
        ("starcoder2", set()),
        ("gpt_neox", {"q", "k", "v", "x_attn", "ctx", "res_in", "norm"}),
    ],
)
def test_other_models_keep_the_contract_at_the_ports_they_have(model_type, lacks, tmp_path):
    proof = proof_of(folder_of(tmp_path, model_type, {}))
    assert proof.problem is None
    assert proof.lacks == tuple(("attn", port) for port in sorted(lacks))
    assert not proof.broken


@pytest.mark.slow
@pytest.mark.parametrize("model_type", ["bloom", "codegen", "falcon", "xlnet"])
def test_attention_that_calls_no_function_is_refused(model_type, tmp_path):
    proof = proof_of(folder_of(tmp_path, model_type, {}))
    assert proof.problem is not None
    assert proof.entry is None
