"""ModernBERT: pre-LN encoder with rotary positions, local and global attention, and a gated FFN."""

from search_space.backbones.entries import ConfigEntries
from search_space.backbones.family import BackboneFamily, PortTable, attention_ports, ffn_ports, fused, ports_of
from search_space.backbones.llama import SMALL_DECODER, biases_of
from search_space.backbones.parameters import linear, rms_norm, table
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import NormPlacement, Port, Positions, Site, StackKind

_ATTENTION = attention_ports(
    read="attn_norm", projections=("attn.Wqkv", "attn.Wqkv", "attn.Wqkv", "attn.Wo"), norm="attn_norm"
) | fused("attn.Wqkv", (Port.Q, Port.K, Port.V), (1, 1, 1))
_FFN = ffn_ports(read="mlp_norm", gate="mlp.Wi", up="mlp.Wi", down="mlp.Wo", norm="mlp_norm", block="") | fused(
    "mlp.Wi", (Port.G, Port.U), (1, 1)
)


def _ports(_: BackboneShape) -> PortTable:
    return PortTable(
        layers={"encoder": "layers.{layer}"},
        attention_modules={Site.ENCODER_SELF: "attn"},
        ports=ports_of("encoder", Site.ENCODER_SELF, _ATTENTION) | ports_of("encoder", Site.FFN, _FFN),
        stack_norms=(),
        embeddings="embeddings.tok_embeddings",
    )


def _shape(entries: ConfigEntries) -> BackboneShape:
    """The first block has no norm before its attention, which has the embeddings' norm before it."""
    entries.refuse_flag("norm_bias")
    width, ffn_width = entries.size("hidden_size"), entries.size("intermediate_size")
    layers, heads = entries.size("num_hidden_layers"), entries.size("num_attention_heads")
    biased = biases_of(entries)
    has_biases, ffn_biases = ((site, port) in biased for site, port in ((Site.ATTENTION, Port.O), (Site.FFN, Port.F)))
    attention = linear(width, 3 * width, bias=has_biases) + linear(width, width, bias=has_biases)
    ffn = linear(width, 2 * ffn_width, bias=ffn_biases) + linear(ffn_width, width, bias=ffn_biases)
    base = table(entries.size("vocab_size"), width) + layers * (attention + ffn) + (2 * layers + 1) * rms_norm(width)
    return BackboneShape(
        family="modernbert",
        kind=StackKind.ENCODER,
        norm=NormPlacement.PRE,
        encoder_layers=layers,
        width=width,
        query_heads=heads,
        key_value_heads=heads,
        head_width=entries.share("hidden_size", "num_attention_heads"),
        ffn_width=ffn_width,
        gated_ffn=True,
        parameters=base.parameters,
        biased_ports=biased,
        positions=Positions.ROTARY,
        parameter_tensors=base.tensors,
    )


MODERNBERT = BackboneFamily(
    name="modernbert",
    words="ModernBERT: pre-LN encoder with rotary positions, local and global attention, and a gated FFN.",
    model_types=("modernbert",),
    shape_from=_shape,
    ports=_ports,
    example={
        **{name: size for name, size in SMALL_DECODER.items() if name != "num_key_value_heads"},
        "local_attention": 4,
        "layer_types": ["full_attention", "sliding_attention"],
        "mlp_bias": True,
    },
)
