"""Inducers on whole backbones: attention with one more key and value per query (Chen et al. 2022), in float64.

Hooks of the test record the frozen projections' outputs. The attention of the first block is computed from them again,
with the extra key ``q + MLP_k(q)`` and its value in one softmax.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from support.built_forms import nudged
from support.edits import edit
from support.tiny_backbones import rig_of
from torch import Tensor, nn

from search_space.configuration import Configuration
from search_space.dimensions import Activation, Heads, Port
from search_space.edit import Edit
from search_space.forms import Bottleneck, Init, LowRank
from search_space.gates import ConvexInducerGate, Gate, InducerGate
from trial_runner.backbones import Backbone
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.deltas.port_delta import PortDelta
from trial_runner.port_discovery.edit_properties import build
from trial_runner.port_discovery.rig import Rig

TOKENS = 12
INPUT_IDS = torch.randint(5, 200, (3, TOKENS), generator=torch.Generator().manual_seed(0))
REAL = torch.arange(TOKENS) < torch.tensor([[12], [9], [4]])

PROJECTIONS = {
    "roberta": {
        "q": "encoder.layer.0.attention.self.query",
        "k": "encoder.layer.0.attention.self.key",
        "v": "encoder.layer.0.attention.self.value",
        "o": "encoder.layer.0.attention.output.dense",
    },
    "gpt2": {"qkv": "h.0.attn.c_attn", "o": "h.0.attn.c_proj"},
} | {family: {name: f"layers.0.self_attn.{name}_proj" for name in "qkvo"} for family in ("llama", "qwen3", "gemma2")}


@pytest.fixture(scope="module", params=PROJECTIONS)
def rig(request: pytest.FixtureRequest, tiny_backbone: Callable[[str], Path]) -> Iterator[Rig]:
    rig = rig_of(tiny_backbone(request.param))
    yield rig
    rig.attachment.detach()


def traced_run(backbone: Backbone) -> dict[str, Tensor]:
    """Return the outputs of the first block's projections with active deltas, and the output projection's input."""
    traced: dict[str, Tensor] = {}

    def keep(name: str) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], None]:
        def hook(_: nn.Module, arguments: tuple[Tensor, ...], output: Tensor) -> None:
            traced[name], traced[f"{name}:in"] = output, arguments[0]

        return hook

    handles = [
        backbone.model.get_submodule(path).register_forward_hook(keep(name))
        for name, path in PROJECTIONS[backbone.shape.family].items()
    ]
    backbone.model(input_ids=INPUT_IDS, attention_mask=REAL)
    for handle in handles:
        handle.remove()
    if "qkv" in traced:
        traced["q"], traced["k"], traced["v"] = traced["qkv"].chunk(3, dim=-1)
    return traced


class FirstAttention:
    """Queries, keys, values ``(B, H, T, d_h)`` and base logits of the first block, with GQA and rotation undone."""

    def __init__(self, backbone: Backbone, traced: dict[str, Tensor]) -> None:
        shape = backbone.shape
        width, group = shape.head_width, shape.query_heads // shape.key_value_heads

        def split(name: str) -> Tensor:
            return traced[name].unflatten(-1, (-1, width)).transpose(1, 2)

        self.projected = split("q")
        self.q, self.k = self._positioned(backbone, self.projected, split("k"))
        self.k, self.v = self.k.repeat_interleave(group, 1), split("v").repeat_interleave(group, 1)
        mask = REAL[:, None, None]
        if shape.kind == "decoder":
            mask = mask & torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril()
        is_capped = shape.family == "gemma2"  # which has a scale of its own, too
        self._scaling = backbone.model.config.query_pre_attn_scalar**-0.5 if is_capped else width**-0.5
        self._cap = backbone.model.config.attn_logit_softcapping if is_capped else None
        self.logits = self.scaled(self.q @ self.k.transpose(-1, -2)).masked_fill(~mask, -torch.inf)

    def scaled(self, products: Tensor) -> Tensor:
        """Return logits of products of queries and keys, the query's own among them."""
        logits = products * self._scaling
        return logits if self._cap is None else self._cap * torch.tanh(logits / self._cap)

    def _positioned(self, backbone: Backbone, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        family, model = backbone.shape.family, backbone.model
        if family not in ("llama", "qwen3", "gemma2"):
            return q, k
        from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

        if family == "qwen3":
            attention = model.get_submodule("layers.0.self_attn")
            q, k = attention.q_norm(q), attention.k_norm(k)
        cos, sin = model.rotary_emb(q, torch.arange(TOKENS)[None])
        return apply_rotary_pos_emb(q, k, cos, sin)


def inducer(write: Port, gate: Gate) -> Edit:
    form = Bottleneck(width=4, activation=Activation.TANH, heads=Heads.QUERY, init=Init.INDUCER)
    return edit(write, Port.Q, form, gate)


def moved(rig: Rig, *edits: Edit) -> DeltaSet:
    return nudged(build(rig, Configuration(edits=edits)), 0.5)


def joint_weights(first: FirstAttention, delta: PortDelta, head: int) -> Tensor:
    """``(B, T, 1 + S)``: softmax over the query's own key and the real ones."""
    keys = first.q[:, head]
    if delta.keys is not None:
        mlp = delta.keys
        hidden = torch.tanh(first.projected[:, head] @ mlp.down[head] + mlp.down_bias[head])
        keys = keys + hidden @ mlp.up[head] + mlp.up_bias[head]
    own = first.scaled((first.q[:, head] * keys).sum(-1, keepdim=True))
    return torch.cat([own, first.logits[:, head]], dim=-1).softmax(-1)


def hidden_units(first: FirstAttention, delta: PortDelta, head: int) -> Tensor:
    return torch.tanh(first.projected[:, head] @ delta.form.down[head] + delta.form.down_bias[head])


GATES = [
    gate(key_width=width) for gate in (InducerGate, ConvexInducerGate) for width in (None, 3)
]  # the convex gate leaves the head out of the extra value


@pytest.mark.parametrize(("write", "with_lora"), [(Port.HEAD, False), (Port.O, False), (Port.O, True)], ids=str)
@pytest.mark.parametrize("gate", GATES, ids=str)
def test_an_inducer_is_one_more_key_and_value(rig, gate, write, with_lora):
    """Value ``h + MLP_v(q)`` for ``h + lambda MLP_v(q)``; ``MLP_v(q)`` for ``(1 - lambda) h + lambda MLP_v(q)``.

    Extended to o, a head's values are ``v W_o``, and MLP_v computes one as wide; its bias is shared and not gated. An
    inducer reads the query with LoRA in it.
    """
    backbone, shape, at_heads = rig.backbone, rig.backbone.shape, write is Port.HEAD
    lora = edit(Port.Q, Port.X_ATTN, LowRank(width=2))
    deltas = moved(rig, inducer(write, gate), *((lora,) if with_lora else ()))
    with torch.no_grad(), rig.attachment.using(deltas):
        traced = traced_run(backbone)
        first, delta = FirstAttention(backbone, traced), next(iter(deltas.attention.values()))
        module = backbone.model.get_submodule(PROJECTIONS[shape.family]["o"])
        matrix = module.weight if shape.family == "gpt2" else module.weight.T
        own = torch.eye(shape.head_width, dtype=torch.float64)
        maps = [own] * shape.query_heads if at_heads else matrix.split(shape.head_width)  # (d_h, d) per head
        heads = []
        for head, rows in enumerate(maps):
            values = first.v[:, head] @ rows
            value = hidden_units(first, delta, head) @ delta.form.up[head]
            value = value + delta.form.up_bias[head] if at_heads else value
            if isinstance(gate, InducerGate):
                value = first.logits[:, head].softmax(-1) @ values + value
            weights = joint_weights(first, delta, head)
            heads.append(weights[..., :1] * value + weights[..., 1:] @ values)
        summed = delta.form.up_bias + (0 if module.bias is None else module.bias) + sum(heads) if not at_heads else None
    found, expected = (traced["o:in"], torch.cat(heads, dim=-1)) if at_heads else (traced["o"], summed)
    torch.testing.assert_close(found[REAL], expected[REAL], rtol=0, atol=1e-12)


def test_an_inducers_gate_is_neither_open_nor_closed_here(rig):
    """Test the condition under which the identities above are not trivial."""
    deltas = moved(rig, inducer(Port.HEAD, InducerGate(key_width=3)))
    with torch.no_grad(), rig.attachment.using(deltas):
        first = FirstAttention(rig.backbone, traced_run(rig.backbone))
    delta = next(iter(deltas.attention.values()))
    share = torch.stack([joint_weights(first, delta, head)[..., 0] for head in range(rig.backbone.shape.query_heads)])
    assert 0.05 < share[:, REAL].mean() < 0.95
