"""Mixtures of experts: the attention of Llama, and an FFN that sends every token to a few of its experts.

What an expert computes inside is no tensor of all tokens, so the FFN is edited where it begins and where it ends: an
adapter can stand beside all experts together, or behind them.
"""

from collections.abc import Mapping
from dataclasses import replace

from search_space.backbones.entries import ConfigEntries
from search_space.backbones.family import Family, PortLocation, PortTable
from search_space.backbones.llama import (
    ATTENTION_PORTS,
    LLAMA_ATTENTION,
    LLAMA_FFN,
    LLAMA_PARTS,
    SMALL_DECODER,
    Parts,
    gated_decoder_shape,
    head_width_of,
    llama_ports,
)
from search_space.backbones.parameters import Weights
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Port, Site

_INSIDE = frozenset({(Site.FFN, Port.G), (Site.FFN, Port.U), (Site.FFN, Port.M)})
_FFN = {
    **LLAMA_FFN,
    Port.X_FFN: PortLocation("mlp", "input"),
    Port.F: PortLocation("mlp", "output"),
}
_EXAMPLE = {**SMALL_DECODER, "tie_word_embeddings": False, "num_experts_per_tok": 2}


def _ports(shape: BackboneShape) -> PortTable:
    return llama_ports(shape, attention=LLAMA_ATTENTION, ffn=_FFN)


def _experts(entries: ConfigEntries, width: str) -> Weights:
    """A router, and two matrices of all experts: gate with up, and down."""
    number = "num_local_experts" if entries.has("num_local_experts") else "num_experts"  # transformers writes either
    outside, inside, experts = entries.size("hidden_size"), entries.size(width), entries.size(number)
    return Weights(experts * outside * (1 + 3 * inside), 3)


def _mixture(entries: ConfigEntries, parts: Parts, width: str = "intermediate_size") -> BackboneShape:
    has_biases = entries.flag("attention_bias", default=False)
    shape = gated_decoder_shape(
        entries,
        head_width=head_width_of(entries),
        biased_ports=ATTENTION_PORTS if has_biases else frozenset(),
        parts=replace(parts, ffn=_experts(entries, width), lacks=_INSIDE),
    )
    return replace(shape, ffn_width=entries.size(width))


def _qwen3_moe(config: Mapping[str, object]) -> BackboneShape:
    entries = ConfigEntries("qwen3_moe", config)
    entries.refuse("mlp_only_layers")
    entries.same("decoder_sparse_step", 1)
    return _mixture(entries, replace(LLAMA_PARTS, query_norms="head"), "moe_intermediate_size")


def _mixtral(config: Mapping[str, object]) -> BackboneShape:
    entries = ConfigEntries("mixtral", config)
    entries.refuse("router_jitter_noise")
    return _mixture(entries, LLAMA_PARTS)


def _olmoe(config: Mapping[str, object]) -> BackboneShape:
    entries = ConfigEntries("olmoe", config)
    entries.refuse("clip_qkv")
    return _mixture(entries, replace(LLAMA_PARTS, query_norms="all"))


QWEN3_MOE = Family(
    name="qwen3_moe",
    model_types=("qwen3_moe",),
    read_shape=_qwen3_moe,
    ports=_ports,
    example={**_EXAMPLE, "head_dim": 6, "num_experts": 4, "moe_intermediate_size": 8},
)
MIXTRAL = Family(
    name="mixtral",
    model_types=("mixtral",),
    read_shape=_mixtral,
    ports=_ports,
    example={**_EXAMPLE, "num_experts": 4},
)
OLMOE = Family(
    name="olmoe",
    model_types=("olmoe",),
    read_shape=_olmoe,
    ports=_ports,
    example={**_EXAMPLE, "num_experts": 4},
)
