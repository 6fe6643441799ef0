"""Forms against explicit formulas in float64: loops over heads, `torch.kron`, and identities between forms."""

from collections.abc import Callable

import pytest
import torch
from support.built_forms import assert_equal, build_form, build_shared, draw, made_up_shape, nudged
from support.edits import edit
from torch import Tensor, nn
from torch.nn import functional

from search_space.dimensions import Activation, Heads, Port
from search_space.forms import Bottleneck, Form, LowRank, OwnNorm, Phm, SoftmaxMemory
from search_space.gates import ConvexGate, Gate
from trial_runner.deltas.phm import PhmMatrix, PhmShared

SHAPE = made_up_shape()
BATCH, TOKENS, HEADS, GROUP = 2, 5, 4, 2

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    Activation.RELU: lambda x: x.clamp(min=0),
    Activation.GELU: lambda x: x * (1 + torch.erf(x / 2**0.5)) / 2,
    Activation.SILU: lambda x: x / (1 + torch.exp(-x)),
    Activation.TANH: torch.tanh,
}


def built(write: Port, read: Port, form: Form, gate: Gate | None = None) -> nn.Module:
    of = edit(write, read, form, gate)
    width = of.sized_form.width if of.sized_form is not None else 0
    shared = PhmShared(form.n, torch.Generator().manual_seed(7)) if isinstance(form, Phm) and form.shared else None
    return nudged(build_form(of, width, SHAPE, torch.Generator(), shared=shared), 1.0)


@pytest.mark.parametrize("norm", OwnNorm)
@pytest.mark.parametrize("activation", Activation)
def test_bottleneck_normalises_its_input_or_its_output(activation, norm):
    form = built(Port.F, Port.M, Bottleneck(width=3, activation=activation, norm=norm))
    z = draw(BATCH, TOKENS, 20)
    read = z
    if norm is OwnNorm.INPUT:
        read = functional.layer_norm(z, (20,), form.norm.weight, form.norm.bias)
    out = ACTIVATIONS[activation](read @ form.down + form.down_bias) @ form.up + form.up_bias
    if norm is OwnNorm.OUTPUT:
        out = functional.layer_norm(out, (12,), form.output_norm.weight, form.output_norm.bias)
    assert_equal(form(z), out)


WEIGHTS = [None, torch.sigmoid(draw(BATCH, TOKENS, HEADS, 1, seed=9))]


@pytest.mark.parametrize("weight", WEIGHTS, ids=["plain", "weighted"])
@pytest.mark.parametrize("read", [Port.Q, Port.HEAD], ids=str)
@pytest.mark.parametrize(
    "form",
    [Bottleneck(width=3, heads=Heads.QUERY), LowRank(width=3, heads=Heads.QUERY, bias=True)],
    ids=lambda form: form.name,
)
def test_value_extension_sums_heads_and_adds_one_bias(form, read, weight):
    """``sum_i weight_i act(z_i A_i + a_i) B_i + b`` (Chen et al. 2022, released code)."""
    module = built(Port.O, read, form)
    z = draw(BATCH, TOKENS, HEADS, 4)
    expected = torch.zeros(BATCH, TOKENS, 12, dtype=torch.float64)
    for head in range(HEADS):
        if isinstance(form, Bottleneck):
            scale = 0.5 if read is Port.Q else 1.0  # 1/sqrt(d_h)
            hidden = torch.relu(z[:, :, head] * scale @ module.down[head] + module.down_bias[head])
            up = module.up[head]
        else:
            hidden, up = z[:, :, head] @ module.a[head], module.b[head]
        expected += (hidden if weight is None else hidden * weight[:, :, head]) @ up
    bias = module.up_bias if isinstance(form, Bottleneck) else module.bias
    assert bias.shape == (12,)
    assert_equal(module(z, weight), expected + bias)


def test_a_memory_under_value_extension_sums_its_heads():
    module = built(Port.O, Port.Q, SoftmaxMemory(width=3, heads=Heads.QUERY))
    z, weight = draw(BATCH, TOKENS, HEADS, 4), WEIGHTS[1]
    assert weight is not None
    expected = sum(
        weight[:, :, head] * torch.softmax(z[:, :, head] @ module.keys[head].T / 2, dim=-1) @ module.values[head]
        for head in range(HEADS)
    )
    assert_equal(module(z, weight), expected)


@pytest.mark.parametrize("heads", [Heads.QUERY, Heads.KEY_VALUE])
@pytest.mark.parametrize("read", [Port.Q, Port.X_ATTN, Port.HEAD], ids=str)
def test_a_multi_head_form_serves_each_group_of_query_heads(read, heads):
    adapter = built(Port.HEAD, read, Bottleneck(width=3, heads=heads))
    linear = built(Port.HEAD, read, LowRank(width=3, heads=heads, bias=True))
    memory = built(Port.HEAD, read, SoftmaxMemory(width=3, heads=heads))
    z = draw(BATCH, TOKENS, 12) if read is Port.X_ATTN else draw(BATCH, TOKENS, HEADS, 4)
    for head in range(HEADS):
        block = head if heads is Heads.QUERY else head // GROUP
        own = z if read is Port.X_ATTN else z[:, :, head]
        scaled = own / 2 if read is Port.Q else own
        hidden = torch.relu(scaled @ adapter.down[block] + adapter.down_bias[block])
        assert_equal(adapter(z)[:, :, head], hidden @ adapter.up[block] + adapter.up_bias[block])
        assert_equal(linear(z)[:, :, head], own @ linear.a[block] @ linear.b[block] + linear.bias[block])
        shares = torch.softmax(own @ memory.keys[block].T / own.shape[-1] ** 0.5, dim=-1)
        assert_equal(memory(z)[:, :, head], shares @ memory.values[block])


