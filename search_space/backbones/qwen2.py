"""Qwen2 and Qwen2.5: the modules of Llama, always with biases on queries, keys and values."""

from collections.abc import Mapping

from search_space.backbones.entries import ConfigEntries
from search_space.backbones.family import Family
from search_space.backbones.llama import SMALL_DECODER, gated_decoder_ports, gated_decoder_shape, head_width_of
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Port, Site

_BIASED_PORTS = frozenset((Site.ATTENTION, port) for port in (Port.Q, Port.K, Port.V))


def _read_shape(config: Mapping[str, object]) -> BackboneShape:
    entries = ConfigEntries("qwen2", config)
    return gated_decoder_shape(entries, head_width=head_width_of(entries), biased_ports=_BIASED_PORTS)


QWEN2 = Family(
    name="qwen2",
    model_types=("qwen2",),
    read_shape=_read_shape,
    ports=gated_decoder_ports,
    example={**SMALL_DECODER, "tie_word_embeddings": True},
)
