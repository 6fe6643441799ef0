"""RoBERTa, and XLM-R, which differs only in its vocabulary and training data: the modules of BERT."""

from collections.abc import Mapping

from search_space.backbones.bert import SMALL_ENCODER, encoder_ports, encoder_shape
from search_space.backbones.entries import ConfigEntries
from search_space.backbones.family import Family
from search_space.backbones.shape import BackboneShape


def _read_shape(config: Mapping[str, object]) -> BackboneShape:
    return encoder_shape(ConfigEntries("roberta", config))


ROBERTA = Family(
    name="roberta",
    model_types=("roberta", "xlm-roberta"),
    read_shape=_read_shape,
    ports=encoder_ports,
    example=SMALL_ENCODER,
)
