"""The trainable modules, one file per functional form. `build_form` makes the module of an edit at one sublayer."""

import torch

from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Heads, Port
from search_space.edit import Edit
from search_space.ends import block_widths
from search_space.forms import Bottleneck, Constant, Diagonal, LowRank, Phm, SoftmaxMemory
from search_space.gates import ConvexInducerGate, InducerGate, Multiply
from trial_runner.deltas.blocks import Blocks
from trial_runner.deltas.bottleneck import BottleneckDelta
from trial_runner.deltas.constant import ConstantDelta
from trial_runner.deltas.diagonal import DiagonalDelta
from trial_runner.deltas.lowrank import LowRankDelta
from trial_runner.deltas.phm import PhmDelta, PhmShared
from trial_runner.deltas.softmax_memory import PrefixStack, SoftmaxMemoryDelta, StackedBottleneck, StackedPrefix
from trial_runner.errors import AttachError

__all__ = ["FormDelta", "blocks_of", "build_form", "build_stack", "build_stacked"]

FormDelta = (
    BottleneckDelta
    | ConstantDelta
    | DiagonalDelta
    | LowRankDelta
    | PhmDelta
    | SoftmaxMemoryDelta
    | StackedBottleneck
    | StackedPrefix
)


def build_form(
    edit: Edit, width: int, shape: BackboneShape, generator: torch.Generator, *, shared: PhmShared | None = None
) -> FormDelta:
    """The trainable module of an edit at one sublayer, with matrices of its own (see `build_stacked`).

    Args:
        edit: The edit.
        width: Width of its form at this sublayer; ignored by forms without one.
        shape: The backbone.
        generator: Draws the initial values, on the CPU.
        shared: The factors that Kronecker products of one n have in common; needed where the form shares them.

    Raises:
        AttachError: If the form belongs to no sublayer, or its shared factors are missing.
    """
    blocks = blocks_of(edit, shape)
    match edit.form:
        case Bottleneck():
            return BottleneckDelta(edit.form, blocks, width, generator, is_scaled=_reads_scaled_query(edit))
        case LowRank(bias=bias):
            return LowRankDelta(blocks, width, generator, has_bias=bias)
        case SoftmaxMemory():
            return SoftmaxMemoryDelta(blocks, width, generator)
        case Phm(n=n, shared=is_shared):
            if is_shared and (shared is None or shared.rule.shape[0] != n):
                raise AttachError(f"a phm form that shares its factors needs those of n {n}. This is a bug.")
            own = shared if is_shared else None
            return PhmDelta(edit.form, blocks.in_width, width, blocks.out_width, generator, own)
        case Diagonal():
            return DiagonalDelta(blocks.out_width, replaces=isinstance(edit.gate, Multiply))
        case Constant():
            return ConstantDelta(blocks.out_width)
        case _:
            raise AttachError(f"a form must belong to sublayers to be attached there; got {edit.form.name}.")


def build_stack(edit: Edit, layers: int, shape: BackboneShape, generator: torch.Generator) -> PrefixStack:
    """The MLP that produces the tables of an edit with a reparameterization, for one attention kind.

    Args:
        edit: The edit.
        layers: At how many sublayers of that kind it acts.
        shape: The backbone.
        generator: Draws the initial values, on the CPU.

    Raises:
        AttachError: If the form has no reparameterization.
    """
    form = edit.form
    if not isinstance(form, SoftmaxMemory | Bottleneck) or form.reparameterization is None:
        raise AttachError(f"a table from an MLP needs a form with a reparameterization; got {form.name}.")
    stack = PrefixStack(
        length=form.width,
        width=shape.width,
        hidden=form.reparameterization,
        layers=layers,
        heads=shape.heads(form.heads),
        head_width=shape.head_width,
    )
    stack.reset(generator)
    return stack


def build_stacked(
    edit: Edit, stack: PrefixStack, index: int, shape: BackboneShape
) -> StackedBottleneck | StackedPrefix:
    """The module of an edit with a reparameterization at one sublayer.

    Args:
        edit: The edit.
        stack: Of its attention kind, from `build_stack`.
        index: Which of the stack's tables is this sublayer's, from 0.
        shape: The backbone.
    """
    blocks = blocks_of(edit, shape)
    if isinstance(edit.form, Bottleneck):
        return StackedBottleneck(edit.form, stack, index, blocks)
    return StackedPrefix(stack, index, blocks)


def blocks_of(edit: Edit, shape: BackboneShape) -> Blocks:
    """How an edit's form is split over heads."""
    in_width, out_width = block_widths(edit, shape)
    of_heads = edit.heads is not Heads.SINGLE
    return Blocks(
        number=shape.heads(edit.heads),
        of_heads=of_heads,
        query_heads=shape.query_heads,
        in_width=in_width,
        out_width=out_width,
        is_summed=of_heads and edit.write is Port.O,
    )


def _reads_scaled_query(edit: Edit) -> bool:
    """Whether a bottleneck reads q as attention scales it; an inducer's reads it as it is."""
    is_inducer = isinstance(edit.gate, InducerGate | ConvexInducerGate)
    return edit.heads is not Heads.SINGLE and edit.read is Port.Q and not is_inducer
