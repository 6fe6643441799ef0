"""Decoders with the modules of Llama, which differ in their biases and norms and in what their attention multiplies.

Windows are in the masks that transformers makes, and factors of embeddings, residuals and logits stand outside the
ports, so neither is told of here.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from search_space.backbones.entries import ConfigEntries
from search_space.backbones.family import Family
from search_space.backbones.llama import (
    ATTENTION_PORTS,
    FFN_PORTS,
    LLAMA_PARTS,
    SMALL_DECODER,
    Parts,
    biases_of,
    gated_decoder_ports,
    gated_decoder_shape,
    head_width_of,
)
from search_space.backbones.parameters import Weights, layer_norm
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Port, Site

Biases = frozenset[tuple[Site, Port]]

_NONE: Biases = frozenset()
_QUERIES = frozenset((Site.ATTENTION, port) for port in (Port.Q, Port.K, Port.V))
_NORMS = frozenset({(Site.ATTENTION, Port.NORM), (Site.FFN, Port.NORM)})
_TIED = replace(LLAMA_PARTS, tied=True)
_WINDOW = 3
_ROTARY = {"rope_type": "default", "rope_theta": 10_000.0}
_LONGER = {"llama_4_scaling_beta": 0.1, "original_max_position_embeddings": 4}
_PART = _ROTARY | {"partial_rotary_factor": 0.5}


def _family(
    name: str, biases: Callable[[ConfigEntries], Biases], *, parts: Parts = LLAMA_PARTS, **example: object
) -> Family:
    """A family by its model type.

    Args:
        biases: The biased ports that a config means.
        parts: What it has of its own.
        example: Entries of its example beside the sizes.
    """

    def read_shape(config: Mapping[str, object]) -> BackboneShape:
        entries = ConfigEntries(name, config)
        biased = biases(entries)
        return gated_decoder_shape(entries, head_width=head_width_of(entries), biased_ports=biased, parts=parts)

    return Family(
        name=name,
        model_types=(name,),
        read_shape=read_shape,
        ports=gated_decoder_ports,
        example={**SMALL_DECODER, "tie_word_embeddings": parts.tied, **example},
    )


def _none(_: ConfigEntries) -> Biases:
    return _NONE


def _of_attention(entries: ConfigEntries) -> Biases:
    return ATTENTION_PORTS if entries.flag("attention_bias", default=False) else _NONE


def _of_olmo(entries: ConfigEntries) -> Biases:
    entries.refuse("clip_qkv")
    return _of_attention(entries)


def _of_helium(entries: ConfigEntries) -> Biases:
    return biases_of(entries) - {(Site.ATTENTION, Port.O)}


def _of_seed_oss(entries: ConfigEntries) -> Biases:
    queries = _QUERIES if entries.flag("attention_bias", default=True) else _NONE
    out = {(Site.ATTENTION, Port.O)} if entries.flag("attention_out_bias", default=False) else _NONE
    return queries | out | (FFN_PORTS if entries.flag("mlp_bias", default=False) else _NONE)


def _of_ernie(entries: ConfigEntries) -> Biases:
    return ATTENTION_PORTS | FFN_PORTS if entries.flag("use_bias", default=False) else _NONE


def _of_stablelm(entries: ConfigEntries) -> Biases:
    entries.refuse_flag("use_parallel_residual")
    entries.refuse_flag("qk_layernorm")
    return _NORMS | (_QUERIES if entries.flag("use_qkv_bias", default=False) else _NONE)


def _nothing(_: int) -> Weights:
    """A norm without parameters."""
    return Weights()


LIKE_LLAMA = (
    _family("mistral", _none, head_dim=6, sliding_window=_WINDOW),
    _family("ministral3", _none, head_dim=6, rope_parameters=_ROTARY | _LONGER),
    _family("granite", biases_of, residual_multiplier=0.5, logits_scaling=2.0, embedding_multiplier=3.0),
    _family("olmo", _of_olmo, parts=replace(LLAMA_PARTS, norm=_nothing)),
    _family("smollm3", biases_of, parts=_TIED, no_rope_layers=[1, 0]),
    _family("seed_oss", _of_seed_oss, head_dim=6, attention_out_bias=True, residual_dropout=0.0, attention_dropout=0.0),
    _family("helium", _of_helium, head_dim=4, attention_bias=True),
    _family("ernie4_5", _of_ernie, parts=_TIED, head_dim=6, use_bias=True),
    _family(
        "stablelm", _of_stablelm, parts=replace(LLAMA_PARTS, norm=layer_norm), use_qkv_bias=True, rope_parameters=_PART
    ),
)
