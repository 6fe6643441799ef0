"""Gates against their formulas in float64, on forms whose own output is taken as given."""

import pytest
import torch
from support.built_forms import assert_equal, build_delta, draw, made_up_shape, nudged
from support.edits import edit

from search_space.dimensions import Heads, Port, ScalePer, Site
from search_space.forms import Bottleneck, Constant, Diagonal, Form, Init, LowRank, SoftmaxMemory
from search_space.gates import (
    Add,
    FixedScale,
    Gate,
    LearnedScale,
    Multiply,
    SigmoidGate,
    TanhGate,
)
from trial_runner.deltas.port_delta import PortDelta

SHAPE = made_up_shape(biased_ports=frozenset({(Site.FFN, Port.F)}))
BATCH, TOKENS, HEADS = 2, 5, 4
BERT = Bottleneck(width=3, init=Init.BERT)
PER_HEAD = Bottleneck(width=3, heads=Heads.QUERY, init=Init.BERT)
PER_GROUP = Bottleneck(width=3, heads=Heads.KEY_VALUE, init=Init.BERT)


def built(write: Port, read: Port | None, form: Form, gate: Gate) -> PortDelta:
    of = edit(write, read, form, gate)
    width = of.sized_form.width if of.sized_form is not None else 0
    return build_delta(of, width, SHAPE, torch.Generator().manual_seed(3))


Q = draw(BATCH, TOKENS, HEADS, 4, seed=1)
X = draw(BATCH, TOKENS, 12, seed=2)


def test_a_learned_scale_has_a_number_per_sublayer_channel_or_head():
    """Test that channels of the heads are those of their concatenation."""
    for per, size in ((ScalePer.SUBLAYER, 1), (ScalePer.CHANNEL, 12)):
        delta = nudged(built(Port.O, Port.X_ATTN, BERT, LearnedScale(per=per)), 1.0)
        assert delta.scale.numel() == size
        assert_equal(delta.delta(X), delta.form(X) * delta.scale.expand(12))
    for form in (PER_HEAD, PER_GROUP):
        delta = nudged(built(Port.HEAD, Port.Q, form, LearnedScale(per=ScalePer.HEAD)), 1.0)
        assert delta.scale.numel() == HEADS
        for head in range(HEADS):
            assert_equal(delta.delta(Q)[:, :, head], delta.form(Q)[:, :, head] * delta.scale[head])
        delta = nudged(built(Port.HEAD, Port.Q, form, LearnedScale(per=ScalePer.CHANNEL)), 1.0)
        assert_equal(delta.delta(Q).flatten(-2), delta.form(Q).flatten(-2) * delta.scale.flatten())


def test_every_learned_scale_starts_at_one():
    for per in ScalePer:
        delta = built(Port.HEAD, Port.Q, PER_HEAD, LearnedScale(per=per))
        assert torch.equal(delta.delta(Q), delta.form(Q))


def test_a_tanh_gate_starts_closed_and_can_open():
    delta = built(Port.F, Port.X_FFN, BERT, TanhGate())
    assert not delta.delta(X).any()
    delta.delta(X).sum().backward()
    gate = next(parameter for name, parameter in delta.named_parameters() if not name.startswith("form."))
    assert gate.shape == ()
    assert gate.grad is not None
    assert gate.grad != 0
    with torch.no_grad():
        gate.fill_(0.7)
    assert_equal(delta.delta(X), torch.tanh(torch.tensor(0.7, dtype=torch.float64)) * delta.form(X))


def test_sigmoid_gate_starts_at_half_per_token():
    delta = built(Port.F, Port.X_FFN, BERT, SigmoidGate())
    assert torch.equal(delta.delta(X), delta.form(X) / 2)
    nudged(delta, 1.0)
    weight, bias = delta.factor.weight, delta.factor.bias
    assert_equal(delta.delta(X), delta.form(X) * torch.sigmoid(X @ weight + bias))
    changed = X.clone()
    changed[:, -1] += 1
    assert torch.equal(delta.delta(changed)[:, :-1], delta.delta(X)[:, :-1]), "no token sees another"


@pytest.mark.parametrize("form", [PER_HEAD, PER_GROUP], ids=lambda form: form.heads)
@pytest.mark.parametrize("read", [Port.Q, Port.X_ATTN], ids=str)
def test_a_sigmoid_gate_of_a_multi_head_form_has_a_number_per_head(form, read):
    delta = nudged(built(Port.HEAD, read, form, SigmoidGate()), 1.0)
    z = Q if read is Port.Q else X
    blocks = SHAPE.heads(form.heads)
    for head in range(HEADS):
        block = head * blocks // HEADS
        own = z[:, :, head] if read is Port.Q else z
        gate = torch.sigmoid(own @ delta.factor.weight[block] + delta.factor.bias[block])
        assert_equal(delta.delta(z)[:, :, head], gate * delta.form(z)[:, :, head])


@pytest.mark.parametrize(
    "form",
    [PER_HEAD, LowRank(width=3, heads=Heads.QUERY, bias=True), SoftmaxMemory(width=3, heads=Heads.QUERY)],
    ids=lambda form: form.name,
)
def test_a_sigmoid_gate_of_summed_heads_weighs_each_before_the_sum(form):
    delta = nudged(built(Port.O, Port.Q, form, SigmoidGate()), 1.0)
    gates = torch.sigmoid(torch.einsum("bthd,hdo->btho", Q, delta.factor.weight) + delta.factor.bias)
    assert_equal(delta.delta(Q), delta.form(Q, gates))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_multiplying_by_one_changes_no_bit(dtype):
    h = draw(BATCH, TOKENS, 20).to(dtype)
    delta = built(Port.M, Port.M, Diagonal(), Multiply()).to(dtype)
    assert torch.equal(delta.compose(h, h), h)
    assert not delta.delta(h).any()


def test_a_diagonal_multiplies_the_port_or_is_added_to_another():
    h, z = draw(BATCH, TOKENS, 20), draw(BATCH, TOKENS, 20, seed=5)
    replacing = nudged(built(Port.M, Port.M, Diagonal(), Multiply()), 1.0)
    assert torch.equal(replacing.compose(h, h), h * replacing.form.scale)
    assert_equal(h + replacing.delta(h), replacing.compose(h, h))
    added = built(Port.F, Port.X_FFN, Diagonal(), FixedScale(value=2.0))
    assert not added.delta(X).any()
    added = nudged(added, 1.0)
    assert_equal(added.compose(z[..., :12], X), z[..., :12] + 2 * X * added.form.scale)


def test_constant_starts_at_zero_without_an_input():
    delta = built(Port.F, None, Constant(), Add())
    assert torch.equal(delta.compose(X, None), X)
    assert_equal(nudged(delta, 1.0).compose(X, None), X + delta.form.bias)
