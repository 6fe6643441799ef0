"""Every form x gate x heads x ports that the rules allow, on a made-up backbone whose widths all differ."""

from collections.abc import Iterator

import pytest
import torch
from support.built_forms import build_delta, made_up_shape, nudged
from torch import Tensor

from search_space.dimensions import Activation, Heads, Port, ScalePer, Site
from search_space.edit import Edit
from search_space.errors import InvalidEditError
from search_space.forms import (
    Bottleneck,
    Constant,
    Diagonal,
    Form,
    Init,
    LowRank,
    OwnNorm,
    Phm,
    SoftmaxMemory,
)
from search_space.gates import (
    Add,
    ConvexGate,
    ConvexInducerGate,
    FixedScale,
    Gate,
    InducerGate,
    LearnedScale,
    Multiply,
    SigmoidGate,
    TanhGate,
    WeightedGate,
)
from search_space.parameter_counts.counts import affine_count, widths
from search_space.rules import READS
from search_space.validity import check_on
from trial_runner.deltas.phm import PhmShared
from trial_runner.deltas.port_delta import PortDelta

WRITES = {
    Site.DECODER_SELF: (Port.Q, Port.K, Port.V, Port.HEAD, Port.CONCAT, Port.O),
    Site.FFN: (Port.G, Port.U, Port.M, Port.F, Port.SUM),
}

SHAPE = made_up_shape(
    decoder_layers=3,
    gated_ffn=True,
    biased_ports=frozenset(
        [(Site.ATTENTION, port) for port in (Port.Q, Port.K, Port.V, Port.O)]
        + [(Site.FFN, port) for port in (Port.G, Port.U, Port.F)]
    ),
    stack_norms=1,
)
BATCH, TOKENS = 2, 3

FORMS_TO_BUILD: tuple[Form, ...] = (
    *(SoftmaxMemory(width=3, widened=1, heads=heads) for heads in Heads),
    *(Bottleneck(width=3, widened=1, heads=heads, init=init) for heads in Heads for init in (Init.LORA, Init.INDUCER)),
    *(Bottleneck(width=3, init=init, bias=False, activation=Activation.SILU) for init in (Init.BERT, Init.HOULSBY)),
    *(Bottleneck(width=3, norm=norm) for norm in (OwnNorm.INPUT, OwnNorm.OUTPUT)),
    *(LowRank(width=2, widened=1, heads=heads, bias=bias) for heads in Heads for bias in (False, True)),
    *(Phm(width=4, n=2, factor_rank=rank, shared=rank == 3) for rank in (None, 1, 3)),
    Phm(width=4, widened=1, n=4, bias=False),
    Diagonal(),
    Constant(),
)
GATES_TO_BUILD: tuple[Gate, ...] = (
    Add(),
    FixedScale(value=2.0),
    *(LearnedScale(per=per) for per in ScalePer),
    TanhGate(),
    SigmoidGate(),
    ConvexGate(),
    WeightedGate(),
    InducerGate(),
    InducerGate(key_width=3),
    ConvexInducerGate(),
    ConvexInducerGate(key_width=2),
    Multiply(),
)


def edits() -> Iterator[Edit]:
    for site, writes in WRITES.items():
        for write in writes:
            for read in (None, *READS[write]):
                for form in FORMS_TO_BUILD:
                    for gate in GATES_TO_BUILD:
                        try:
                            edit = Edit(site=site, write=write, read=read, form=form, gate=gate)
                            check_on((edit,), SHAPE)
                        except InvalidEditError:
                            continue
                        yield edit


EDITS = tuple(edits())


def shared_of(edit: Edit) -> PhmShared | None:
    if isinstance(edit.form, Phm) and edit.form.shared:
        return PhmShared(edit.form.n, torch.Generator().manual_seed(5))
    return None


def built(edit: Edit, width: int | None = None) -> PortDelta:
    generator = torch.Generator().manual_seed(3)
    width = next(iter(widths(edit, SHAPE).values())) if width is None else width
    shared = shared_of(edit)
    delta = build_delta(edit, width, SHAPE, generator, shared=shared)
    delta.add_module("shared", shared)  # what is shared is registered by who owns it
    return delta


