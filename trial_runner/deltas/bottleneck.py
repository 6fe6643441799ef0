"""Adapters: ``act(N(z) W_down + b_down) W_up + b_up``."""

import torch
from torch import Tensor, nn

from search_space.forms import Bottleneck, Init, OwnNorm
from trial_runner.deltas.activations import ACTIVATIONS
from trial_runner.deltas.blocks import (
    Blocks,
    block_product,
    normal,
    output_product,
    remainder_normal,
    truncated_normal,
    uniform,
)

_BERT_DEVIATION = 0.02
_HOULSBY_DEVIATION = 1e-3


class BottleneckDelta(nn.Module):
    """A bottleneck with a nonlinearity, once or per head.

    A multi-head bottleneck that reads q reads it scaled by 1/sqrt(d_h), as attention does (He et al. 2022, multi-head
    parallel adapter), unless it is an inducer's.

    Args:
        form: What to build.
        blocks: How it is split over heads.
        width: Hidden width R.
        generator: Draws the initial values.
        is_scaled: Whether what is read is scaled before the first product.
    """

    def __init__(
        self, form: Bottleneck, blocks: Blocks, width: int, generator: torch.Generator, *, is_scaled: bool = False
    ) -> None:
        """Draw the weights as ``form.init`` says."""
        super().__init__()
        self.blocks = blocks
        self.is_scaled = is_scaled
        self._activation = ACTIVATIONS[form.activation]
        down, up = blocks.shape(blocks.in_width, width), blocks.shape(width, blocks.out_width)
        self.down = nn.Parameter(_weight(down, form.init, generator, is_last=False))
        self.up = nn.Parameter(_weight(up, form.init, generator, is_last=True))
        self.down_bias: nn.Parameter | None = None
        self.up_bias: nn.Parameter | None = None
        if form.bias:
            self.down_bias = nn.Parameter(_bias(blocks.bias_shape(width), form.init, generator))
            self.up_bias = nn.Parameter(_bias(blocks.output_bias_shape, form.init, generator))
        self.norm = _layer_norm(blocks.in_width) if form.norm is OwnNorm.INPUT else None
        self.output_norm = _layer_norm(blocks.out_width) if form.norm is OwnNorm.OUTPUT else None

    def forward(self, z: Tensor, weight: Tensor | None = None, scaling: float | None = None) -> Tensor:
        """``(B, T, D_in)`` or ``(B, T, H, D_in)`` to ``(B, T, [H,] D_out)``.

        Args:
            z: What is read.
            weight: Factor of each head's hidden units, ``(B, T, H, 1)``; None is 1. No bias of the output has it.
            scaling: Factor of queries that are read scaled; None means 1/sqrt(d_h).
        """
        if self.norm is not None:
            z = self.norm(z.to(self.norm.weight.dtype))
        if self.is_scaled:
            z = z * (self.blocks.in_width**-0.5 if scaling is None else scaling)
        hidden = block_product(z, self.down, self.blocks)  # (B, T, [H,] R)
        if self.down_bias is not None:
            hidden = hidden + self.blocks.spread(self.down_bias).to(hidden.dtype)
        out = output_product(self._activation(hidden), self.up, self.blocks, weight)  # (B, T, [H,] D_out)
        if self.up_bias is not None:
            out = out + self.blocks.spread_output_bias(self.up_bias).to(out.dtype)
        if self.output_norm is not None:
            out = self.output_norm(out.to(self.output_norm.weight.dtype))
        return out


def _weight(shape: tuple[int, ...], init: Init, generator: torch.Generator, *, is_last: bool) -> Tensor:
    match init:
        case Init.LORA if is_last:
            return torch.zeros(shape, dtype=torch.float64)
        case Init.LORA:
            return uniform(shape, shape[-2] ** -0.5, generator)
        case Init.BERT:
            return normal(shape, _BERT_DEVIATION, generator)
        case Init.HOULSBY:
            return truncated_normal(shape, _HOULSBY_DEVIATION, generator)
        case Init.INDUCER:
            return remainder_normal(shape, generator)


def _bias(shape: tuple[int, ...], init: Init, generator: torch.Generator) -> Tensor:
    if init is Init.INDUCER:
        return remainder_normal(shape, generator)
    return torch.zeros(shape, dtype=torch.float64)


def _layer_norm(width: int) -> nn.LayerNorm:
    return nn.LayerNorm(width, dtype=torch.float64)
