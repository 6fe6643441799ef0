"""Adapters: ``act(N(z) W_down + b_down) W_up + b_up``."""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from search_space.dimensions import Heads, Port
from search_space.edit import Edit
from search_space.forms import Form, Init, OwnNorm
from search_space.gates.gate import Logits
from trial_runner.deltas.blocks import (
    ACTIVATIONS,
    block_product,
    normal,
    output_product,
    remainder_normal,
    truncated_normal,
    uniform,
)
from trial_runner.deltas.form_delta import COLUMNS, ROWS, FormDelta, FormPlace
from trial_runner.deltas.prefix_stack import PrefixStack

_BERT_DEVIATION = 0.02
_HOULSBY_DEVIATION = 1e-3


class BottleneckDelta(FormDelta):
    """A bottleneck with a nonlinearity, once or per head.

    A multi-head bottleneck that reads q reads it scaled by 1/sqrt(d_h), as attention does (He et al. 2022, multi-head
    parallel adapter), unless it is an inducer's, to whose key q is compared.
    """

    paddings: ClassVar = {"down": COLUMNS, "down_bias": COLUMNS, "up": ROWS}

    def __init__(self, edit: Edit, place: FormPlace, generator: torch.Generator) -> None:
        """Draw the weights as the form's ``init`` says."""
        super().__init__(edit, place, generator)
        form: Any = edit.form
        blocks, width = place.blocks, place.width
        reads_query = edit.heads is not Heads.SINGLE and edit.read is Port.Q
        self.is_scaled = reads_query and edit.gate.logits is not Logits.QUERY
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

    @classmethod
    def shares(cls, form: Form) -> type[PrefixStack] | None:
        """See `FormDelta`."""
        return None if form.reparameterization is None else PrefixStack

    @classmethod
    def build(cls, edit: Edit, place: FormPlace, generator: torch.Generator) -> "BottleneckDelta | StackedBottleneck":
        """See `FormDelta`."""
        return (cls if place.shared is None else StackedBottleneck)(edit, place, generator)

    @torch.no_grad()
    def take(self, source: nn.Module) -> None:
        """See `DeltaModule`."""
        if isinstance(source, StackedBottleneck):
            keys, values = source.table()
            self.down.copy_(keys.transpose(-1, -2))
            self.up.copy_(values)

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


class StackedBottleneck(FormDelta):
    """A multi-head adapter whose matrices are one layer's table of a `PrefixStack`; it has no parameters of its own.

    ``act(q P_k^T / sqrt(d_h)) P_v``: a prefix with an activation for the softmax (He et al. 2022, released code).
    """

    def __init__(self, edit: Edit, place: FormPlace, generator: torch.Generator) -> None:
        """Know which layer it is."""
        super().__init__(edit, place, generator)
        self.layer = place.index
        form: Any = edit.form
        self._activation = ACTIVATIONS[form.activation]

    def table(self) -> tuple[Tensor, Tensor]:
        """The down matrices transposed and the up matrices, both ``(N, R, d_h)``."""
        down, up = self.shared.table(self.layer)
        is_real = self.shared.is_real
        return down, up if is_real is None else up * is_real.to(up.dtype).unsqueeze(-1)

    def forward(self, z: Tensor, weight: Tensor | None = None, scaling: float | None = None) -> Tensor:
        """``(B, T, H, d_h)`` to ``(B, T, H, d_h)``.

        Args:
            z: Queries.
            weight: Factor of the hidden units, ``(B, T, H, 1)``; None is 1.
            scaling: Factor of the queries; None means 1/sqrt(d_h).
        """
        keys, values = self.table()
        z = z * (self.blocks.in_width**-0.5 if scaling is None else scaling)
        hidden = self._activation(block_product(z, keys.transpose(-1, -2), self.blocks))  # (B, T, H, R)
        return output_product(hidden, values, self.blocks, weight)
