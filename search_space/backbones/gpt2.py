"""GPT-2: pre-LN decoder with learned positions and fused query, key and value projections."""

from search_space.backbones.entries import ConfigEntries
from search_space.backbones.family import BackboneFamily, PortTable, attention_ports, ffn_ports, fused, ports_of
from search_space.backbones.parameters import ALL_BIASED, ModuleWeights, layer_norm, linear, table
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import NormPlacement, Port, Site, StackKind

_ATTENTION = attention_ports(
    read="ln_1", projections=("attn.c_attn", "attn.c_attn", "attn.c_attn", "attn.c_proj"), norm="ln_1"
) | fused("attn.c_attn", (Port.Q, Port.K, Port.V), (1, 1, 1))
_FFN = ffn_ports(read="ln_2", up="mlp.c_fc", down="mlp.c_proj", norm="ln_2", block="")


def _ports(_: BackboneShape) -> PortTable:
    return PortTable(
        layers={"decoder": "h.{layer}"},
        attention_modules={Site.DECODER_SELF: "attn"},
        ports=ports_of("decoder", Site.DECODER_SELF, _ATTENTION) | ports_of("decoder", Site.FFN, _FFN),
        stack_norms=("ln_f",),
        embeddings="wte",
        is_transposed=True,
    )


def _shape(entries: ConfigEntries) -> BackboneShape:
    entries.refuse_flag("add_cross_attention")
    width, heads, layers = entries.size("n_embd"), entries.size("n_head"), entries.size("n_layer")
    ffn_width = entries.size_or("n_inner", 4 * width)
    tokens = table(entries.size("vocab_size"), width)
    head = ModuleWeights() if entries.flag("tie_word_embeddings", default=True) else tokens
    attention = linear(width, 3 * width) + linear(width, width) + layer_norm(width)
    ffn = linear(width, ffn_width) + linear(ffn_width, width) + layer_norm(width)
    base = tokens + table(entries.size("n_positions"), width) + layers * (attention + ffn) + layer_norm(width)
    return BackboneShape(
        family="gpt2",
        kind=StackKind.DECODER,
        norm=NormPlacement.PRE,
        decoder_layers=layers,
        width=width,
        query_heads=heads,
        key_value_heads=heads,
        head_width=entries.share("n_embd", "n_head"),
        ffn_width=ffn_width,
        parameters=base.parameters + head.parameters,
        biased_ports=ALL_BIASED,
        stack_norms=1,
        unused_parameters=head.parameters,
        parameter_tensors=base.tensors,
    )


GPT2 = BackboneFamily(
    name="gpt2",
    words="GPT-2: pre-LN decoder with learned positions and fused query, key and value projections.",
    model_types=("gpt2",),
    shape_from=_shape,
    ports=_ports,
    example={"vocab_size": 40, "n_positions": 21, "n_embd": 16, "n_layer": 2, "n_head": 4},
)
