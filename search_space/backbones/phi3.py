"""Phi-3 and Phi-4: the blocks of Llama with queries, keys and values from one module, and gate and up from another."""

from collections.abc import Mapping
from dataclasses import replace

from search_space.backbones.entries import ConfigEntries
from search_space.backbones.family import Family, PortLocation, PortTable
from search_space.backbones.llama import (
    LLAMA_ATTENTION,
    LLAMA_FFN,
    SMALL_DECODER,
    gated_decoder_shape,
    head_width_of,
    llama_ports,
)
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Port

_QUERIES, _GATE = "self_attn.qkv_proj", "mlp.gate_up_proj"
_FEWER_TENSORS = 3
"""Of a block: two of queries, keys and values, and one of gate and up."""


def _ports(shape: BackboneShape) -> PortTable:
    per_key = shape.query_heads // shape.key_value_heads
    shares = (per_key, 1, 1)
    attention = {
        **LLAMA_ATTENTION,
        Port.X_ATTN: PortLocation(_QUERIES, "input"),
        Port.CTX: PortLocation(_QUERIES, "input"),
        **{
            port: PortLocation(_QUERIES, "output", part=part, shares=shares)
            for part, port in enumerate((Port.Q, Port.K, Port.V))
        },
    }
    ffn = {
        **LLAMA_FFN,
        Port.X_FFN: PortLocation(_GATE, "input"),
        Port.G: PortLocation(_GATE, "output", part=0, shares=(1, 1)),
        Port.U: PortLocation(_GATE, "output", part=1, shares=(1, 1)),
    }
    return llama_ports(shape, attention=attention, ffn=ffn)


def _read_shape(config: Mapping[str, object]) -> BackboneShape:
    entries = ConfigEntries("phi3", config)
    shape = gated_decoder_shape(entries, head_width=head_width_of(entries), biased_ports=frozenset())
    return replace(shape, parameter_tensors=shape.parameter_tensors - _FEWER_TENSORS * shape.decoder_layers)


PHI3 = Family(
    name="phi3",
    model_types=("phi3",),
    read_shape=_read_shape,
    ports=_ports,
    example={**SMALL_DECODER, "tie_word_embeddings": False},
)
