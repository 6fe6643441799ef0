"""ELECTRA: the modules of BERT without a pooler; small ones project narrower embeddings to the width of the model."""

from collections.abc import Mapping

from search_space.backbones.bert import SMALL_ENCODER, encoder_ports, encoder_shape
from search_space.backbones.entries import ConfigEntries
from search_space.backbones.family import Family
from search_space.backbones.shape import BackboneShape


def _read_shape(config: Mapping[str, object]) -> BackboneShape:
    entries = ConfigEntries("electra", config)
    embedding_width, width = entries.size("embedding_size"), entries.size("hidden_size")
    is_projected = embedding_width != width
    return encoder_shape(entries, embedding_width=embedding_width if is_projected else None, pooler=False)


ELECTRA = Family(
    name="electra",
    model_types=("electra",),
    read_shape=_read_shape,
    ports=encoder_ports,
    example={**SMALL_ENCODER, "embedding_size": 16},
)
