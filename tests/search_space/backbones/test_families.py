"""Shapes of published backbones against independently computed facts, and refusal of configs that cannot be."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from search_space.backbones import FAMILIES, REFUSED, family_of, shape_of
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Port, Site
from search_space.errors import UnsupportedBackboneError

DATA = Path(__file__).parents[2] / "data"
ONE_OF_EACH_FAMILY = {
    "roberta": "roberta_base",
    "bert": "bert_base_uncased",
    "distilbert": "distilbert_base_uncased",
    "electra": "electra_small_discriminator",
    "bart": "bart_large",
    "mbart": "mbart_large_cc25",
    "marian": "opus_mt_en_de",
    "t5": "t5_small",
    "gpt2": "gpt2",
    "llama": "smollm2_135m",
    "qwen2": "qwen2_5_0_5b",
    "qwen3": "qwen3_0_6b",
}


def config_of(backbone: str) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((DATA / "backbones" / backbone / "config.json").read_text())
    return config


def read(config: Mapping[str, object], without: str | None = None, **changed: object) -> BackboneShape:
    return shape_of({name: value for name, value in {**config, **changed}.items() if name != without})


def test_unknown_model_type_error_lists_all_and_the_nearest():
    with pytest.raises(UnsupportedBackboneError) as caught:
        family_of({"model_type": "robrta"})
    all_types = ", ".join(model_type for family in FAMILIES.values() for model_type in family.model_types)
    assert all_types.startswith("roberta, xlm-roberta, bert, ")
    assert str(caught.value) == (
        f"model_type of a backbone config must be one of {all_types}; got 'robrta'. Did you mean 'roberta'?"
    )


@pytest.mark.parametrize("model_type", REFUSED)
def test_unsupported_model_error_gives_reason_and_alternative(model_type):
    with pytest.raises(UnsupportedBackboneError, match=r"Use .*") as caught:
        shape_of({"model_type": model_type, "hidden_size": 768})
    assert str(caught.value).startswith(f"cannot use {model_type} backbones: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("relative_attention", False),
        ("share_att_key", None),
        ("position_biased_input", True),
        ("norm_rel_ebd", "none"),
        ("pos_att_type", "c2p"),
        ("pos_att_type", None),
        ("conv_kernel_size", 3),
        ("type_vocab_size", 2),
    ],
)
def test_only_third_version_of_deberta_is_supported(entry, value):
    config = {**FAMILIES["deberta-v2"].example, "model_type": "deberta-v2"}
    assert shape_of(config | {"pos_att_type": "p2c|c2p"}) == shape_of(config)
    with pytest.raises(UnsupportedBackboneError, match=f"^{entry} of a deberta-v2 config must be"):
        shape_of(config | {entry: value})


def test_stacks_with_heads_of_their_own_are_edited_outside_of_the_heads():
    config = {**FAMILIES["marian"].example, "model_type": "marian"}
    other = shape_of(config | {"decoder_attention_heads": 2})
    assert other == replace(shape_of(config), lacks=frozenset({(Site.ATTENTION, Port.HEAD)}))


def test_an_mpnet_has_as_many_buckets_as_its_distances_are_put_into():
    config = {**FAMILIES["mpnet"].example, "model_type": "mpnet"}
    assert shape_of(config).parameters + 4 * 8 == shape_of(config | {"relative_attention_num_buckets": 40}).parameters
    with pytest.raises(UnsupportedBackboneError, match="buckets of a mpnet config must be at least 32; got 8"):
        shape_of(config | {"relative_attention_num_buckets": 8})


@pytest.mark.parametrize(
    ("config", "got"),
    [({}, "got no such entry."), ({"model_type": "zzzz"}, "got 'zzzz'."), ({"model_type": 3}, "got 3.")],
)
def test_a_model_type_like_no_other_gets_no_suggestion(config, got):
    with pytest.raises(UnsupportedBackboneError, match=r"must be one of roberta, .*; got .*\.$") as caught:
        family_of(config)
    assert str(caught.value).endswith(got)


@pytest.mark.parametrize(
    ("family", "entry", "value"),
    [
        ("gpt2", "n_inner", -1),
        ("llama", "head_dim", 0),
        ("llama", "num_key_value_heads", -3),
        ("qwen2", "num_key_value_heads", 0),
        ("t5", "num_decoder_layers", 0),
        ("t5", "relative_attention_num_buckets", -2),
    ],
)
def test_an_optional_size_that_cannot_be_is_refused_by_name(family, entry, value):
    with pytest.raises(UnsupportedBackboneError, match=f"^{entry} of a {family} config .* got {value}"):
        read(config_of(ONE_OF_EACH_FAMILY[family]), **{entry: value})


@pytest.mark.parametrize(
    ("family", "changed", "message"),
    [
        ("gpt2", {"n_head": 7}, "n_embd .* multiple of n_head; got 768 and 7"),
        (
            "bart",
            {"encoder_attention_heads": 15, "decoder_attention_heads": 15},
            "d_model .* multiple of encoder_attention_heads; got 1024 and 15",
        ),
        (
            "llama",
            {"num_key_value_heads": 2},
            "num_attention_heads .* multiple of num_key_value_heads; got 9 and 2",
        ),
        ("bart", {"encoder_ffn_dim": 8}, "encoder_ffn_dim and decoder_ffn_dim .* agree; got 8 and 4096"),
        ("bert", {"is_decoder": True}, "is_decoder of a bert config must be false; got true"),
        ("gpt2", {"add_cross_attention": True}, "add_cross_attention of a gpt2 config must be false; got true"),
        ("llama", {"attention_bias": "no"}, "attention_bias of a llama config must be true or false; got 'no'"),
        (
            "bert",
            {"position_embedding_type": "relative_key"},
            "position_embedding_type of a bert config must be 'absolute'; got 'relative_key'",
        ),
        ("distilbert", {"n_heads": 7}, "dim .* multiple of n_heads; got 768 and 7"),
        ("marian", {"decoder_ffn_dim": 8}, "encoder_ffn_dim and decoder_ffn_dim .* agree; got 2048 and 8"),
        ("marian", {"tie_word_embeddings": False}, "tie_word_embeddings of a marian config must be true; got false"),
        ("t5", {"is_decoder": True}, "is_decoder of a t5 config must be false; got true"),
        ("t5", {"architectures": ["T5EncoderModel"]}, "must have an encoder and a decoder; got .* T5EncoderModel"),
    ],
)
def test_entries_that_do_not_fit_the_family_are_refused_in_one_line(family, changed, message):
    with pytest.raises(UnsupportedBackboneError, match=message) as caught:
        read(config_of(ONE_OF_EACH_FAMILY[family]), **changed)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("family", "tied"), [("bart", True), ("gpt2", True), ("llama", False), ("qwen3", False)])
def test_a_config_silent_about_tying_gets_the_default_of_its_family(family, tied):
    config = config_of(ONE_OF_EACH_FAMILY[family])
    silent = read(config, without="tie_word_embeddings")
    assert silent == read(config, tie_word_embeddings=tied)
    assert silent != read(config, tie_word_embeddings=not tied)


def test_t5_ffn_gating_follows_feed_forward_proj():
    config = config_of("t5_small")
    assert not shape_of(config).gated_ffn
    assert shape_of(config_of("flan_t5_small")).gated_ffn
    assert read(config, model_type="mt5").gated_ffn
    assert not read(config, model_type="mt5", feed_forward_proj="relu").gated_ffn


def test_a_config_of_a_loaded_model_numbers_its_labels():
    config = config_of("bert_base_uncased") | {"id2label": {0: "LABEL_0", 1: "LABEL_1"}, "label2id": {"LABEL_0": 0}}
    assert family_of(config) is FAMILIES["bert"]
    assert shape_of(config) == shape_of(config_of("bert_base_uncased"))
