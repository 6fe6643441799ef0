"""Qwen3: the modules of Llama, an own head width, and RMSNorms on the heads of queries and keys."""

from collections.abc import Mapping

from search_space.backbones.entries import ConfigEntries
from search_space.backbones.family import Family
from search_space.backbones.llama import (
    ATTENTION_PORTS,
    SMALL_DECODER,
    Parts,
    gated_decoder_ports,
    gated_decoder_shape,
)
from search_space.backbones.shape import BackboneShape

_PARTS = Parts(query_norms="head")


def _read_shape(config: Mapping[str, object]) -> BackboneShape:
    entries = ConfigEntries("qwen3", config)
    biased_ports = ATTENTION_PORTS if entries.flag("attention_bias", default=False) else frozenset()
    return gated_decoder_shape(entries, head_width=entries.size("head_dim"), biased_ports=biased_ports, parts=_PARTS)


QWEN3 = Family(
    name="qwen3",
    model_types=("qwen3",),
    read_shape=_read_shape,
    ports=gated_decoder_ports,
    example={**SMALL_DECODER, "head_dim": 6, "tie_word_embeddings": True},
)
