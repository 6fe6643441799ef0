"""Llama: pre-RMSNorm decoder with rotary positions, grouped-query attention and a gated FFN."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from search_space.backbones.entries import ConfigEntries
from search_space.backbones.family import Family, PortLocation, PortTable, attention_ports, ports_of
from search_space.backbones.parameters import Weights, linear, rms_norm, table
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import NormPlacement, Port, Positions, Site, StackKind

ATTENTION_PORTS = frozenset((Site.ATTENTION, port) for port in (Port.Q, Port.K, Port.V, Port.O))
FFN_PORTS = frozenset((Site.FFN, port) for port in (Port.G, Port.U, Port.F))
LLAMA_ATTENTION = attention_ports(
    read="input_layernorm",
    projections=("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"),
    norm="input_layernorm",
)
LLAMA_FFN = {
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What transformers with the modules of Llama differ in, beside their sizes.

    Attributes:
        kind: A decoder, or an encoder whose attention looks both ways.
        norm: What a norm over some channels holds.
        norms: Norms of the model's width in a block.
        placement: Where they are.
        query_norms: What the norms of queries and of keys are over: each head, all heads, or there are none.
        tied: Whether the head is the embedding where the config does not say.
        ffn: What the FFN of a block holds, where it is not the projections of one gated FFN.
        lacks: As in ``BackboneShape``.
    """

    kind: StackKind = StackKind.DECODER
    norm: Callable[[int], Weights] = rms_norm
    norms: int = 2
    placement: NormPlacement = NormPlacement.PRE
    query_norms: Literal["none", "head", "all"] = "none"
    tied: bool = False
    ffn: Weights | None = None
    lacks: frozenset[tuple[Site, Port]] = frozenset()


LLAMA_PARTS = Parts()


def gated_decoder_ports(shape: BackboneShape) -> PortTable:
    """The ports of a transformer with the modules of Llama."""
    return llama_ports(shape, attention=LLAMA_ATTENTION, ffn=LLAMA_FFN)


def llama_ports(
    shape: BackboneShape, *, attention: Mapping[Port, PortLocation], ffn: Mapping[Port, PortLocation]
) -> PortTable:
    """The ports of a transformer whose blocks are where those of Llama are.

    Args:
        attention: In a block.
        ffn: In a block; those that the shape lacks are left out.
    """
    is_decoder = shape.kind is StackKind.DECODER
    stack, site = ("decoder", Site.DECODER_SELF) if is_decoder else ("encoder", Site.ENCODER_SELF)
    reached = {port: place for port, place in ffn.items() if shape.has(Site.FFN, port)}
    return PortTable(
        layers={stack: "layers.{layer}"},
        attention_modules={site: "self_attn"},
        ports=ports_of(stack, site, attention) | ports_of(stack, Site.FFN, reached),
        stack_norms=("norm",) if shape.stack_norms else (),
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
    parts: Parts = LLAMA_PARTS,
) -> BackboneShape:
    """Shape of a transformer with the modules of Llama.

    Args:
        biased_ports: As in ``BackboneShape``.
        parts: What it has of its own.

    Raises:
        UnsupportedBackboneError: If an entry is missing or cannot be.
    """
    width, ffn_width = entries.size("hidden_size"), entries.size("intermediate_size")
    query_heads, key_value_heads = entries.size("num_attention_heads"), _key_value_heads(entries)
    queries, keys = query_heads * head_width, key_value_heads * head_width
    projections = _projections(width, queries, keys, ffn_width)
    if parts.ffn is not None:
        projections = {port: sizes for port, sizes in projections.items() if port[0] is not Site.FFN}
    norms = parts.norms * parts.norm(width) + (parts.ffn or Weights())
    norms += {
        "none": Weights(),
        "head": 2 * parts.norm(head_width),
        "all": parts.norm(queries) + parts.norm(keys),
    }[parts.query_norms]
    block = sum((linear(*sizes, bias=port in biased_ports) for port, sizes in projections.items()), norms)
    base, head = _model(entries, block, parts)
    layers, is_decoder = entries.size("num_hidden_layers"), parts.kind is StackKind.DECODER
    return BackboneShape(
        family=entries.family,
        kind=parts.kind,
        norm=parts.placement,
        encoder_layers=0 if is_decoder else layers,
        decoder_layers=layers if is_decoder else 0,
        width=width,
        query_heads=query_heads,
        key_value_heads=key_value_heads,
        head_width=head_width,
        ffn_width=ffn_width,
        gated_ffn=parts.ffn is None,
        parameters=base.parameters + head.parameters,
        biased_ports=biased_ports,
        stack_norms=1 if (Site.FFN, Port.NORM) in biased_ports else 0,
        positions=Positions.ROTARY,
        unused_parameters=head.parameters,
        parameter_tensors=base.tensors,
        lacks=parts.lacks,
    )


def _model(entries: ConfigEntries, block: Weights, parts: Parts) -> tuple[Weights, Weights]:
    """What a base model of such blocks holds, and what its head holds unless that is the embedding."""
    tokens = table(entries.size("vocab_size"), entries.size("hidden_size"))
    is_tied = parts.kind is StackKind.ENCODER or entries.flag("tie_word_embeddings", default=parts.tied)
    base = tokens + entries.size("num_hidden_layers") * block + parts.norm(entries.size("hidden_size"))
    return base, Weights() if is_tied else tokens


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


def biases_of(entries: ConfigEntries) -> frozenset[tuple[Site, Port]]:
    """``biased_ports`` as the entries ``attention_bias`` and ``mlp_bias`` say them."""
    attention_ports = ATTENTION_PORTS if entries.flag("attention_bias", default=False) else frozenset()
    return attention_ports | (FFN_PORTS if entries.flag("mlp_bias", default=False) else frozenset())


def _read_shape(config: Mapping[str, object]) -> BackboneShape:
    entries = ConfigEntries("llama", config)
    return gated_decoder_shape(entries, head_width=head_width_of(entries), biased_ports=biases_of(entries))


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
