"""Prefixes and other softmax memories, ``softmax(z P_k^T / sqrt(D_in)) P_v``, and the MLP that produces tables."""

import torch
from torch import Tensor, nn

from search_space.form import Bottleneck
from trial_runner.deltas.activations import ACTIVATIONS
from trial_runner.deltas.blocks import Blocks, block_product, normal, output_product

__all__ = ["PrefixStack", "SoftmaxMemoryDelta", "StackedBottleneck", "StackedPrefix"]

_DEVIATION = 0.02


class SoftmaxMemoryDelta(nn.Module):
    """A trained table of R keys and values, once or per head, drawn from N(0, 0.02^2).

    Attributes:
        offset: Added to the keys and values that `table` returns; None for nothing. Not a part of the state.
    """

    def __init__(self, blocks: Blocks, width: int, generator: torch.Generator) -> None:
        """Draw the table."""
        super().__init__()
        self.blocks = blocks
        self.keys = nn.Parameter(normal(blocks.shape(width, blocks.in_width), _DEVIATION, generator))
        self.values = nn.Parameter(normal(blocks.shape(width, blocks.out_width), _DEVIATION, generator))
        self.offset: tuple[Tensor, Tensor] | None = None

    def table(self) -> tuple[Tensor, Tensor]:
        """Keys ``(N, R, D_in)`` and values ``(N, R, D_out)``, for the convex gate."""
        return _shifted((self.keys, self.values), self.offset)

    def forward(self, z: Tensor, weight: Tensor | None = None, scaling: float | None = None) -> Tensor:
        """``(B, T, D_in)`` or ``(B, T, H, D_in)`` to ``(B, T, [H,] D_out)``.

        Args:
            z: What is read.
            weight: Factor of each head's share where the heads are summed, ``(B, T, H, 1)``; None is 1.
            scaling: Factor of the logits; None means 1/sqrt(D_in).
        """
        keys, values = self.table()
        return output_product(_softmax(z, keys, self.blocks, scaling), values, self.blocks, weight)


def _shifted(table: tuple[Tensor, Tensor], offset: tuple[Tensor, Tensor] | None) -> tuple[Tensor, Tensor]:
    """Keys and values with what is added to them."""
    return table if offset is None else (table[0] + offset[0], table[1] + offset[1])


def _softmax(z: Tensor, keys: Tensor, blocks: Blocks, scaling: float | None) -> Tensor:
    """How much of each row is taken, ``(B, T, [H,] R)``."""
    logits = block_product(z, keys.transpose(-1, -2), blocks) * (blocks.in_width**-0.5 if scaling is None else scaling)
    wide = torch.promote_types(logits.dtype, torch.float32)
    return torch.softmax(logits, dim=-1, dtype=wide).to(logits.dtype)


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
    """One layer's view of a `PrefixStack`; it has no parameters of its own.

    Attributes:
        offset: As of `SoftmaxMemoryDelta`.
    """

    def __init__(self, stack: PrefixStack, layer: int, blocks: Blocks) -> None:
        """Keep the stack without registering it a second time."""
        super().__init__()
        self.blocks = blocks
        self._stack = (stack,)
        self._layer = layer
        self.offset: tuple[Tensor, Tensor] | None = None

    def table(self) -> tuple[Tensor, Tensor]:
        """Keys and values ``(N_kv, l, d_h)``."""
        return _shifted(self._stack[0].table(self._layer), self.offset)

    def forward(self, z: Tensor, weight: Tensor | None = None, scaling: float | None = None) -> Tensor:
        """``(B, T, H, d_h)`` to ``(B, T, H, d_h)``: the prefix without its gate; see `SoftmaxMemoryDelta.forward`."""
        keys, values = self.table()
        return output_product(_softmax(z, keys, self.blocks, scaling), values, self.blocks, weight)


class StackedBottleneck(nn.Module):
    """A multi-head adapter whose matrices are one layer's table of a `PrefixStack`; it has no parameters of its own.

    ``act(q P_k^T / sqrt(d_h)) P_v``: a prefix with an activation for the softmax (He et al. 2022, released code).
    """

    def __init__(self, form: Bottleneck, stack: PrefixStack, layer: int, blocks: Blocks) -> None:
        """Keep the stack without registering it a second time."""
        super().__init__()
        self.blocks = blocks
        self._activation = ACTIVATIONS[form.activation]
        self._stack = (stack,)
        self._layer = layer

    def table(self) -> tuple[Tensor, Tensor]:
        """The down matrices transposed and the up matrices, both ``(N, R, d_h)``."""
        return self._stack[0].table(self._layer)

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
