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

    A multi-head bottleneck that reads q scales it by 1/sqrt(d_h), as attention does (He et al. 2022, multi-head
    parallel adapter), except under an inducer's gate, whose key is compared with q. Its matrices may be one layer's
    table of a `PrefixStack`, the keys transposed: a prefix with an activation for the softmax (released code).
    """

    paddings: ClassVar = {"down": COLUMNS, "down_bias": COLUMNS, "up": ROWS}

    def __init__(self, edit: Edit, place: FormPlace, generator: torch.Generator) -> None:
        """Draw the weights by the form's ``init``."""
        super().__init__(edit, place, generator)
        form: Any = edit.form
        blocks, width = place.blocks, place.width
        reads_query = edit.heads is not Heads.SINGLE and edit.read is Port.Q
        self.is_scaled = reads_query and edit.gate.logits is not Logits.QUERY
        self._activation = ACTIVATIONS[form.activation]
        if place.shared is None:
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
        """Return the class of the shared MLP, if there is one."""
        return None if form.reparameterization is None else PrefixStack

    @torch.no_grad()
    def take(self, source: nn.Module) -> None:
        """Copy the matrices that the shared MLP makes."""
        if isinstance(source, BottleneckDelta) and source.shared is not None:
            down, up = source._matrices()
            self.down.copy_(down)
            self.up.copy_(up)

    def _matrices(self) -> tuple[Tensor, Tensor]:
        """Return W_down and W_up."""
        if self.shared is None:
            return self.down, self.up
        keys, values = self.shared.table(self.layer)
        is_real = self.shared.is_real
        up = values if is_real is None else values * is_real.to(values.dtype).unsqueeze(-1)
        return keys.transpose(-1, -2), up

    def forward(self, z: Tensor, weight: Tensor | None = None, scaling: float | None = None) -> Tensor:
        """Map ``(B, T, D_in)`` or ``(B, T, H, D_in)`` to ``(B, T, [H,] D_out)``.

        Args:
            z: Input.
            weight: Factor of each head's hidden units, ``(B, T, H, 1)``; None is 1. The output's bias is unweighted.
            scaling: Factor of scaled queries; None means 1/sqrt(d_h).
        """
        if self.norm is not None:
            z = self.norm(z.to(self.norm.weight.dtype))
        if self.is_scaled:
            z = z * (self.blocks.in_width**-0.5 if scaling is None else scaling)
        down, up = self._matrices()
        hidden = block_product(z, down, self.blocks)  # (B, T, [H,] R)
        if self.down_bias is not None:
            hidden = hidden + self.blocks.spread(self.down_bias).to(hidden.dtype)
        out = output_product(self._activation(hidden), up, self.blocks, weight)  # (B, T, [H,] D_out)
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
