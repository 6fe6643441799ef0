"""GPT-2: pre-LN decoder with learned positions and fused query, key and value projections."""

from collections.abc import Mapping

from search_space.backbone_shape import BackboneShape
from search_space.dimensions import NormPlacement, StackKind
from search_space.families.entries import ConfigEntries
from search_space.families.family import Family
from search_space.families.parameters import ALL_BIASED, layer_norm, linear

__all__ = ["GPT2"]


def _read_shape(config: Mapping[str, object]) -> BackboneShape:
    entries = ConfigEntries("gpt2", config)
    entries.refuse_flag("add_cross_attention")
    width, heads, layers = entries.size("n_embd"), entries.size("n_head"), entries.size("n_layer")
    ffn_width = entries.size_or("n_inner", 4 * width)
    vocabulary = entries.size("vocab_size")
    tables = 1 if entries.flag("tie_word_embeddings", default=True) else 2
    embeddings = (tables * vocabulary + entries.size("n_positions")) * width
    attention = linear(width, 3 * width) + linear(width, width) + layer_norm(width)
    ffn = linear(width, ffn_width) + linear(ffn_width, width) + layer_norm(width)
    return BackboneShape(
        family="gpt2",
        kind=StackKind.DECODER,
        norm=NormPlacement.PRE,
        encoder_layers=0,
        decoder_layers=layers,
        width=width,
        query_heads=heads,
        key_value_heads=heads,
        head_width=entries.share("n_embd", "n_head"),
        ffn_width=ffn_width,
        gated_ffn=False,
        parameters=embeddings + layers * (attention + ffn) + layer_norm(width),
        biased_ports=ALL_BIASED,
        stack_norms=1,
    )


GPT2 = Family(name="gpt2", model_types=("gpt2",), read_shape=_read_shape, ports=None)
