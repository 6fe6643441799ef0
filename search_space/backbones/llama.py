"""Llama: pre-RMSNorm decoder with rotary positions, grouped-query attention and a gated FFN."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from search_space.backbones.entries import ConfigEntries
from search_space.backbones.family import BackboneFamily, PortLocation, PortTable, attention_ports, ffn_ports, ports_of
from search_space.backbones.parameters import ModuleWeights, linear, rms_norm, table
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import NormPlacement, Port, Positions, Site, StackKind

Biases = frozenset[tuple[Site, Port]]

ATTENTION_PORTS: Biases = frozenset((Site.ATTENTION, port) for port in (Port.Q, Port.K, Port.V, Port.O))
FFN_PORTS: Biases = frozenset((Site.FFN, port) for port in (Port.G, Port.U, Port.F))
INSIDE: Biases = frozenset((Site.FFN, port) for port in (Port.G, Port.U, Port.M))
"""What is no tensor of all tokens where a token goes to a few of many experts."""
LLAMA_ATTENTION = attention_ports(
    read="input_layernorm",
    projections=("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"),
    norm="input_layernorm",
)
LLAMA_FFN = ffn_ports(
    read="post_attention_layernorm",
    gate="mlp.gate_proj",
    up="mlp.up_proj",
    down="mlp.down_proj",
    norm="post_attention_layernorm",
    block="",
)


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
        head_width: Whether the config must say it; else the residual width is split among the query heads without.
        experts: The entry that says how wide an expert is; None where a block has one gated FFN.
        fewer_tensors: Of a block, where one module holds what are several in Llama.
    """

    kind: StackKind = StackKind.DECODER
    norm: Callable[[int], ModuleWeights] = rms_norm
    norms: int = 2
    placement: NormPlacement = NormPlacement.PRE
    query_norms: Literal["none", "head", "all"] = "none"
    tied: bool = False
    head_width: bool = False
    experts: str | None = None
    fewer_tensors: int = 0


LLAMA_PARTS = Parts()


def gated_decoder_ports(
    shape: BackboneShape,
    attention: Mapping[Port, PortLocation] = LLAMA_ATTENTION,
    ffn: Mapping[Port, PortLocation] = LLAMA_FFN,
) -> PortTable:
    """The ports of a transformer with the modules of Llama, or with blocks where those of Llama are.

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


def gated_decoder_shape(entries: ConfigEntries, *, biased_ports: Biases, parts: Parts = LLAMA_PARTS) -> BackboneShape:
    """Shape of a transformer with the modules of Llama.

    Args:
        biased_ports: As in ``BackboneShape``.
        parts: What it has of its own.

    Raises:
        UnsupportedBackboneError: If an entry is missing or cannot be.
    """
    has_head_width = parts.head_width or entries.has("head_dim")
    head_width = entries.size("head_dim") if has_head_width else entries.share("hidden_size", "num_attention_heads")
    width, ffn_width = entries.size("hidden_size"), entries.size("intermediate_size")
    query_heads, key_value_heads = entries.size("num_attention_heads"), _key_value_heads(entries)
    queries, keys = query_heads * head_width, key_value_heads * head_width
    projections = {
        (Site.ATTENTION, Port.Q): (width, queries),
        (Site.ATTENTION, Port.K): (width, keys),
        (Site.ATTENTION, Port.V): (width, keys),
        (Site.ATTENTION, Port.O): (queries, width),
    }
    block = parts.norms * parts.norm(width)
    if parts.experts is None:
        projections |= {(Site.FFN, port): (width, ffn_width) for port in (Port.G, Port.U)}
        projections[Site.FFN, Port.F] = (ffn_width, width)
    else:
        ffn_width = entries.size(parts.experts)
        block += _experts(entries, width, ffn_width)
    if parts.query_norms != "none":
        over = (head_width, head_width) if parts.query_norms == "head" else (queries, keys)
        block += parts.norm(over[0]) + parts.norm(over[1])
    block = sum((linear(*sizes, bias=port in biased_ports) for port, sizes in projections.items()), block)
    layers, is_decoder = entries.size("num_hidden_layers"), parts.kind is StackKind.DECODER
    tokens = table(entries.size("vocab_size"), width)
    base = tokens + layers * block + parts.norm(width)
    is_tied = not is_decoder or entries.flag("tie_word_embeddings", default=parts.tied)
    unused = 0 if is_tied else tokens.parameters
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
        gated_ffn=parts.experts is None,
        parameters=base.parameters + unused,
        biased_ports=biased_ports,
        stack_norms=1 if (Site.FFN, Port.NORM) in biased_ports else 0,
        positions=Positions.ROTARY,
        unused_parameters=unused,
        parameter_tensors=base.tensors - layers * parts.fewer_tensors,
        lacks=frozenset() if parts.experts is None else INSIDE,
    )


def _key_value_heads(entries: ConfigEntries) -> int:
    """Without the entry every query head has its own keys and values."""
    if not entries.has("num_key_value_heads"):
        return entries.size("num_attention_heads")
    entries.share("num_attention_heads", among="num_key_value_heads")
    return entries.size("num_key_value_heads")


def _experts(entries: ConfigEntries, outside: int, inside: int) -> ModuleWeights:
    """A router, and two matrices of all experts: gate with up, and down."""
    number = "num_local_experts" if entries.has("num_local_experts") else "num_experts"  # transformers writes either
    return ModuleWeights(entries.size(number) * outside * (1 + 3 * inside), 3)


def biases_of(entries: ConfigEntries) -> Biases:
    """``biased_ports`` as the entries ``attention_bias`` and ``mlp_bias`` say them."""
    attention_ports = ATTENTION_PORTS if entries.flag("attention_bias", default=False) else frozenset()
    return attention_ports | (FFN_PORTS if entries.flag("mlp_bias", default=False) else frozenset())


SMALL_DECODER: Mapping[str, object] = {
    "vocab_size": 40,
    "max_position_embeddings": 21,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}


def llama_family(
    name: str,
    words: str,
    biases: Callable[[ConfigEntries], Biases],
    *,
    parts: Parts = LLAMA_PARTS,
    ports: Callable[[BackboneShape], PortTable] = gated_decoder_ports,
    **example: object,
) -> BackboneFamily:
    """A family with the modules of Llama, by its name.

    Args:
        words: What it is, in a sentence.
        biases: The biased ports that a config means; refuses what is another model.
        parts: What it has of its own.
        ports: Where its ports are.
        example: Entries of its example beside the sizes.
    """
    return BackboneFamily(
        name=name,
        words=words,
        model_types=(name,),
        shape_from=lambda entries: gated_decoder_shape(entries, biased_ports=biases(entries), parts=parts),
        ports=ports,
        example={**SMALL_DECODER, **example},
    )


LLAMA = llama_family(
    "llama",
    "Llama: pre-RMSNorm decoder with rotary positions, grouped-query attention and a gated FFN.",
    biases_of,
    tie_word_embeddings=True,
)
