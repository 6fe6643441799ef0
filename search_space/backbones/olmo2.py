"""OLMo 2: the modules of Llama, whose norms stand behind the sublayers, on what these add to the stream."""

from collections.abc import Mapping
from dataclasses import replace

from search_space.backbones.entries import ConfigEntries
from search_space.backbones.family import Family, PortLocation, PortTable
from search_space.backbones.llama import (
    ATTENTION_PORTS,
    LLAMA_ATTENTION,
    LLAMA_FFN,
    LLAMA_PARTS,
    SMALL_DECODER,
    gated_decoder_shape,
    head_width_of,
    llama_ports,
)
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import NormPlacement, Port

_PARTS = replace(LLAMA_PARTS, placement=NormPlacement.BRANCH, query_norms="all")
_ATTENTION = LLAMA_ATTENTION | {
    Port.RES_IN: LLAMA_ATTENTION[Port.X_ATTN],
    Port.NORM: PortLocation("post_attention_layernorm", "output"),
}
_FFN = LLAMA_FFN | {
    Port.RES_F: LLAMA_FFN[Port.X_FFN],
    Port.NORM: PortLocation("post_feedforward_layernorm", "output"),
}


def _read_shape(config: Mapping[str, object]) -> BackboneShape:
    entries = ConfigEntries("olmo2", config)
    biased = ATTENTION_PORTS if entries.flag("attention_bias", default=False) else frozenset()
    return gated_decoder_shape(entries, head_width=head_width_of(entries), biased_ports=biased, parts=_PARTS)


def _ports(shape: BackboneShape) -> PortTable:
    return llama_ports(shape, attention=_ATTENTION, ffn=_FFN)


OLMO2 = Family(
    name="olmo2",
    model_types=("olmo2",),
    read_shape=_read_shape,
    ports=_ports,
    example={**SMALL_DECODER, "tie_word_embeddings": False},
)
