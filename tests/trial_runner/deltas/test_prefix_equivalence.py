"""Prefix tuning as a gated sum of two attentions (He et al. 2022, eq. 5 = eq. 7): the product's outputs, both ways.

The concatenated form is the convex gate inside `attend`. The gated form combines other gates inside `attend`: the base
heads, and lambda (a weighted gate over values of one on a base of zero). The third is the prefix's own attention (plain
addition on a base of zero). Shapes: `B` examples, `H` query heads, `T` tokens, `R` prefix rows.
"""

from types import SimpleNamespace

import pytest
import torch
from support.attention_cases import BATCH, GROUP, HEADS, KV_HEADS, LENGTH, TOKENS, WIDTH, AttentionProblem
from support.built_forms import build_delta, made_up_shape
from support.edits import edit
from torch import Tensor, nn

from search_space.backbones.shape import Sublayer
from search_space.dimensions import Heads, Port, Site
from search_space.forms import Form, SoftmaxMemory
from search_space.gates import Add, ConvexGate, Gate, WeightedGate
from trial_runner.attachment.attention import attend, tap_attention, untap_attention
from trial_runner.attachment.head_edits import HeadEdits
from trial_runner.deltas.port_delta import PortDelta
from trial_runner.packed.packed_deltas import PackedDeltas, SlotRows

HERE = Sublayer(site=Site.ENCODER_SELF, stack="encoder", layer=0)

# Bounds relative to the largest output; measured in float64: 9e-16, with queries eight times as large 4e-15.
BOUNDS = {torch.float64: 1e-12, torch.float32: 3e-6, torch.float16: 1.5e-2, torch.bfloat16: 8e-2}

SHAPE = made_up_shape(
    family="llama",
    decoder_layers=1,
    width=HEADS * WIDTH,
    query_heads=HEADS,
    key_value_heads=KV_HEADS,
    head_width=WIDTH,
    ffn_width=4 * HEADS * WIDTH,
    gated_ffn=True,
    parameters=1,
)


def head_delta(form: Form, gate: Gate, dtype: torch.dtype) -> PortDelta:
    """Build the module of an edit from q to the heads."""
    return build_delta(edit(Port.HEAD, Port.Q, form, gate), LENGTH, SHAPE, torch.Generator().manual_seed(1)).to(dtype)


class Problem(AttentionProblem):
    """Attention problem with the product's outputs."""

    @property
    def leaves(self) -> tuple[Tensor, ...]:
        return self.q, self.k, self.v, self.p_k, self.p_v

    def prefix(self, gate: Gate, values: Tensor) -> PortDelta:
        """Build a softmax memory with the prefix's keys and these values, under a gate."""
        delta = head_delta(SoftmaxMemory(width=LENGTH, heads=Heads.KEY_VALUE), gate, self.dtype)
        for name, tensor in (("keys", self.p_k), ("values", values)):
            delattr(delta.form, name)
            setattr(delta.form, name, tensor)  # the leaf itself, so that gradients reach it
        return delta

    def attended(self, delta: PortDelta | None = None, v: Tensor | None = None) -> Tensor:
        """``(B, H, T, d_h)`` as production computes it, with an edit or without."""
        module, edits = nn.Identity(), [] if delta is None else [delta]
        values = {Port.Q: SlotRows(self.q.transpose(1, 2).flatten(-2), 1)}  # (B, T, d_q), as the hook on q keeps it
        alone = SimpleNamespace(sublayers={HERE: edits}, attention=nn.ModuleDict(), prompt=None, whole=None)
        packed = PackedDeltas([alone]).plans[HERE]
        tap = HeadEdits(lambda: packed, values)
        tap_attention(module, tap)
        try:
            return attend(module, self.q, self.k, self.v if v is None else v, self.mask)[0].transpose(1, 2)
        finally:
            untap_attention(module)

    def concatenated(self) -> Tensor:
        return self.attended(self.prefix(ConvexGate(), self.p_v))

    def share(self) -> Tensor:
        """lambda ``(B, H, T, 1)`` of production's weighted gate."""
        ones = self.prefix(WeightedGate(), torch.ones_like(self.p_v))
        return self.attended(ones, torch.zeros_like(self.v))[..., :1]

    def prefix_alone(self) -> Tensor:
        """``softmax(q P_k^T / sqrt(d_h)) P_v`` of production's ungated prefix."""
        return self.attended(self.prefix(Add(), self.p_v), torch.zeros_like(self.v))

    def gated(self) -> Tensor:
        share = self.share()
        return (1 - share) * self.attended() + share * self.prefix_alone()

    def logits(self) -> Tensor:
        logits = self.q @ self.repeated[0].transpose(-1, -2) * WIDTH**-0.5
        return logits.masked_fill(~self.mask, -torch.inf)

    def prefix_logits(self) -> Tensor:
        return self.q @ self.repeated[2].transpose(-1, -2) * WIDTH**-0.5