def test_forms_that_read_scaled_queries_take_the_scale_of_their_attention():
    q = draw(BATCH, TOKENS, HEADS, 4)
    for form in (SoftmaxMemory(width=3, heads=Heads.QUERY), Bottleneck(width=3, heads=Heads.QUERY)):
        module = built(Port.HEAD, Port.Q, form)
        assert_equal(module(q, None, 0.5), module(q))
        assert_equal(module(q, None, 1.0), module(2 * q))


@pytest.mark.parametrize("heads", [Heads.QUERY, Heads.KEY_VALUE])
def test_a_reparameterized_adapter_is_a_prefix_with_another_nonlinearity(heads):
    """``relu(q P_k^T / sqrt(d_h)) P_v`` with the rows of a prefix's MLP (He et al. 2022, released code)."""
    form = Bottleneck(width=3, heads=heads, bias=False, reparameterization=6)
    of = edit(Port.HEAD, Port.Q, form)
    stack = nudged(build_shared(of, 2, SHAPE, torch.Generator()), 1.0)
    q, blocks = draw(BATCH, TOKENS, HEADS, 4), SHAPE.heads(heads)
    hidden = torch.tanh(stack.embedding @ stack.middle.weight.T + stack.middle.bias)
    tables = (hidden @ stack.outer.weight.T + stack.outer.bias).view(3, 2, 2, blocks, 4)  # (R, L, 2, N, d_h)
    for layer in range(2):
        out = build_form(of, 3, SHAPE, torch.Generator(), shared=stack, index=layer)(q)
        for head in range(HEADS):
            keys, values = tables[:, layer, :, head * blocks // HEADS].unbind(dim=1)
            assert_equal(out[:, :, head], torch.relu(q[:, :, head] / 2 @ keys.T) @ values)


@pytest.mark.parametrize("is_shared", [False, True])
@pytest.mark.parametrize("rank", [None, 1, 2])
@pytest.mark.parametrize("n", [1, 2, 4])
def test_a_phm_matrix_is_a_sum_of_kronecker_products(n, rank, is_shared):
    form = Phm(width=8, n=n, factor_rank=rank, shared=is_shared)
    shared = PhmShared(n, torch.Generator().manual_seed(1)) if is_shared else None
    matrix = nudged(PhmMatrix(form, 12, 8, torch.Generator(), shared), 1.0)
    rule = matrix.rule if shared is None else shared.rule
    expected = torch.zeros(12, 8, dtype=torch.float64)
    for i in range(n):
        factor = matrix.whole[i] if rank is None else matrix.left[i] @ matrix.right[i]
        expected += torch.kron(rule[i], factor)
    assert_equal(matrix(), expected)


@pytest.mark.parametrize("has_bias", [False, True])
def test_a_phm_form_is_a_bottleneck_with_those_matrices(has_bias):
    form = built(Port.F, Port.M, Phm(width=8, n=4, activation=Activation.SILU, bias=has_bias))
    z = draw(BATCH, TOKENS, 20)
    hidden = z @ form.down() + (form.down_bias if has_bias else 0)
    assert_equal(form(z), ACTIVATIONS[Activation.SILU](hidden) @ form.up() + (form.up_bias if has_bias else 0))
    assert not hasattr(form, "rule")


def test_phm_forms_of_a_configuration_share_one_rule():
    shared = PhmShared(2, torch.Generator().manual_seed(0))
    of = edit(Port.F, Port.F, Phm(width=4, n=2))
    one, other = (build_form(of, 4, SHAPE, torch.Generator().manual_seed(s), shared=shared) for s in (1, 2))
    names = {name for name, _ in one.named_parameters()}
    assert names == {"down.left", "down.right", "up.left", "up.right", "down_bias", "up_bias"}
    z = draw(BATCH, TOKENS, 12)
    (one(z).sum() + other(z).sum()).backward()
    both = shared.rule.grad.clone()
    shared.rule.grad = None
    one(z).sum().backward()
    alone = shared.rule.grad
    assert alone.abs().max() > 0
    assert not torch.allclose(both, alone), "the other form reaches the same rule"
    for parts in (shared, one, other):
        parts.to(torch.float32)
    assert one(z.float()).dtype is torch.float32


def test_a_phm_form_with_rules_of_its_own_uses_no_shared_one():
    of = edit(Port.F, Port.F, Phm(width=4, n=2, shared=False))
    form = build_form(of, 4, SHAPE, torch.Generator().manual_seed(1), shared=PhmShared(2, torch.Generator()))
    assert {"down.rule", "up.rule"} < {name for name, _ in form.named_parameters()}
    assert not torch.equal(form.down.rule, form.up.rule)


def test_an_offset_moves_a_table_and_is_no_part_of_the_state():
    form = SoftmaxMemory(width=3, heads=Heads.KEY_VALUE, reparameterization=6)
    of = edit(Port.HEAD, Port.Q, form, ConvexGate())
    stack = build_shared(of, 2, SHAPE, torch.Generator().manual_seed(0))
    for memory in (
        build_form(of, 3, SHAPE, torch.Generator()),
        build_form(of, 3, SHAPE, torch.Generator(), shared=stack, index=1),
    ):
        keys, values = memory.table()
        names = set(memory.state_dict())
        memory.offset = draw(2, 3, 4), draw(2, 3, 4, seed=1)
        assert torch.equal(memory.table()[0], keys + memory.offset[0])
        assert torch.equal(memory.table()[1], values + memory.offset[1])
        assert set(memory.state_dict()) == names
        memory.offset = None
        assert torch.equal(memory.table()[0], keys)
