"""Prefixes and other softmax memories, ``softmax(z P_k^T / sqrt(D_in)) P_v``, and the MLP that produces tables."""

import torch
from torch import Tensor, nn

from search_space.forms import Bottleneck
from trial_runner.deltas.activations import ACTIVATIONS
from trial_runner.deltas.blocks import Blocks, block_product, normal, output_product

_DEVIATION = 0.02


class SoftmaxMemoryDelta(nn.Module):
    """A trained table of R keys and values, once or per head, drawn from N(0, 0.02^2).

    Attributes:
        offset: Added to the keys and values that `table` returns; None for nothing. Not a part of the state.
        is_real: Which rows are the table's own, ``(R,)``, while it is padded to those of others; None for all.
    """

    is_real: Tensor | None

    def __init__(self, blocks: Blocks, width: int, generator: torch.Generator) -> None:
        """Draw the table."""
        super().__init__()
        self.register_buffer("is_real", None, persistent=False)
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
        return output_product(_softmax(z, keys, self, scaling), values, self.blocks, weight)


def _shifted(table: tuple[Tensor, Tensor], offset: tuple[Tensor, Tensor] | None) -> tuple[Tensor, Tensor]:
    """Keys and values with what is added to them."""
    return table if offset is None else (table[0] + offset[0], table[1] + offset[1])


def _softmax(z: Tensor, keys: Tensor, memory: "SoftmaxMemoryDelta | StackedPrefix", scaling: float | None) -> Tensor:
    """How much of each row is taken, ``(B, T, [H,] R)``."""
    blocks = memory.blocks
    logits = block_product(z, keys.transpose(-1, -2), blocks) * (blocks.in_width**-0.5 if scaling is None else scaling)
    if memory.is_real is not None:
        logits = logits.masked_fill(~memory.is_real, -torch.inf)
    wide = torch.promote_types(logits.dtype, torch.float32)
    return torch.softmax(logits, dim=-1, dtype=wide).to(logits.dtype)


class PrefixStack(nn.Module):
    """The MLP that produces the prefixes of all layers of one attention kind (Li & Liang 2021).

    ``Embedding(l, d) -> Linear(d, mid) -> tanh -> Linear(mid, 2 L d_kv)``, the last axis viewed as (layer, key or
    value, head, d_h). The embedding starts as N(0, 1), the layers as PyTorch's do.

    Attributes:
        is_real: As of `SoftmaxMemoryDelta`.
    """

    is_real: Tensor | None

    def __init__(self, *, length: int, width: int, hidden: int, layers: int, heads: int, head_width: int) -> None:
        """Make the stack; `reset` draws its numbers."""
        super().__init__()
        self._heads = (heads, head_width)
        self.register_buffer("is_real", None, persistent=False)
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
        heads, head_width = self._heads
        hidden = torch.tanh(self.middle(self.embedding))  # (l, mid)
        size = 2 * heads * head_width
        rows = slice(layer * size, (layer + 1) * size)
        flat = torch.nn.functional.linear(hidden, self.outer.weight[rows], self.outer.bias[rows])
        keys, values = flat.view(-1, 2, heads, head_width).permute(1, 2, 0, 3)
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
        self.layer = layer
        self.offset: tuple[Tensor, Tensor] | None = None

    @property
    def stack(self) -> PrefixStack:
        """What makes the table."""
        return self._stack[0]

    @property
    def is_real(self) -> Tensor | None:
        """As of `SoftmaxMemoryDelta`."""
        return self._stack[0].is_real

    def table(self) -> tuple[Tensor, Tensor]:
        """Keys and values ``(N_kv, l, d_h)``."""
        return _shifted(self._stack[0].table(self.layer), self.offset)

    def forward(self, z: Tensor, weight: Tensor | None = None, scaling: float | None = None) -> Tensor:
        """``(B, T, H, d_h)`` to ``(B, T, H, d_h)``: the prefix without its gate; see `SoftmaxMemoryDelta.forward`."""
        keys, values = self.table()
        return output_product(_softmax(z, keys, self, scaling), values, self.blocks, weight)


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
        self.layer = layer

    @property
    def stack(self) -> PrefixStack:
        """What makes the matrices."""
        return self._stack[0]

    def table(self) -> tuple[Tensor, Tensor]:
        """The down matrices transposed and the up matrices, both ``(N, R, d_h)``."""
        down, up = self._stack[0].table(self.layer)
        is_real = self._stack[0].is_real
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
