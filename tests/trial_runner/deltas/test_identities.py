"""Different points of the space that are one function, in float64 on tiny backbones, and where they stop being one.

Names V4 to V13 are those of the validity rules.
"""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
import torch
from support.built_forms import nudged
from support.edits import edit
from support.tiny_backbones import rig_of
from torch import Tensor

from search_space.configuration import Configuration
from search_space.dimensions import Activation, Heads, Port, Site
from search_space.edit import Edit
from search_space.forms import Bottleneck, Constant, Diagonal, Form, LowRank, SoftmaxMemory
from search_space.gates import Add, ConvexGate, FixedScale, Gate, Multiply
from search_space.parameter_counts.counts import count
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.deltas.port_delta import PortDelta
from trial_runner.linear_layers import dense_weight
from trial_runner.port_discovery.edit_properties import build

INPUT_IDS = torch.randint(5, 200, (3, 12), generator=torch.Generator().manual_seed(0))
MASK = torch.arange(12) < torch.tensor([[12], [9], [4]])
PREFIX = SoftmaxMemory(width=3, heads=Heads.KEY_VALUE)


def diagonal(port: Port) -> Edit:
    return edit(port, port, Diagonal(), Multiply())


def prefix() -> Edit:
    return edit(Port.HEAD, Port.Q, PREFIX, ConvexGate())


class Subject:
    """A tiny backbone in float64 with hooks on it."""

    def __init__(self, folder: Path) -> None:
        self.rig = rig_of(folder)
        self.shape = self.rig.backbone.shape

    def run(self, deltas: DeltaSet | None = None) -> Tensor:
        """Return the outputs of the real tokens."""
        return self.rig.hidden(deltas, {"input_ids": INPUT_IDS, "attention_mask": MASK})[MASK]

    def deltas(self, *edits: Edit) -> DeltaSet:
        """Build deltas with every parameter moved from its start."""
        return nudged(build(self.rig, Configuration(edits=edits)), 0.3)

    def projection(self, layer: int, port: Port) -> tuple[Tensor, Tensor | None]:
        """Weight ``(D_in, D_out)`` and bias of the frozen module that computes a port."""
        table = self.rig.backbone.family.ports(self.shape)
        at = self.shape.sublayers(Site.FFN if port is Port.U else Site.ATTENTION)[layer]
        location = table.ports[at.stack, at.site, port]
        path = f"{table.layers[at.stack].format(layer=layer)}.{location.module}"
        module = self.rig.backbone.model.get_submodule(path)
        weight = dense_weight(module)
        columns = location.columns(weight.shape[1])
        return weight[:, columns], None if module.bias is None else module.bias[columns]


@pytest.fixture(scope="module")
def subject(tiny_backbone: Callable[[str], Path]) -> Iterator[Callable[[str], Subject]]:
    """Build the subject of a family, once."""
    made: list[Subject] = []

    @cache
    def make(family: str) -> Subject:
        made.append(Subject(tiny_backbone(family)))
        return made[-1]

    yield make
    for each in made:
        each.rig.attachment.detach()


def modules(deltas: DeltaSet, of: Edit) -> list[PortDelta]:
    """Return the modules of an edit, by layer."""
    return [module for module in deltas.modules() if isinstance(module, PortDelta) and module.edit == of]


