"""Names of the modules of tiny backbones, as `peft` takes them; spelt out, for they check the tables of ports."""

from dataclasses import dataclass

from search_space.dimensions import Port, Site


@dataclass(frozen=True)
class Modules:
    """Where peft finds the modules of one kind of sublayer: a path with ``{}`` for the block, and names by port."""

    path: str
    names: dict[Port, str]

    def at(self, layer: int, port: Port) -> str:
        return self.path.format(layer) + self.names[port]


_BERT = {
    ("encoder", Site.ENCODER_SELF): Modules(
        "encoder.layer.{}.attention.",
        {
            Port.Q: "self.query",
            Port.K: "self.key",
            Port.V: "self.value",
            Port.O: "output.dense",
            Port.NORM: "output.LayerNorm",
        },
    ),
    ("encoder", Site.FFN): Modules(
        "encoder.layer.{}.", {Port.U: "intermediate.dense", Port.F: "output.dense", Port.NORM: "output.LayerNorm"}
    ),
}
_BART_NAMES = {Port.Q: "q_proj", Port.K: "k_proj", Port.V: "v_proj", Port.O: "out_proj"}
_BART = {
    (stack, site): Modules(
        f"{stack}.layers.{{}}.",
        {port: f"{name}.{inner}" for port, inner in _BART_NAMES.items()} | {Port.NORM: f"{name}_layer_norm"},
    )
    for stack, site, name in (
        ("encoder", Site.ENCODER_SELF, "self_attn"),
        ("decoder", Site.DECODER_SELF, "self_attn"),
        ("decoder", Site.CROSS, "encoder_attn"),
    )
} | {
    (stack, Site.FFN): Modules(f"{stack}.layers.{{}}.", {Port.U: "fc1", Port.F: "fc2", Port.NORM: "final_layer_norm"})
    for stack in ("encoder", "decoder")
}
_T5 = {
    (stack, site): Modules(f"{stack}.block.{{}}.layer.{index}.{name}.", {port: port.value for port in _BART_NAMES})
    for stack, site, index, name in (
        ("encoder", Site.ENCODER_SELF, 0, "SelfAttention"),
        ("decoder", Site.DECODER_SELF, 0, "SelfAttention"),
        ("decoder", Site.CROSS, 1, "EncDecAttention"),
    )
}
_T5_FFN = {
    gated: {
        (stack, Site.FFN): Modules(f"{stack}.block.{{}}.layer.{index}.DenseReluDense.", names)
        for stack, index in (("encoder", 1), ("decoder", 2))
    }
    for gated, names in (
        (False, {Port.U: "wi", Port.F: "wo"}),
        (True, {Port.G: "wi_0", Port.U: "wi_1", Port.F: "wo"}),
    )
}
_GPT2 = {
    ("decoder", Site.DECODER_SELF): Modules(
        "h.{}.", dict.fromkeys((Port.Q, Port.K, Port.V), "attn.c_attn") | {Port.O: "attn.c_proj", Port.NORM: "ln_1"}
    ),
    ("decoder", Site.FFN): Modules("h.{}.", {Port.U: "mlp.c_fc", Port.F: "mlp.c_proj", Port.NORM: "ln_2"}),
}
_LLAMA = {
    ("decoder", Site.DECODER_SELF): Modules("layers.{}.self_attn.", {port: f"{port}_proj" for port in _BART_NAMES}),
    ("decoder", Site.FFN): Modules("layers.{}.mlp.", {Port.G: "gate_proj", Port.U: "up_proj", Port.F: "down_proj"}),
}
MODULES = {
    "roberta": _BERT,
    "bert": _BERT,
    "bart": _BART,
    "t5": _T5 | _T5_FFN[False],
    "t5_gated": _T5 | _T5_FFN[True],
    "gpt2": _GPT2,
    "llama": _LLAMA,
    "qwen2": _LLAMA,
    "qwen3": _LLAMA,
}
STACK_NORMS = {
    "roberta": ("embeddings.LayerNorm",),
    "bert": ("embeddings.LayerNorm",),
    "bart": ("encoder.layernorm_embedding", "decoder.layernorm_embedding"),
    "gpt2": ("ln_f",),
}
FUSED = {Port.Q: 0, Port.K: 1, Port.V: 2}
"""Which third of GPT-2's one projection is q, k and v."""
