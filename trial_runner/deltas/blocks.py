"""Products with one matrix, or with one matrix per head. Shapes: `B` examples, `T` tokens, `N` blocks, `H` heads."""

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Blocks", "block_product", "normal", "uniform"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """How a form is split over heads at one sublayer.

    Attributes:
        number: Blocks N: 1, the query heads, or the key/value heads.
        of_heads: Whether there is a block per head (also where there is one head).
        query_heads: Query heads H; a block serves ``H / N`` of them.
        in_width: Width that a block reads.
        out_width: Width that a block writes.
    """

    number: int
    of_heads: bool
    query_heads: int
    in_width: int
    out_width: int

    def shape(self, rows: int, columns: int) -> tuple[int, ...]:
        """Shape of a parameter that holds one ``(rows, columns)`` matrix per block."""
        return (self.number, rows, columns) if self.of_heads else (rows, columns)

    def bias_shape(self, width: int) -> tuple[int, ...]:
        """Shape of a bias that holds one vector per block; it broadcasts over tokens."""
        return (self.number, width) if self.of_heads else (width,)

    def spread(self, parameter: Tensor) -> Tensor:
        """One entry per query head of a parameter with one per block."""
        if not self.of_heads or self.number == self.query_heads:
            return parameter
        return parameter.repeat_interleave(self.query_heads // self.number, dim=0)  # (H, ...)


def block_product(z: Tensor, matrix: Tensor, blocks: Blocks) -> Tensor:
    """``z W`` for one matrix, or per head.

    Args:
        z: ``(B, T, D_in)``, or ``(B, T, H, D_in)`` where heads read slices or are already apart.
        matrix: ``(D_in, D_out)`` or ``(N, D_in, D_out)``.
        blocks: How the form is split.

    Returns:
        ``(B, T, D_out)`` or ``(B, T, H, D_out)``.
    """
    if not blocks.of_heads:
        return z @ matrix
    per_head = blocks.spread(matrix)
    if z.dim() == 3:
        return torch.einsum("bti,hio->btho", z, per_head)
    return torch.einsum("bthi,hio->btho", z, per_head)


def normal(shape: tuple[int, ...], deviation: float, generator: torch.Generator) -> Tensor:
    """Draws from N(0, deviation^2) in float64, so that every precision starts from the same numbers."""
    return torch.randn(shape, generator=generator, dtype=torch.float64) * deviation


def uniform(shape: tuple[int, ...], bound: float, generator: torch.Generator) -> Tensor:
    """Draws from U(-bound, bound) in float64."""
    return (torch.rand(shape, generator=generator, dtype=torch.float64) * 2 - 1) * bound
