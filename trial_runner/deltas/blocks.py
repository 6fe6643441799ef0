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
"""The nonlinearities of bottlenecks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """How a form is split over heads at one sublayer.

    Attributes:
        number: Blocks N: 1, the query heads, or the key/value heads.
        of_heads: Whether there is a block per head (also where there is one head).
        query_heads: Query heads H; a block serves ``H / N`` of them.
        is_summed: Whether the heads' outputs, each as wide as the model, are summed (value extension).
    """

    number: int
    of_heads: bool
    query_heads: int
    in_width: int
    out_width: int
    is_summed: bool = False

    def shape(self, rows: int, columns: int) -> tuple[int, ...]:
        """Shape of a parameter that holds one ``(rows, columns)`` matrix per block."""
        return (self.number, rows, columns) if self.of_heads else (rows, columns)

    def bias_shape(self, width: int) -> tuple[int, ...]:
        """Shape of a bias that holds one vector per block; it broadcasts over tokens."""
        return (self.number, width) if self.of_heads else (width,)

    @property
    def output_bias_shape(self) -> tuple[int, ...]:
        """Shape of the bias of what is written: one vector per block, or one for their sum."""
        return (self.out_width,) if self.is_summed else self.bias_shape(self.out_width)

    def spread(self, parameter: Tensor) -> Tensor:
        """One entry per query head of a parameter with one per block."""
        if not self.of_heads or self.number == self.query_heads:
            return parameter
        return parameter.repeat_interleave(self.query_heads // self.number, dim=0)  # (H, ...)

    def spread_output_bias(self, bias: Tensor) -> Tensor:
        """The bias of what is written, as it is added: ``(D_out,)`` or ``(H, D_out)``."""
        return bias if self.is_summed else self.spread(bias)


def blocks_of(edit: Edit, shape: BackboneShape) -> Blocks:
    """How an edit's form is split over heads."""
    in_width, out_width = block_widths(edit, shape)
    of_heads = edit.heads is not Heads.SINGLE
    return Blocks(
        number=shape.heads(edit.heads),
        of_heads=of_heads,
        query_heads=shape.query_heads,
        in_width=in_width,
        out_width=out_width,
        is_summed=of_heads and edit.write is Port.O,
    )


def product(z: Tensor, matrix: Tensor) -> Tensor:
    """``z W`` as one product of two matrices, ``(..., D_in)`` and ``(D_in, D_out)`` to ``(..., D_out)``.

    Many such products at once are then one batched product, with a matrix for each and not for each example.
    """
    return (z.flatten(0, -2) @ matrix).reshape(*z.shape[:-1], matrix.shape[-1])


def block_product(z: Tensor, matrix: Tensor, blocks: Blocks) -> Tensor:
    """``z W`` for one matrix, or per head.

    Args:
        z: ``(B, T, D_in)``, or ``(B, T, H, D_in)`` where heads read slices or are already apart.
        matrix: ``(D_in, D_out)`` or ``(N, D_in, D_out)``.

    Returns:
        ``(B, T, D_out)`` or ``(B, T, H, D_out)``.
    """
    if not blocks.of_heads:
        return product(z, matrix)
    per_head = blocks.spread(matrix)
    if z.dim() == 3:
        return torch.einsum("bti,hio->btho", z, per_head)
    return torch.einsum("bthi,hio->btho", z, per_head)


def output_product(hidden: Tensor, matrix: Tensor, blocks: Blocks, weight: Tensor | None = None) -> Tensor:
    """Hidden units times the last matrix of a form, summed over heads where the form says so.

    Args:
        hidden: ``(B, T, R)`` or ``(B, T, H, R)``.
        matrix: ``(R, D_out)`` or ``(N, R, D_out)``.
        weight: Factor of each head's share of a sum, ``(B, T, H, 1)``; None is 1.

    Returns:
        ``(B, T, D_out)``, or ``(B, T, H, D_out)`` where heads stay apart.
    """
    if weight is not None:
        hidden = hidden * weight.to(hidden.dtype)
    if not blocks.is_summed:
        return block_product(hidden, matrix, blocks)
    return torch.einsum("bthr,hro->bto", hidden, blocks.spread(matrix))


def normal(shape: tuple[int, ...], deviation: float, generator: torch.Generator) -> Tensor:
    """Draws from N(0, deviation^2) in float64, so that every precision starts from the same numbers."""
    return torch.randn(shape, generator=generator, dtype=torch.float64) * deviation


def truncated_normal(shape: tuple[int, ...], deviation: float, generator: torch.Generator) -> Tensor:
    """Draws from N(0, deviation^2) given that they lie within two deviations, in float64."""
    empty = torch.empty(shape, dtype=torch.float64)
    return torch.nn.init.trunc_normal_(empty, std=deviation, a=-2 * deviation, b=2 * deviation, generator=generator)


def remainder_normal(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Remainders of N(0, 1) by 2, times 0.01, in float64 (Chen et al. 2022, released code)."""
    return torch.fmod(torch.randn(shape, generator=generator, dtype=torch.float64), 2) * 0.01


def uniform(shape: tuple[int, ...], bound: float, generator: torch.Generator) -> Tensor:
    """Draws from U(-bound, bound) in float64."""
    return (torch.rand(shape, generator=generator, dtype=torch.float64) * 2 - 1) * bound


@torch.no_grad()
def draw_layer(layer: nn.Module, fan: int, generator: torch.Generator) -> None:
    """Draw every number of a layer in place as PyTorch's layers do, from U(-1/sqrt(fan), 1/sqrt(fan))."""
    bound = float(fan) ** -0.5
    for parameter in layer.parameters():
        parameter.uniform_(-bound, bound, generator=generator)
