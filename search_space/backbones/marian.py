"""Marian: the post-LN blocks of BART, with sinusoidal positions and no LayerNorm outside the blocks."""

from collections.abc import Mapping

from search_space.backbones.bart import SMALL, encoder_decoder_ports, encoder_decoder_shape
from search_space.backbones.entries import ConfigEntries
from search_space.backbones.family import Family, PortTable
from search_space.backbones.parameters import Weights, table
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import NormPlacement


def _ports(shape: BackboneShape) -> PortTable:
    # Nothing stands between the embedded input and the first block.
    return encoder_decoder_ports(shape.norm, stack_norms=())


def _embeddings(entries: ConfigEntries) -> Weights:
    """Tokens and fixed positions of both stacks; the stacks share their tokens unless the config says otherwise."""
    width, rows = entries.size("d_model"), entries.size("vocab_size")
    positions = 2 * table(entries.size("max_position_embeddings"), width)
    if not entries.flag("share_encoder_decoder_embeddings", default=True):
        return table(rows, width) + table(entries.size_or("decoder_vocab_size", rows), width) + positions
    entries.require_flag("tie_word_embeddings")
    return table(rows, width) + positions


def _read_shape(config: Mapping[str, object]) -> BackboneShape:
    entries = ConfigEntries("marian", config)
    embeddings = _embeddings(entries)
    return encoder_decoder_shape(entries, norm=NormPlacement.POST, stack_norms=0, embeddings=embeddings)


MARIAN = Family(name="marian", model_types=("marian",), read_shape=_read_shape, ports=_ports, example=SMALL)