def test_the_gated_form_has_the_same_outputs() -> None:
    for dtype, bound in BOUNDS.items():
        for query_scale in (1.0, 8.0):
            with torch.no_grad():
                problem = Problem(dtype, query_scale=query_scale)
                one, other = problem.concatenated(), problem.gated()
            assert one.dtype is other.dtype is dtype
            assert (one - other).abs().max() <= bound * one.abs().max(), (dtype, query_scale)


def test_lambda_is_the_sum_of_the_prefix_columns_of_the_joint_softmax() -> None:
    problem = Problem(torch.float64)
    joint = torch.cat([problem.prefix_logits(), problem.logits()], dim=-1).softmax(-1)
    columns = joint[..., :LENGTH].sum(-1, keepdim=True)
    torch.testing.assert_close(problem.share(), columns, rtol=0, atol=1e-12)
    ones = problem.prefix(ConvexGate(), torch.ones_like(problem.p_v))
    in_attention = problem.attended(ones, torch.zeros_like(problem.v))[..., :1]
    torch.testing.assert_close(in_attention, columns, rtol=0, atol=1e-12)
    assert 0.1 < columns.min() < 0.5 < columns.max(), "every kind of share must occur"


def test_the_gated_form_has_the_same_gradients() -> None:
    direction = torch.randn(
        BATCH, HEADS, TOKENS, WIDTH, generator=torch.Generator().manual_seed(1), dtype=torch.float64
    )
    for dtype, bound in BOUNDS.items():
        problem = Problem(dtype)
        one = torch.autograd.grad((problem.concatenated() * direction.to(dtype)).sum(), problem.leaves)
        other = torch.autograd.grad((problem.gated() * direction.to(dtype)).sum(), problem.leaves)
        for name, mine, theirs in zip(("q", "k", "v", "P_k", "P_v"), one, other, strict=True):
            error = (mine.double() - theirs.double()).norm() / theirs.double().norm()
            assert error <= bound, (dtype, name)
            assert theirs.abs().max() > 0, (dtype, name)


def test_grouped_queries_share_keys_values_and_prefixes() -> None:
    """GQA is attention in which every group of query heads has the same keys, values and prefix."""
    problem = Problem(torch.float64)
    heads = []
    for head in range(HEADS):
        own = head // GROUP
        keys = torch.cat([problem.p_k[own].expand(BATCH, -1, -1), problem.k[:, own]], dim=1)
        values = torch.cat([problem.p_v[own].expand(BATCH, -1, -1), problem.v[:, own]], dim=1)
        mask = torch.cat([torch.ones(BATCH, TOKENS, LENGTH, dtype=torch.bool), problem.mask[:, 0]], dim=-1)
        heads.append(nn.functional.scaled_dot_product_attention(problem.q[:, head], keys, values, attn_mask=mask))
    torch.testing.assert_close(problem.concatenated(), torch.stack(heads, dim=1), rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
def test_a_fully_masked_row_sees_the_prefix_alone(dtype: torch.dtype) -> None:
    with torch.no_grad():
        problem = Problem(dtype)
        problem.mask = problem.mask.clone()
        problem.mask[0, 0, 5] = False
        share = problem.share()
        assert (1 - share[0, :, 5]).abs().max() <= BOUNDS[dtype]
        assert share[0, :, 6].max() < 0.999
        alone = problem.prefix_alone()[0, :, 5]
        assert (problem.concatenated()[0, :, 5] - alone).abs().max() <= BOUNDS[dtype] * alone.abs().max()


def test_an_empty_prefix_has_no_share() -> None:
    problem = Problem(torch.float64, length=0)
    assert torch.equal(problem.share(), torch.zeros(BATCH, HEADS, TOKENS, 1, dtype=torch.float64))
    torch.testing.assert_close(problem.concatenated(), problem.attended(), rtol=0, atol=1e-14)
