"""EuroBERT: an encoder with the modules of Llama."""

from collections.abc import Mapping
from dataclasses import replace

from search_space.backbones.entries import ConfigEntries
from search_space.backbones.family import Family
from search_space.backbones.llama import (
    LLAMA_PARTS,
    SMALL_DECODER,
    biases_of,
    gated_decoder_ports,
    gated_decoder_shape,
    head_width_of,
)
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import StackKind

_PARTS = replace(LLAMA_PARTS, kind=StackKind.ENCODER)


def _read_shape(config: Mapping[str, object]) -> BackboneShape:
    entries = ConfigEntries("eurobert", config)
    biased = biases_of(entries)
    return gated_decoder_shape(entries, head_width=head_width_of(entries), biased_ports=biased, parts=_PARTS)


EUROBERT = Family(
    name="eurobert",
    model_types=("eurobert",),
    read_shape=_read_shape,
    ports=gated_decoder_ports,
    example={**SMALL_DECODER, "attention_bias": True},
)
