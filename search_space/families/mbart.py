"""mBART: the entries of BART, with pre-LN blocks and a LayerNorm at the end of either stack."""

from collections.abc import Mapping

from search_space.backbone_shape import BackboneShape
from search_space.dimensions import NormPlacement
from search_space.families.bart import encoder_decoder_shape
from search_space.families.family import Family

__all__ = ["MBART"]


def _read_shape(config: Mapping[str, object]) -> BackboneShape:
    # A LayerNorm after the embeddings and one after the last block, in either stack.
    return encoder_decoder_shape("mbart", config, norm=NormPlacement.PRE, stack_norms=4)


MBART = Family(name="mbart", model_types=("mbart",), read_shape=_read_shape, ports=None)
