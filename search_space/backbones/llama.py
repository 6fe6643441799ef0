"""Llama: pre-RMSNorm decoder with rotary positions, grouped-query attention and a gated FFN."""

from collections.abc import Mapping

from search_space.backbones.entries import ConfigEntries
from search_space.backbones.family import Family, PortLocation, PortTable, attention_ports, ports_of
from search_space.backbones.parameters import Weights, linear, rms_norm, table
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import NormPlacement, Port, Positions, Site, StackKind

ATTENTION_PORTS = frozenset((Site.ATTENTION, port) for port in (Port.Q, Port.K, Port.V, Port.O))
_FFN_PORTS = frozenset((Site.FFN, port) for port in (Port.G, Port.U, Port.F))
_ATTENTION = attention_ports(
    read="input_layernorm",
    projections=("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"),
    norm="input_layernorm",
)
_FFN = {
    Port.RES_F: PortLocation("post_attention_layernorm", "input"),
    # the gate projection is called first, so what it reads is there for edits of g, too
    Port.X_FFN: PortLocation("mlp.gate_proj", "input"),
    Port.G: PortLocation("mlp.gate_proj", "output"),
    Port.U: PortLocation("mlp.up_proj", "output"),
    Port.M: PortLocation("mlp.down_proj", "input"),
    Port.F: PortLocation("mlp.down_proj", "output"),
    Port.SUM: PortLocation("", "output"),
    Port.NORM: PortLocation("post_attention_layernorm", "output"),
}


def gated_decoder_ports(_: BackboneShape) -> PortTable:
    """The ports of a decoder with the modules of Llama."""
    return PortTable(
        layers={"decoder": "layers.{layer}"},
        attention_modules={Site.DECODER_SELF: "self_attn"},
        ports=ports_of("decoder", Site.DECODER_SELF, _ATTENTION) | ports_of("decoder", Site.FFN, _FFN),
        stack_norms=(),
        embeddings="embed_tokens",
    )


def head_width_of(entries: ConfigEntries) -> int:
    """The entry ``head_dim``; without it the residual width is split among the query heads."""
    if entries.has("head_dim"):
        return entries.size("head_dim")
    return entries.share("hidden_size", among="num_attention_heads")


def gated_decoder_shape(
    entries: ConfigEntries,
    *,
    head_width: int,
    biased_ports: frozenset[tuple[Site, Port]],
    head_norms: int = 0,
) -> BackboneShape:
    """Shape of a decoder with the modules of Llama.

    Args:
        biased_ports: As in ``BackboneShape``.
        head_norms: RMSNorms per attention that are one head wide and shared by the heads.

    Raises:
        UnsupportedBackboneError: If an entry is missing or cannot be.
    """
    width, ffn_width = entries.size("hidden_size"), entries.size("intermediate_size")
    query_heads, key_value_heads = entries.size("num_attention_heads"), _key_value_heads(entries)
    projections = _projections(width, query_heads * head_width, key_value_heads * head_width, ffn_width)
    norms = 2 * rms_norm(width) + head_norms * rms_norm(head_width)
    block = sum((linear(*sizes, bias=port in biased_ports) for port, sizes in projections.items()), norms)
    base, head = _model(entries, block)
    return BackboneShape(
        family=entries.family,
        kind=StackKind.DECODER,
        norm=NormPlacement.PRE,
        encoder_layers=0,
        decoder_layers=entries.size("num_hidden_layers"),
        width=width,
        query_heads=query_heads,
        key_value_heads=key_value_heads,
        head_width=head_width,
        ffn_width=ffn_width,
        gated_ffn=True,
        parameters=base.parameters + head.parameters,
        biased_ports=biased_ports,
        stack_norms=0,
        positions=Positions.ROTARY,
        unused_parameters=head.parameters,
        parameter_tensors=base.tensors,
    )


def _model(entries: ConfigEntries, block: Weights) -> tuple[Weights, Weights]:
    """What a base model of such blocks holds, and what its head holds unless that is the embedding."""
    tokens = table(entries.size("vocab_size"), entries.size("hidden_size"))
    head = Weights() if entries.flag("tie_word_embeddings", default=False) else tokens
    return tokens + entries.size("num_hidden_layers") * block + rms_norm(entries.size("hidden_size")), head


def _projections(
    width: int, query_width: int, key_value_width: int, ffn_width: int
) -> dict[tuple[Site, Port], tuple[int, int]]:
    """Inputs and outputs of the linear layers of a block, by the port that each writes."""
    return {
        (Site.ATTENTION, Port.Q): (width, query_width),
        (Site.ATTENTION, Port.K): (width, key_value_width),
        (Site.ATTENTION, Port.V): (width, key_value_width),
        (Site.ATTENTION, Port.O): (query_width, width),
        (Site.FFN, Port.G): (width, ffn_width),
        (Site.FFN, Port.U): (width, ffn_width),
        (Site.FFN, Port.F): (ffn_width, width),
    }


def _key_value_heads(entries: ConfigEntries) -> int:
    """Without the entry every query head has its own keys and values."""
    if not entries.has("num_key_value_heads"):
        return entries.size("num_attention_heads")
    entries.share("num_attention_heads", among="num_key_value_heads")
    return entries.size("num_key_value_heads")


def _read_shape(config: Mapping[str, object]) -> BackboneShape:
    entries = ConfigEntries("llama", config)
    attention_ports = ATTENTION_PORTS if entries.flag("attention_bias", default=False) else frozenset()
    ffn_ports = _FFN_PORTS if entries.flag("mlp_bias", default=False) else frozenset()
    return gated_decoder_shape(entries, head_width=head_width_of(entries), biased_ports=attention_ports | ffn_ports)


SMALL_DECODER: Mapping[str, object] = {
    "vocab_size": 40,
    "max_position_embeddings": 21,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}

LLAMA = Family(
    name="llama",
    model_types=("llama",),
    read_shape=_read_shape,
    ports=gated_decoder_ports,
    example={**SMALL_DECODER, "tie_word_embeddings": True},
)
