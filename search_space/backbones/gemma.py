"""Gemma 1 to 3: the modules of Llama; from Gemma 2 on every sublayer has a norm before it and one behind it.

The ports ``o`` and ``f`` are what the projections write, before the norm behind them: there the weights can hold a
low-rank map, and what an adapter adds is normalised with the rest. Soft-capping bends attention's logits, those of
prefixes included.
"""

from collections.abc import Mapping
from dataclasses import replace

from search_space.backbones.entries import ConfigEntries
from search_space.backbones.family import Family, PortTable
from search_space.backbones.llama import (
    ATTENTION_PORTS,
    LLAMA_ATTENTION,
    LLAMA_FFN,
    LLAMA_PARTS,
    SMALL_DECODER,
    Parts,
    gated_decoder_ports,
    gated_decoder_shape,
    llama_ports,
)
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Port

_GEMMA = replace(LLAMA_PARTS, tied=True)
_GEMMA2 = replace(_GEMMA, norms=4)
_GEMMA3 = replace(_GEMMA2, query_norms="head")

_NORM_BEFORE = "pre_feedforward_layernorm"
_FFN = LLAMA_FFN | {
    Port.RES_F: replace(LLAMA_FFN[Port.RES_F], module=_NORM_BEFORE),
    Port.NORM: replace(LLAMA_FFN[Port.NORM], module=_NORM_BEFORE),
}
_EXAMPLE = {**SMALL_DECODER, "head_dim": 6}
_WINDOWS: Mapping[str, object] = {
    "sliding_window": 3,
    "layer_types": ["sliding_attention", "full_attention"],
    "query_pre_attn_scalar": 5,
}


def _shape(name: str, config: Mapping[str, object], parts: Parts) -> BackboneShape:
    entries = ConfigEntries(name, config)
    entries.refuse_flag("use_bidirectional_attention")
    biased = ATTENTION_PORTS if entries.flag("attention_bias", default=False) else frozenset()
    return gated_decoder_shape(entries, head_width=entries.size("head_dim"), biased_ports=biased, parts=parts)


def _sandwich_ports(shape: BackboneShape) -> PortTable:
    return llama_ports(shape, attention=LLAMA_ATTENTION, ffn=_FFN)


GEMMA = Family(
    name="gemma",
    model_types=("gemma",),
    read_shape=lambda config: _shape("gemma", config, _GEMMA),
    ports=gated_decoder_ports,
    example=_EXAMPLE,
)
GEMMA2 = Family(
    name="gemma2",
    model_types=("gemma2",),
    read_shape=lambda config: _shape("gemma2", config, _GEMMA2),
    ports=_sandwich_ports,
    example={**_EXAMPLE, **_WINDOWS, "attn_logit_softcapping": 0.5, "final_logit_softcapping": 2.0},
)
GEMMA3 = Family(
    name="gemma3",
    model_types=("gemma3_text",),
    read_shape=lambda config: _shape("gemma3", config, _GEMMA3),
    ports=_sandwich_ports,
    example={**_EXAMPLE, **_WINDOWS},
)
