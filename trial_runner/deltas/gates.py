"""The trainable parts of gates."""

import torch
from torch import Tensor, nn

from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Port, ScalePer
from trial_runner.deltas.blocks import Blocks, block_product, remainder_normal


def learned_scale(per: ScalePer, write: Port, shape: BackboneShape) -> nn.Parameter:
    """A trained scale of what is written, all ones: ``()``, ``(D_out,)`` or ``(H, 1)``, at the heads ``(H, d_h)``."""
    match per:
        case ScalePer.SUBLAYER:
            size: tuple[int, ...] = ()
        case ScalePer.HEAD:
            size = (shape.query_heads, 1)
        case ScalePer.CHANNEL if write is Port.HEAD:
            size = (shape.query_heads, shape.head_width)
        case ScalePer.CHANNEL:
            size = (shape.port_width(write),)
    return nn.Parameter(torch.ones(size, dtype=torch.float64))


class TanhFactor(nn.Module):
    """``tanh(g)`` with g = 0 at the start."""

    def __init__(self) -> None:
        """Start closed."""
        super().__init__()
        self.g = nn.Parameter(torch.zeros((), dtype=torch.float64))

    def forward(self) -> Tensor:
        """One number."""
        return torch.tanh(self.g)


class SigmoidFactor(nn.Module):
    """``sigmoid(z w + b)`` per token, and per head where the form has several; w and b start at zero."""

    def __init__(self, blocks: Blocks) -> None:
        """Start half open."""
        super().__init__()
        self.blocks = blocks
        self.weight = nn.Parameter(torch.zeros(blocks.shape(blocks.in_width, 1), dtype=torch.float64))
        self.bias = nn.Parameter(torch.zeros(blocks.bias_shape(1), dtype=torch.float64))

    def forward(self, z: Tensor) -> Tensor:
        """``(B, T, D_in)`` or ``(B, T, H, D_in)`` to ``(B, T, [H,] 1)``."""
        logits = block_product(z, self.weight, self.blocks)
        return torch.sigmoid(logits + self.blocks.spread(self.bias).to(logits.dtype))


class InducerKeys(nn.Module):
    """``MLP_k(q) = tanh(q A + a) B + b`` per query head, how a virtual key differs from its query (Chen et al. 2022).

    All numbers start as remainders of N(0, 1) by 2, times 0.01.
    """

    def __init__(self, shape: BackboneShape, hidden: int, generator: torch.Generator) -> None:
        """Draw the weights and biases."""
        super().__init__()
        heads, width = shape.query_heads, shape.head_width
        self.blocks = Blocks(number=heads, of_heads=True, query_heads=heads, in_width=width, out_width=width)
        self.down = nn.Parameter(remainder_normal((heads, width, hidden), generator))
        self.down_bias = nn.Parameter(remainder_normal((heads, hidden), generator))
        self.up = nn.Parameter(remainder_normal((heads, hidden, width), generator))
        self.up_bias = nn.Parameter(remainder_normal((heads, width), generator))

    def forward(self, q: Tensor) -> Tensor:
        """``(B, T, H, d_h)``, before its rotation and scaling, to ``(B, T, H, d_h)``."""
        hidden = block_product(q, self.down, self.blocks)  # (B, T, H, R)
        out = block_product(torch.tanh(hidden + self.down_bias.to(hidden.dtype)), self.up, self.blocks)
        return out + self.up_bias.to(out.dtype)
