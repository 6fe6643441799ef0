"""Products with one matrix, or with one matrix per head. Shapes: `B` examples, `T` tokens, `N` blocks, `H` heads."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Activation, Heads, Port
from search_space.edit import Edit
from search_space.edit_protocol import block_widths

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    Activation.RELU: functional.relu,
    Activation.GELU: functional.gelu,
    Activation.SILU: functional.silu,
    Activation.TANH: torch.tanh,
}
"""Nonlinearities of bottlenecks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """Blocks of a form at one sublayer: one, or one per head.

    Attributes:
        number: Number of blocks N: 1, the query heads, or the key/value heads.
        is_per_head: Whether there is a block per head (also for a single head).
        query_heads: Query heads H; each block has ``H / N`` of them.
        in_width: Width of a block's input.
        out_width: Width of a block's output.
        is_summed: Whether the heads' outputs, each as wide as the model, are summed (value extension).
    """

    number: int
    is_per_head: bool
    query_heads: int
    in_width: int
    out_width: int
    is_summed: bool = False

    def shape(self, rows: int, columns: int) -> tuple[int, ...]:
        """Return the shape of a parameter with one ``(rows, columns)`` matrix per block."""
        return (self.number, rows, columns) if self.is_per_head else (rows, columns)

    def bias_shape(self, width: int) -> tuple[int, ...]:
        """Return the shape of a bias with one vector per block; it broadcasts over tokens."""
        return (self.number, width) if self.is_per_head else (width,)

    @property
    def output_bias_shape(self) -> tuple[int, ...]:
        """Shape of the output's bias: one vector per block, or one for their sum."""
        return (self.out_width,) if self.is_summed else self.bias_shape(self.out_width)

    def spread(self, parameter: Tensor) -> Tensor:
        """Repeat a parameter with one entry per block to one entry per query head."""
        if not self.is_per_head or self.number == self.query_heads:
            return parameter
        return parameter.repeat_interleave(self.query_heads // self.number, dim=0)  # (H, ...)

    def spread_output_bias(self, bias: Tensor) -> Tensor:
        """Return the output's bias in the shape in which it is added: ``(D_out,)`` or ``(H, D_out)``."""
        return bias if self.is_summed else self.spread(bias)


def blocks_of(edit: Edit, shape: BackboneShape) -> Blocks:
    """Return the blocks of an edit's form."""
    in_width, out_width = block_widths(edit, shape)
    is_per_head = edit.heads is not Heads.SINGLE
    return Blocks(
        number=shape.heads(edit.heads),
        is_per_head=is_per_head,
        query_heads=shape.query_heads,
        in_width=in_width,
        out_width=out_width,
        is_summed=is_per_head and edit.write is Port.O,
    )


def product(z: Tensor, matrix: Tensor) -> Tensor:
    """Compute ``z W`` as one product of two matrices, ``(..., D_in)`` and ``(D_in, D_out)`` to ``(..., D_out)``.

    Under vmap this becomes one batched product with a matrix per slot, not per example.
    """
    return (z.flatten(0, -2) @ matrix).reshape(*z.shape[:-1], matrix.shape[-1])


def block_product(z: Tensor, matrix: Tensor, blocks: Blocks) -> Tensor:
    """Compute ``z W`` for one matrix, or per head.

    Args:
        z: ``(B, T, D_in)``, or ``(B, T, H, D_in)`` for inputs per head.
        matrix: ``(D_in, D_out)`` or ``(N, D_in, D_out)``.

    Returns:
        ``(B, T, D_out)`` or ``(B, T, H, D_out)``.
    """
    if not blocks.is_per_head:
        return product(z, matrix)
    per_head = blocks.spread(matrix)
    if z.dim() == 3:
        return torch.einsum("bti,hio->btho", z, per_head)
    return torch.einsum("bthi,hio->btho", z, per_head)


def output_product(hidden: Tensor, matrix: Tensor, blocks: Blocks, weight: Tensor | None = None) -> Tensor:
    """Multiply hidden units with the last matrix of a form; sum over heads if the form does.

    Args:
        hidden: ``(B, T, R)`` or ``(B, T, H, R)``.
        matrix: ``(R, D_out)`` or ``(N, R, D_out)``.
        weight: Factor of each head's summand, ``(B, T, H, 1)``; None is 1.

    Returns:
        ``(B, T, D_out)``, or ``(B, T, H, D_out)`` if heads are not summed.
    """
    if weight is not None:
        hidden = hidden * weight.to(hidden.dtype)
    if not blocks.is_summed:
        return block_product(hidden, matrix, blocks)
    return torch.einsum("bthr,hro->bto", hidden, blocks.spread(matrix))


def normal(shape: tuple[int, ...], deviation: float, generator: torch.Generator) -> Tensor:
    """Draw from N(0, deviation^2) in float64, so that every precision starts from the same numbers."""
    return torch.randn(shape, generator=generator, dtype=torch.float64) * deviation


def truncated_normal(shape: tuple[int, ...], deviation: float, generator: torch.Generator) -> Tensor:
    """Draw from N(0, deviation^2), truncated at two deviations, in float64."""
    empty = torch.empty(shape, dtype=torch.float64)
    return torch.nn.init.trunc_normal_(empty, std=deviation, a=-2 * deviation, b=2 * deviation, generator=generator)


def remainder_normal(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Draw remainders of N(0, 1) by 2, times 0.01, in float64 (Chen et al. 2022, released code)."""
    return torch.fmod(torch.randn(shape, generator=generator, dtype=torch.float64), 2) * 0.01


def uniform(shape: tuple[int, ...], bound: float, generator: torch.Generator) -> Tensor:
    """Draw from U(-bound, bound) in float64."""
    return (torch.rand(shape, generator=generator, dtype=torch.float64) * 2 - 1) * bound


@torch.no_grad()
def draw_layer(layer: nn.Module, fan: int, generator: torch.Generator) -> None:
    """Initialise a layer in place as PyTorch's layers do, from U(-1/sqrt(fan), 1/sqrt(fan))."""
    bound = float(fan) ** -0.5
    for parameter in layer.parameters():
        parameter.uniform_(-bound, bound, generator=generator)
