"""mBART: the entries of BART, with pre-LN blocks and a LayerNorm at the end of either stack."""

from collections.abc import Mapping

from search_space.backbones.bart import SMALL, encoder_decoder_ports, encoder_decoder_shape, learned_embeddings
from search_space.backbones.entries import ConfigEntries
from search_space.backbones.family import Family, PortTable
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import NormPlacement

_STACK_NORMS = (
    "encoder.layernorm_embedding",
    "encoder.layer_norm",
    "decoder.layernorm_embedding",
    "decoder.layer_norm",
)


def _ports(shape: BackboneShape) -> PortTable:
    return encoder_decoder_ports(shape.norm, stack_norms=_STACK_NORMS)


def _read_shape(config: Mapping[str, object]) -> BackboneShape:
    entries = ConfigEntries("mbart", config)
    embeddings = learned_embeddings(entries)
    # A LayerNorm after the embeddings and one after the last block, in either stack.
    return encoder_decoder_shape(entries, norm=NormPlacement.PRE, stack_norms=4, embeddings=embeddings)


MBART = Family(name="mbart", model_types=("mbart",), read_shape=_read_shape, ports=_ports, example=SMALL)