def draw(*size: int, seed: int) -> Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def tensors(edit: Edit) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """What is written, what is read (split by heads where they work on slices), and lambda."""
    heads = (BATCH, TOKENS, SHAPE.query_heads)
    h = draw(*heads, SHAPE.head_width, seed=0)
    if edit.write is not Port.HEAD:
        h = draw(BATCH, TOKENS, SHAPE.port_width(edit.write), seed=0)
    is_sliced = edit.heads is not Heads.SINGLE and edit.read in (Port.Q, Port.HEAD)
    z: Tensor | None = None
    if edit.read is not None:
        width = SHAPE.port_width(edit.read)
        z = draw(*heads, SHAPE.head_width, seed=1) if is_sliced else draw(BATCH, TOKENS, width, seed=1)
    is_weighted = isinstance(edit.gate, WeightedGate | InducerGate | ConvexInducerGate)
    return h, h if edit.read is edit.write else z, torch.sigmoid(draw(*heads, 1, seed=2)) if is_weighted else None


def test_each_form_and_gate_to_be_built_is_in_the_grid() -> None:
    assert {edit.form.name for edit in EDITS} == {form.name for form in FORMS_TO_BUILD}
    assert {edit.gate.name for edit in EDITS} == {gate.name for gate in GATES_TO_BUILD}
    assert {edit.heads for edit in EDITS} == set(Heads)
    assert any(edit.write is Port.O and edit.heads is Heads.QUERY for edit in EDITS)
    assert len(EDITS) > 2000


def test_the_parameters_are_as_many_as_the_formula_says() -> None:
    for edit in EDITS:
        cost = affine_count(edit, SHAPE)
        for width in dict.fromkeys(widths(edit, SHAPE).values()):
            named = built(edit, width).named_parameters()
            own = sum(parameter.numel() for name, parameter in named if not name.startswith("shared."))
            assert own == cost.intercept + cost.slope * width, (edit, width)


def test_an_edit_is_exactly_nothing_at_the_start_where_its_form_or_gate_says_so_and_only_there() -> None:
    for edit in EDITS:
        h, z, weight = tensors(edit)
        at_start = built(edit).compose(h, z, weight)
        is_closed = edit.form.starts_at_zero or isinstance(edit.gate, TanhGate)
        assert torch.equal(at_start, h) == is_closed, edit


@pytest.mark.slow
def test_every_parameter_learns() -> None:
    for edit in EDITS:
        h, z, weight = tensors(edit)
        delta = nudged(built(edit), 0.3)
        out = delta.compose(h, z, weight)
        # the keys of an inducer reach the output through lambda alone
        total = (out * draw(*out.shape, seed=6)).sum()
        if getattr(delta, "keys", None) is not None:
            total += (delta.keys(draw(BATCH, TOKENS, SHAPE.query_heads, SHAPE.head_width, seed=4)) ** 2).sum()
        total.backward()
        for name, parameter in delta.named_parameters():
            assert parameter.grad is not None, (edit, name)
            assert parameter.grad.abs().max() > 1e-12, (edit, name)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_a_port_keeps_its_precision_and_shape(dtype: torch.dtype) -> None:
    """In bfloat16 as mixed precision has it: parameters of float32, products in bfloat16."""
    is_mixed = dtype is torch.bfloat16
    for edit in EDITS[::6]:
        parts = tensors(edit)
        exact = nudged(built(edit), 0.3).compose(*parts)
        delta = nudged(built(edit), 0.3).to(torch.float32 if is_mixed else dtype)
        h, z, weight = (None if part is None else part.to(dtype) for part in parts)
        assert h is not None
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=is_mixed):
            out = delta.compose(h, z, weight)
        assert (out.dtype, out.shape) == (dtype, h.shape), edit
        assert (out.double() - exact).abs().max() <= 12 * torch.finfo(dtype).eps * (1 + exact.abs().max()), edit
