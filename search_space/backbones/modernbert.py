"""ModernBERT: pre-LN encoder with rotary positions, local and global attention, and a gated FFN."""

from collections.abc import Mapping

from search_space.backbones.entries import ConfigEntries
from search_space.backbones.family import Family, PortLocation, PortTable, ports_of
from search_space.backbones.parameters import linear, rms_norm, table
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import NormPlacement, Port, Positions, Site, StackKind

_THIRDS, _HALVES = (1, 1, 1), (1, 1)
_ATTENTION = {
    Port.RES_IN: PortLocation("attn_norm", "input"),
    Port.X_ATTN: PortLocation("attn.Wqkv", "input"),
    Port.CTX: PortLocation("attn.Wqkv", "input"),
    Port.Q: PortLocation("attn.Wqkv", "output", part=0, shares=_THIRDS),
    Port.K: PortLocation("attn.Wqkv", "output", part=1, shares=_THIRDS),
    Port.V: PortLocation("attn.Wqkv", "output", part=2, shares=_THIRDS),
    Port.CONCAT: PortLocation("attn.Wo", "input"),
    Port.O: PortLocation("attn.Wo", "output"),
    Port.NORM: PortLocation("attn_norm", "output"),
}
_FFN = {
    Port.RES_F: PortLocation("mlp_norm", "input"),
    Port.X_FFN: PortLocation("mlp.Wi", "input"),
    Port.G: PortLocation("mlp.Wi", "output", part=0, shares=_HALVES),
    Port.U: PortLocation("mlp.Wi", "output", part=1, shares=_HALVES),
    Port.M: PortLocation("mlp.Wo", "input"),
    Port.F: PortLocation("mlp.Wo", "output"),
    Port.SUM: PortLocation("", "output"),
    Port.NORM: PortLocation("mlp_norm", "output"),
}
_ATTENTION_BIASES = frozenset((Site.ATTENTION, port) for port in (Port.Q, Port.K, Port.V, Port.O))
_FFN_BIASES = frozenset((Site.FFN, port) for port in (Port.G, Port.U, Port.F))


def _ports(_: BackboneShape) -> PortTable:
    return PortTable(
        layers={"encoder": "layers.{layer}"},
        attention_modules={Site.ENCODER_SELF: "attn"},
        ports=ports_of("encoder", Site.ENCODER_SELF, _ATTENTION) | ports_of("encoder", Site.FFN, _FFN),
        stack_norms=(),
        embeddings="embeddings.tok_embeddings",
    )


def _read_shape(config: Mapping[str, object]) -> BackboneShape:
    """The first block has no norm before its attention, which has the embeddings' norm before it."""
    entries = ConfigEntries("modernbert", config)
    entries.refuse_flag("norm_bias")
    width, ffn_width = entries.size("hidden_size"), entries.size("intermediate_size")
    layers, heads = entries.size("num_hidden_layers"), entries.size("num_attention_heads")
    has_biases, ffn_biases = (entries.flag(name, default=False) for name in ("attention_bias", "mlp_bias"))
    attention = linear(width, 3 * width, bias=has_biases) + linear(width, width, bias=has_biases)
    ffn = linear(width, 2 * ffn_width, bias=ffn_biases) + linear(ffn_width, width, bias=ffn_biases)
    base = table(entries.size("vocab_size"), width) + layers * (attention + ffn) + (2 * layers + 1) * rms_norm(width)
    return BackboneShape(
        family="modernbert",
        kind=StackKind.ENCODER,
        norm=NormPlacement.PRE,
        encoder_layers=layers,
        decoder_layers=0,
        width=width,
        query_heads=heads,
        key_value_heads=heads,
        head_width=entries.share("hidden_size", "num_attention_heads"),
        ffn_width=ffn_width,
        gated_ffn=True,
        parameters=base.parameters,
        biased_ports=(_ATTENTION_BIASES if has_biases else frozenset()) | (_FFN_BIASES if ffn_biases else frozenset()),
        stack_norms=0,
        positions=Positions.ROTARY,
        parameter_tensors=base.tensors,
    )


MODERNBERT = Family(
    name="modernbert",
    model_types=("modernbert",),
    read_shape=_read_shape,
    ports=_ports,
    example={
        "vocab_size": 40,
        "max_position_embeddings": 21,
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "local_attention": 4,
        "layer_types": ["full_attention", "sliding_attention"],
        "mlp_bias": True,
    },
)
