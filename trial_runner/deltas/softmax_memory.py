"""Prefixes and other softmax memories: ``softmax(z P_k^T / sqrt(D_in)) P_v``."""

import torch
from torch import Tensor, nn

from trial_runner.deltas.blocks import Blocks, block_product, normal

__all__ = ["PrefixStack", "SoftmaxMemoryDelta", "StackedPrefix"]

_DEVIATION = 0.02


class SoftmaxMemoryDelta(nn.Module):
    """A trained table of R keys and values, once or per head, drawn from N(0, 0.02^2)."""

    def __init__(self, blocks: Blocks, width: int, generator: torch.Generator) -> None:
        """Draw the table."""
        super().__init__()
        self.blocks = blocks
        self.keys = nn.Parameter(normal(blocks.shape(width, blocks.in_width), _DEVIATION, generator))
        self.values = nn.Parameter(normal(blocks.shape(width, blocks.out_width), _DEVIATION, generator))

    def table(self) -> tuple[Tensor, Tensor]:
        """Keys ``(N, R, D_in)`` and values ``(N, R, D_out)``, for the convex gate."""
        return self.keys, self.values

    def forward(self, z: Tensor) -> Tensor:
        """``(B, T, D_in)`` or ``(B, T, H, D_in)`` to ``(B, T, [H,] D_out)``."""
        return _attend(z, *self.table(), self.blocks)


def _attend(z: Tensor, keys: Tensor, values: Tensor, blocks: Blocks) -> Tensor:
    logits = block_product(z, keys.transpose(-1, -2), blocks) * blocks.in_width**-0.5
    wide = torch.promote_types(logits.dtype, torch.float32)
    weights = torch.softmax(logits, dim=-1, dtype=wide).to(logits.dtype)  # (B, T, [H,] R)
    return block_product(weights, values, blocks)


class PrefixStack(nn.Module):
    """The MLP that produces the prefixes of all layers of one attention kind (Li & Liang 2021).

    ``Embedding(l, d) -> Linear(d, mid) -> tanh -> Linear(mid, 2 L d_kv)``, the last axis viewed as (layer, key or
    value, head, d_h). The embedding starts as N(0, 1), the layers as PyTorch's do.
    """

    def __init__(self, *, length: int, width: int, hidden: int, layers: int, heads: int, head_width: int) -> None:
        """Make the stack; `reset` draws its numbers."""
        super().__init__()
        self._view = (length, layers, 2, heads, head_width)
        self.embedding = nn.Parameter(torch.zeros(length, width, dtype=torch.float64))
        self.middle = nn.Linear(width, hidden, dtype=torch.float64)
        self.outer = nn.Linear(hidden, 2 * layers * heads * head_width, dtype=torch.float64)

    def reset(self, generator: torch.Generator) -> None:
        """Draw all numbers from one generator."""
        with torch.no_grad():
            self.embedding.normal_(generator=generator)
            for layer in (self.middle, self.outer):
                bound = layer.in_features**-0.5
                layer.weight.uniform_(-bound, bound, generator=generator)
                layer.bias.uniform_(-bound, bound, generator=generator)

    def table(self, layer: int) -> tuple[Tensor, Tensor]:
        """Keys and values ``(N_kv, l, d_h)`` of one layer."""
        length, _, _, heads, head_width = self._view
        hidden = torch.tanh(self.middle(self.embedding))  # (l, mid)
        size = 2 * heads * head_width
        rows = slice(layer * size, (layer + 1) * size)
        flat = torch.nn.functional.linear(hidden, self.outer.weight[rows], self.outer.bias[rows])
        keys, values = flat.view(length, 2, heads, head_width).permute(1, 2, 0, 3)
        return keys, values


class StackedPrefix(nn.Module):
    """One layer's view of a `PrefixStack`; it has no parameters of its own."""

    def __init__(self, stack: PrefixStack, layer: int, blocks: Blocks) -> None:
        """Keep the stack without registering it a second time."""
        super().__init__()
        self.blocks = blocks
        self._stack = (stack,)
        self._layer = layer

    def table(self) -> tuple[Tensor, Tensor]:
        """Keys and values ``(N_kv, l, d_h)``."""
        return self._stack[0].table(self._layer)

    def forward(self, z: Tensor) -> Tensor:
        """``(B, T, H, d_h)`` to ``(B, T, H, d_h)``: the prefix without its gate."""
        return _attend(z, *self.table(), self.blocks)