def assert_same(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def assert_not_same(one: Tensor, other: Tensor) -> None:
    assert (one - other).abs().max() > 1e-3


# --- V4: scale and learning rate --------------------------------------------------------------------------------------


def trained(
    subject: Subject, form: Form, gate: Gate, up_factor: float, optimizer: type[torch.optim.Adam]
) -> list[Tensor]:
    """Return the outputs after each of five steps; ``up_factor`` multiplies the rate of the last linear map."""
    of = edit(Port.F, Port.X_FFN, form, gate)
    deltas = build(subject.rig, Configuration(edits=(of,)))
    last = [p for name, p in deltas.named_parameters() if name.rpartition(".")[2] in ("up", "up_bias", "b")]
    others = [p for p in deltas.parameters() if all(p is not each for each in last)]
    decay = 0.125 if optimizer is torch.optim.AdamW else 0.0
    groups = [
        {"params": others, "lr": 0.01, "weight_decay": decay},
        {"params": last, "lr": 0.01 * up_factor, "weight_decay": decay / up_factor},
    ]
    steps = optimizer(groups, eps=1e-300)
    outputs = []
    for _ in range(5):
        out = subject.run(deltas)
        direction = torch.randn(out.shape, generator=torch.Generator().manual_seed(2), dtype=out.dtype)
        steps.zero_grad()
        (out * direction).sum().backward()
        steps.step()
        outputs.append(subject.run(deltas).detach())
    return outputs


@pytest.mark.parametrize("optimizer", [torch.optim.Adam, torch.optim.AdamW])
@pytest.mark.parametrize(
    "form", [Bottleneck(width=3), Bottleneck(width=3, activation=Activation.TANH), LowRank(width=3)], ids=str
)
def test_v4_a_scale_is_a_learning_rate_of_the_last_map(subject, form, optimizer):
    """Test from zero that s with one learning rate is exactly 1 with s times that rate (and 1/s of the decay)."""
    roberta = subject("roberta")
    scaled = trained(roberta, form, FixedScale(value=4), 1.0, optimizer)
    faster = trained(roberta, form, Add(), 4.0, optimizer)
    slow = trained(roberta, form, Add(), 1.0, optimizer)
    assert all(torch.equal(one, other) for one, other in zip(scaled, faster, strict=True))
    assert_not_same(scaled[-1], slow[-1])


# --- V7: sequential low-rank maps at a projection ---------------------------------------------------------------------

SOURCE = {Port.Q: Port.X_ATTN, Port.K: Port.CTX, Port.V: Port.CTX}


@pytest.mark.parametrize("port", SOURCE, ids=str)
@pytest.mark.parametrize("family", ["roberta", "gpt2", "llama", "qwen2", "qwen3"])
def test_v7_a_sequential_low_rank_map_is_lora_through_the_projection(subject, family, port):
    """``h + h A B`` with ``h = x W + b`` is LoRA with ``A' = W A``, and a constant ``b A B``."""
    at = subject(family)
    sequential, parallel = edit(port, port, LowRank(width=2)), edit(port, SOURCE[port], LowRank(width=2))
    has_bias = at.projection(0, port)[1] is not None
    constant = (edit(port, None, Constant()),) if has_bias else ()
    one, other = at.deltas(sequential), at.deltas(parallel, *constant)
    with torch.no_grad():
        for layer, (from_h, from_x) in enumerate(zip(modules(one, sequential), modules(other, parallel), strict=True)):
            weight, bias = at.projection(layer, port)
            from_x.form.a.copy_(weight @ from_h.form.a)
            from_x.form.b.copy_(from_h.form.b)
            if bias is not None:
                modules(other, constant[0])[layer].form.bias.copy_(bias @ from_h.form.a @ from_h.form.b)
        assert_same(at.run(one), at.run(other))
        assert_not_same(at.run(one), at.run())


def test_v7_an_invertible_projection_makes_every_lora_a_sequential_map(subject):
    at = subject("roberta")
    sequential, parallel = edit(Port.Q, Port.Q, LowRank(width=2)), edit(Port.Q, Port.X_ATTN, LowRank(width=2))
    constant = edit(Port.Q, None, Constant())
    one, other = at.deltas(parallel), at.deltas(sequential, constant)
    with torch.no_grad():
        for layer in range(at.shape.encoder_layers):
            (weight, bias), lora = at.projection(layer, Port.Q), modules(one, parallel)[layer].form
            form = modules(other, sequential)[layer].form
            form.a.copy_(torch.linalg.solve(weight, lora.a))
            form.b.copy_(lora.b)
            # sequential edits run in order, so the constant is not read by the map
            modules(other, constant)[layer].form.bias.copy_(-bias @ form.a @ form.b)
        torch.testing.assert_close(at.run(one), at.run(other), rtol=0, atol=1e-9)  # a solved system is less exact


def test_v7_under_grouped_queries_some_lora_is_no_sequential_map(subject):
    """W_k maps ``d`` to fewer ``d_kv``: what ``W A`` can be is a proper subspace of all A'."""
    at = subject("llama")
    weight, _ = at.projection(0, Port.K)  # (d, d_kv)
    wanted = torch.eye(at.shape.width, dtype=torch.float64)
    best = weight @ torch.linalg.lstsq(weight, wanted).solution
    assert torch.linalg.matrix_rank(weight) == at.shape.key_value_width < at.shape.width
    assert torch.linalg.matrix_rank(wanted - best) == at.shape.width - at.shape.key_value_width


# --- V9: before or after the output projection ------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["roberta", "gpt2", "qwen3"])
def test_v9_an_adapter_before_the_output_projection_is_one_after_it(subject, family):
    """``W_up`` at concat is ``W_up W_o`` at o; the counts are equal where concat is as wide as o."""
    at = subject(family)
    form = Bottleneck(width=3, activation=Activation.GELU)
    before, after = edit(Port.CONCAT, Port.X_ATTN, form), edit(Port.O, Port.X_ATTN, form)
    one, other = at.deltas(before), at.deltas(after)
    with torch.no_grad():
        for layer, (inner, outer) in enumerate(zip(modules(one, before), modules(other, after), strict=True)):
            weight, _ = at.projection(layer, Port.O)  # (d_q, d)
            outer.form.down.copy_(inner.form.down)
            outer.form.down_bias.copy_(inner.form.down_bias)
            outer.form.up.copy_(inner.form.up @ weight)
            outer.form.up_bias.copy_(inner.form.up_bias @ weight)
        assert_same(at.run(one), at.run(other))
        for layer, (inner, outer) in enumerate(zip(modules(one, before), modules(other, after), strict=True)):
            inverse = torch.linalg.pinv(at.projection(layer, Port.O)[0])  # W_o has full column rank: none is lost
            outer.form.up.normal_(generator=torch.Generator().manual_seed(layer))
            inner.form.up.copy_(outer.form.up @ inverse)
            inner.form.up_bias.copy_(outer.form.up_bias @ inverse)
        torch.testing.assert_close(at.run(one), at.run(other), rtol=0, atol=1e-9)
    numbers = [count(deltas.configuration, at.shape).trained for deltas in (one, other)]
    assert (numbers[0] == numbers[1]) == (at.shape.query_width == at.shape.width)


# --- V12: constants ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("family", "is_inert"), [("roberta", True), ("gpt2", True), ("qwen2", False)])
def test_v12_a_constant_at_k_is_inert_unless_positions_rotate(subject, family, is_inert):
    at = subject(family)
    with torch.no_grad():
        moved = at.run(at.deltas(edit(Port.K, None, Constant())))
    assert_same(moved, at.run()) if is_inert else assert_not_same(moved, at.run())


def share_prefix(one: DeltaSet, other: DeltaSet) -> None:
    """Give both the same prefix."""
    for mine, theirs in zip(modules(one, prefix()), modules(other, prefix()), strict=True):
        theirs.load_state_dict(mine.state_dict())


@pytest.mark.parametrize("family", ["roberta", "gpt2", "qwen2"])
def test_v12_a_constant_at_k_acts_next_to_a_prefix(subject, family):
    """Test that the real keys move and the prefix's do not."""
    at = subject(family)
    one, other = at.deltas(prefix(), edit(Port.K, None, Constant())), at.deltas(prefix())
    share_prefix(one, other)
    with torch.no_grad():
        assert_not_same(at.run(one), at.run(other))


@pytest.mark.parametrize("has_prefix", [False, True])
@pytest.mark.parametrize("family", ["roberta", "gpt2"])
def test_v12_a_constant_at_v_is_one_at_o_unless_there_is_a_prefix(subject, family, has_prefix):
    """Test that weights of sum one add it to every head, so ``c W_o`` to o; those of real tokens sum to 1 - lambda."""
    at = subject(family)
    at_v, at_o = edit(Port.V, None, Constant()), edit(Port.O, None, Constant())
    first = (prefix(),) if has_prefix else ()
    one, other = at.deltas(*first, at_v), at.deltas(*first, at_o)
    if has_prefix:
        share_prefix(one, other)
    with torch.no_grad():
        for layer, (v, o) in enumerate(zip(modules(one, at_v), modules(other, at_o), strict=True)):
            o.form.bias.copy_(v.form.bias @ at.projection(layer, Port.O)[0])
        assert_not_same(at.run(one), at.run(at.deltas(*first)) if has_prefix else at.run())
        (assert_not_same if has_prefix else assert_same)(at.run(one), at.run(other))


@pytest.mark.parametrize("site", [Site.ATTENTION, Site.FFN], ids=str)
@pytest.mark.parametrize(("family", "is_absorbed"), [("gpt2", True), ("roberta", False)])
def test_v12_constant_at_norm_is_absorbed_by_linear_readers(subject, family, is_absorbed, site):
    """Test ``c W`` at the readers in pre-LN blocks; in post-LN blocks the residual stream carries it on."""
    at = subject(family)
    at_norm = edit(Port.NORM, None, Constant(), site=site)
    # in post-LN blocks the FFN follows the attention's norm; nothing of the same block follows the FFN's
    follows_attention = site is Site.ATTENTION and is_absorbed
    ports = (Port.Q, Port.K, Port.V) if follows_attention else (Port.U,)
    edits = [edit(port, None, Constant()) for port in ports]
    one, other = at.deltas(at_norm), at.deltas(*edits)
    with torch.no_grad():
        for layer, norm in enumerate(modules(one, at_norm)):
            for each in edits:
                weight, _ = at.projection(layer, each.write)
                modules(other, each)[layer].form.bias.copy_(norm.form.bias @ weight)
        assert_not_same(at.run(one), at.run())
        (assert_same if is_absorbed else assert_not_same)(at.run(one), at.run(other))


# --- V13: diagonals ---------------------------------------------------------------------------------------------------


V13 = [
    *((family, Port.K, Port.Q, False, family != "llama") for family in ("roberta", "gpt2", "llama")),
    *(
        (family, Port.V, Port.CONCAT, has_prefix, not has_prefix)
        for family in ("roberta", "gpt2", "llama", "qwen3")
        for has_prefix in (False, True)
    ),
]


@pytest.mark.parametrize(("family", "inner", "outer", "has_prefix", "is_same"), V13)
def test_v13_diagonal_at_k_or_v_equals_one_at_q_or_heads(subject, family, inner, outer, has_prefix, is_same):
    at = subject(family)
    of_inner, of_outer = diagonal(inner), diagonal(outer)
    first = (prefix(),) if has_prefix else ()
    one, other = at.deltas(*first, of_inner), at.deltas(*first, of_outer)
    if has_prefix:
        share_prefix(one, other)
    with torch.no_grad():
        for few, many in zip(modules(one, of_inner), modules(other, of_outer), strict=True):
            many.form.scale.copy_(per_query_head(at, few.form.scale))
        assert_not_same(at.run(one), at.run())
        (assert_same if is_same else assert_not_same)(at.run(one), at.run(other))


def per_query_head(at: Subject, vector: Tensor) -> Tensor:
    """``(d_kv,)`` to ``(d_q,)``: every query head of a group gets the group's slice."""
    groups = at.shape.query_heads // at.shape.key_value_heads
    return vector.view(at.shape.key_value_heads, -1).repeat_interleave(groups, dim=0).flatten()
