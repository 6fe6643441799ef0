"""BART: post-LN encoder-decoder with learned positions, whose entries and modules mBART shares."""

from collections.abc import Mapping

from search_space.backbone_shape import BackboneShape
from search_space.dimensions import NormPlacement, StackKind
from search_space.families.entries import ConfigEntries
from search_space.families.family import Family
from search_space.families.parameters import ALL_BIASED, layer_norm, linear

__all__ = ["BART", "encoder_decoder_shape"]

_RESERVED_POSITIONS = 2  # the position tables of both stacks start with two rows that no token uses


def encoder_decoder_shape(
    family: str, config: Mapping[str, object], *, norm: NormPlacement, stack_norms: int
) -> BackboneShape:
    """Shape of an encoder-decoder with the modules of BART.

    Both stacks share one embedding; with ``tie_word_embeddings`` false each of them holds its own beside it.

    Raises:
        UnsupportedBackboneError: If an entry is missing or cannot be, if the two stacks differ in a size that
            a shape has once, or if the model is a decoder alone.
    """
    entries = ConfigEntries(family, config)
    entries.refuse_flag("is_decoder")
    width = entries.size("d_model")
    heads = entries.same_size("encoder_attention_heads", "decoder_attention_heads")
    ffn_width = entries.same_size("encoder_ffn_dim", "decoder_ffn_dim")
    encoder_layers, decoder_layers = entries.size("encoder_layers"), entries.size("decoder_layers")
    tables = 1 if entries.flag("tie_word_embeddings", default=True) else 3
    positions = entries.size("max_position_embeddings") + _RESERVED_POSITIONS
    embeddings = (tables * entries.size("vocab_size") + 2 * positions) * width
    attention = 4 * linear(width, width) + layer_norm(width)
    ffn = linear(width, ffn_width) + linear(ffn_width, width) + layer_norm(width)
    blocks = encoder_layers * (attention + ffn) + decoder_layers * (2 * attention + ffn)
    return BackboneShape(
        family=family,
        kind=StackKind.ENCODER_DECODER,
        norm=norm,
        encoder_layers=encoder_layers,
        decoder_layers=decoder_layers,
        width=width,
        query_heads=heads,
        key_value_heads=heads,
        head_width=entries.share("d_model", "encoder_attention_heads"),
        ffn_width=ffn_width,
        gated_ffn=False,
        parameters=embeddings + stack_norms * layer_norm(width) + blocks,
        biased_ports=ALL_BIASED,
        stack_norms=stack_norms,
    )


def _read_shape(config: Mapping[str, object]) -> BackboneShape:
    # A LayerNorm after the embeddings of either stack.
    return encoder_decoder_shape("bart", config, norm=NormPlacement.POST, stack_norms=2)


BART = Family(name="bart", model_types=("bart",), read_shape=_read_shape, ports=None)
