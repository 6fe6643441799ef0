"""The trainable modules, one file per functional form. `build_form` makes the module of an edit at one sublayer."""

import torch

from search_space.backbone_shape import BackboneShape
from search_space.counting import block_widths
from search_space.dimensions import Heads, Port
from search_space.edit import Edit
from search_space.form import Bottleneck, Constant, LowRank, SoftmaxMemory
from trial_runner.deltas.blocks import Blocks
from trial_runner.deltas.bottleneck import BottleneckDelta
from trial_runner.deltas.constant import ConstantDelta
from trial_runner.deltas.lowrank import LowRankDelta
from trial_runner.deltas.softmax_memory import SoftmaxMemoryDelta

__all__ = ["FormDelta", "blocks_of", "build_form"]

FormDelta = BottleneckDelta | ConstantDelta | LowRankDelta | SoftmaxMemoryDelta


def build_form(edit: Edit, width: int, shape: BackboneShape, generator: torch.Generator) -> FormDelta:
    """The trainable module of an edit at one sublayer.

    Args:
        edit: The edit.
        width: Width of its form at this sublayer; ignored by constants.
        shape: The backbone.
        generator: Draws the initial values, on the CPU.
    """
    blocks = blocks_of(edit, shape)
    match edit.form:
        case Bottleneck():
            is_query = blocks.of_heads and edit.read is Port.Q
            scale = blocks.in_width**-0.5 if is_query else 1.0
            return BottleneckDelta(edit.form, blocks, width, generator, input_scale=scale)
        case LowRank():
            return LowRankDelta(blocks, width, generator)
        case SoftmaxMemory():
            return SoftmaxMemoryDelta(blocks, width, generator)
        case Constant():
            return ConstantDelta(blocks.out_width)


def blocks_of(edit: Edit, shape: BackboneShape) -> Blocks:
    """How an edit's form is split over heads."""
    in_width, out_width = block_widths(edit, shape)
    return Blocks(
        number=shape.heads(edit.heads),
        of_heads=edit.heads is not Heads.SINGLE,
        query_heads=shape.query_heads,
        in_width=in_width,
        out_width=out_width,
    )
