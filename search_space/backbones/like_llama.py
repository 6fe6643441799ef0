"""Transformers with the modules of Llama, which differ in their biases and norms, and in what they multiply.

Windows are in the masks that transformers makes, and factors of embeddings, residuals and logits stand outside the
ports, so neither is told of here. From Gemma 2 on every sublayer has a norm before it and one behind it: the ports
``o`` and ``f`` are what the projections write, before the norm behind them. There the weights can hold a low-rank map,
and what an adapter adds is normalised with the rest. The FFN of a mixture of experts is edited at its ends: an
adapter can stand beside all experts together, or behind them.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from search_space.backbones.entries import ConfigEntries
from search_space.backbones.family import PortLocation, PortTable, fused
from search_space.backbones.llama import (
    ATTENTION_PORTS,
    FFN_PORTS,
    LLAMA_ATTENTION,
    LLAMA_FFN,
    Biases,
    Parts,
    biases_of,
    gated_decoder_ports,
    llama_family,
)
from search_space.backbones.parameters import ModuleWeights, layer_norm
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import NormPlacement, Port, Site, StackKind

_NONE: Biases = frozenset()
_QUERIES = ATTENTION_PORTS - {(Site.ATTENTION, Port.O)}
_NORMS = frozenset({(Site.ATTENTION, Port.NORM), (Site.FFN, Port.NORM)})
_ROTARY = {"rope_type": "default", "rope_theta": 10_000.0}
_WINDOWS: Mapping[str, object] = {
    "head_dim": 6,
    "sliding_window": 3,
    "layer_types": ["sliding_attention", "full_attention"],
    "query_pre_attn_scalar": 5,
}
_DIFFERS = (
    "A decoder with the modules of Llama, which differs in its biases and norms or in what its attention multiplies."
)
_EXPERTS = "A mixture of experts: the attention of Llama, and an FFN that sends every token to a few of its experts."
_SANDWICH = "Gemma: the modules of Llama, and every sublayer has a norm before it and one behind it."

_GEMMA = Parts(tied=True, head_width=True)
_GEMMA2 = replace(_GEMMA, norms=4)


def _none(_: ConfigEntries) -> Biases:
    return _NONE


def _attention(entries: ConfigEntries, refused: str | None = None) -> Biases:
    if refused is not None:
        entries.refuse(refused)
    return ATTENTION_PORTS if entries.flag("attention_bias", default=False) else _NONE


def _gemma(entries: ConfigEntries) -> Biases:
    entries.refuse_flag("use_bidirectional_attention")
    return _attention(entries)


def _seed_oss(entries: ConfigEntries) -> Biases:
    queries = _QUERIES if entries.flag("attention_bias", default=True) else _NONE
    out = {(Site.ATTENTION, Port.O)} if entries.flag("attention_out_bias", default=False) else _NONE
    return queries | out | (FFN_PORTS if entries.flag("mlp_bias", default=False) else _NONE)


def _ernie(entries: ConfigEntries) -> Biases:
    return ATTENTION_PORTS | FFN_PORTS if entries.flag("use_bias", default=False) else _NONE


def _stablelm(entries: ConfigEntries) -> Biases:
    entries.refuse_flag("use_parallel_residual")
    entries.refuse_flag("qk_layernorm")
    return _NORMS | (_QUERIES if entries.flag("use_qkv_bias", default=False) else _NONE)


def _qwen3_moe(entries: ConfigEntries) -> Biases:
    entries.same("decoder_sparse_step", 1)
    return _attention(entries, "mlp_only_layers")


def _normed(norm: str) -> dict[Port, PortLocation]:
    """The FFN of Llama with another norm before it."""
    return LLAMA_FFN | {Port.RES_F: PortLocation(norm, "input"), Port.NORM: PortLocation(norm, "output")}


def _phi3_ports(shape: BackboneShape) -> PortTable:
    """Queries, keys and values come from one module, and gate and up from another."""
    queries, gate = "self_attn.qkv_proj", "mlp.gate_up_proj"
    shares = (shape.query_heads // shape.key_value_heads, 1, 1)
    read = PortLocation(queries, "input")
    attention = LLAMA_ATTENTION | {Port.X_ATTN: read, Port.CTX: read}
    ffn = LLAMA_FFN | {Port.X_FFN: PortLocation(gate, "input")} | fused(gate, (Port.G, Port.U), (1, 1))
    return gated_decoder_ports(shape, attention | fused(queries, (Port.Q, Port.K, Port.V), shares), ffn)


_sandwich_ports = partial(gated_decoder_ports, ffn=_normed("pre_feedforward_layernorm"))
_expert_ports = partial(
    gated_decoder_ports,
    ffn=LLAMA_FFN | {Port.X_FFN: PortLocation("mlp", "input"), Port.F: PortLocation("mlp", "output")},
)
_olmo2_ports = partial(
    gated_decoder_ports,
    attention=LLAMA_ATTENTION
    | {
        Port.RES_IN: LLAMA_ATTENTION[Port.X_ATTN],
        Port.NORM: PortLocation("post_attention_layernorm", "output"),
    },
    ffn=LLAMA_FFN
    | {Port.RES_F: LLAMA_FFN[Port.X_FFN], Port.NORM: PortLocation("post_feedforward_layernorm", "output")},
)


LIKE_LLAMA = (
    llama_family(
        "qwen2",
        "Qwen2 and Qwen2.5: the modules of Llama, always with biases on queries, keys and values.",
        lambda _: _QUERIES,
        tie_word_embeddings=True,
    ),
    llama_family(
        "qwen3",
        "Qwen3: the modules of Llama, an own head width, and RMSNorms on the heads of queries and keys.",
        _attention,
        parts=Parts(query_norms="head", head_width=True),
        head_dim=6,
        tie_word_embeddings=True,
    ),
    llama_family("mistral", _DIFFERS, _none, head_dim=6, sliding_window=3, tie_word_embeddings=False),
    llama_family(
        "ministral3",
        _DIFFERS,
        _none,
        head_dim=6,
        rope_parameters=_ROTARY | {"llama_4_scaling_beta": 0.1, "original_max_position_embeddings": 4},
        tie_word_embeddings=False,
    ),
    llama_family(
        "granite",
        _DIFFERS,
        biases_of,
        residual_multiplier=0.5,
        logits_scaling=2.0,
        embedding_multiplier=3.0,
        tie_word_embeddings=False,
    ),
    llama_family(
        "olmo",
        _DIFFERS,
        partial(_attention, refused="clip_qkv"),
        parts=Parts(norm=lambda _: ModuleWeights()),
        tie_word_embeddings=False,
    ),
    llama_family(
        "smollm3", _DIFFERS, biases_of, parts=Parts(tied=True), no_rope_layers=[1, 0], tie_word_embeddings=True
    ),
    llama_family(
        "seed_oss",
        _DIFFERS,
        _seed_oss,
        head_dim=6,
        attention_out_bias=True,
        residual_dropout=0.0,
        attention_dropout=0.0,
        tie_word_embeddings=False,
    ),
    llama_family(
        "helium",
        _DIFFERS,
        lambda entries: biases_of(entries) - {(Site.ATTENTION, Port.O)},
        head_dim=4,
        attention_bias=True,
        tie_word_embeddings=False,
    ),
    llama_family(
        "ernie4_5", _DIFFERS, _ernie, parts=Parts(tied=True), head_dim=6, use_bias=True, tie_word_embeddings=True
    ),
    llama_family(
        "stablelm",
        _DIFFERS,
        _stablelm,
        parts=Parts(norm=layer_norm),
        use_qkv_bias=True,
        rope_parameters=_ROTARY | {"partial_rotary_factor": 0.5},
        tie_word_embeddings=False,
    ),
    llama_family(
        "gemma",
        "Gemma: the modules of Llama with an own head width.",
        _gemma,
        parts=_GEMMA,
        head_dim=6,
    ),
    llama_family(
        "gemma2",
        _SANDWICH,
        _gemma,
        parts=_GEMMA2,
        ports=_sandwich_ports,
        attn_logit_softcapping=0.5,
        final_logit_softcapping=2.0,
        **_WINDOWS,
    ),
    replace(
        llama_family(
            "gemma3",
            _SANDWICH,
            _gemma,
            parts=replace(_GEMMA2, query_norms="head"),
            ports=_sandwich_ports,
            **_WINDOWS,
        ),
        model_types=("gemma3_text",),
    ),
    llama_family(
        "olmo2",
        "OLMo 2: the modules of Llama, whose norms stand behind the sublayers, on what these add to the stream.",
        _attention,
        parts=Parts(placement=NormPlacement.BRANCH, query_norms="all"),
        ports=_olmo2_ports,
        tie_word_embeddings=False,
    ),
    llama_family(
        "phi3",
        "Phi-3 and Phi-4: the blocks of Llama with queries, keys and values from one module, and gate and up from "
        "another.",
        _none,
        parts=Parts(fewer_tensors=3),
        ports=_phi3_ports,
        tie_word_embeddings=False,
    ),
    llama_family(
        "qwen3_moe",
        _EXPERTS,
        _qwen3_moe,
        parts=Parts(query_norms="head", experts="moe_intermediate_size"),
        ports=_expert_ports,
        head_dim=6,
        num_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=8,
        tie_word_embeddings=False,
    ),
    llama_family(
        "mixtral",
        _EXPERTS,
        partial(_attention, refused="router_jitter_noise"),
        parts=Parts(experts="intermediate_size"),
        ports=_expert_ports,
        num_experts=4,
        num_experts_per_tok=2,
        tie_word_embeddings=False,
    ),
    llama_family(
        "olmoe",
        _EXPERTS,
        partial(_attention, refused="clip_qkv"),
        parts=Parts(query_norms="all", experts="intermediate_size"),
        ports=_expert_ports,
        num_experts=4,
        num_experts_per_tok=2,
        tie_word_embeddings=False,
    ),
    llama_family(
        "eurobert",
        "EuroBERT: an encoder with the modules of Llama.",
        biases_of,
        parts=Parts(kind=StackKind.ENCODER),
        attention_bias=True,
    ),
)
"""Every family but Llama itself."""
