"""Adapters: ``act(N(z) W_down + b_down) W_up + b_up``."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from search_space.dimensions import Activation
from search_space.form import Bottleneck, Init
from trial_runner.deltas.blocks import Blocks, block_product, normal, uniform

__all__ = ["BottleneckDelta"]

_BERT_DEVIATION = 0.02

_ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    Activation.RELU: functional.relu,
    Activation.GELU: functional.gelu,
    Activation.SILU: functional.silu,
    Activation.TANH: torch.tanh,
}


class BottleneckDelta(nn.Module):
    """A bottleneck with a nonlinearity, once or per head.

    A multi-head bottleneck that reads q reads it scaled by 1/sqrt(d_h), as attention does (He et al. 2022, multi-head
    parallel adapter).
    """

    def __init__(
        self, form: Bottleneck, blocks: Blocks, width: int, generator: torch.Generator, *, input_scale: float = 1.0
    ) -> None:
        """Draw the weights as ``form.init`` says; biases start at zero."""
        super().__init__()
        self.blocks = blocks
        self.input_scale = input_scale
        self._activation = _ACTIVATIONS[form.activation]
        down, up = blocks.shape(blocks.in_width, width), blocks.shape(width, blocks.out_width)
        if form.init is Init.LORA:
            self.down = nn.Parameter(uniform(down, blocks.in_width**-0.5, generator))
            self.up = nn.Parameter(torch.zeros(up, dtype=torch.float64))
        else:
            self.down = nn.Parameter(normal(down, _BERT_DEVIATION, generator))
            self.up = nn.Parameter(normal(up, _BERT_DEVIATION, generator))
        self.down_bias: nn.Parameter | None = None
        self.up_bias: nn.Parameter | None = None
        if form.bias:
            self.down_bias = nn.Parameter(torch.zeros(blocks.bias_shape(width), dtype=torch.float64))
            self.up_bias = nn.Parameter(torch.zeros(blocks.bias_shape(blocks.out_width), dtype=torch.float64))
        self.norm = nn.LayerNorm(blocks.in_width) if form.norm else None

    def forward(self, z: Tensor) -> Tensor:
        """``(B, T, D_in)`` or ``(B, T, H, D_in)`` to ``(B, T, [H,] D_out)``."""
        if self.norm is not None:
            z = self.norm(z.to(self.norm.weight.dtype))
        if self.input_scale != 1:
            z = z * self.input_scale
        hidden = block_product(z, self.down, self.blocks)  # (B, T, [H,] R)
        if self.down_bias is not None:
            hidden = hidden + self.blocks.spread(self.down_bias).to(hidden.dtype)
        out = block_product(self._activation(hidden), self.up, self.blocks)
        if self.up_bias is not None:
            out = out + self.blocks.spread(self.up_bias).to(out.dtype)
        return out
