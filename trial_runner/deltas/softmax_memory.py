"""Prefixes and other softmax memories, ``softmax(z P_k^T / sqrt(D_in)) P_v``."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from search_space.edit import Edit
from search_space.forms import Form
from trial_runner.deltas.blocks import block_product, normal, output_product
from trial_runner.deltas.form_delta import FormDelta, FormPlace, Padding
from trial_runner.deltas.prefix_stack import PrefixStack

_DEVIATION = 0.02
_TABLE = Padding(axis=-2, in_front=True, mask_name="is_real")


class SoftmaxMemoryDelta(FormDelta):
    """A softmax over a table of R keys and values, once or per head.

    The table is drawn from N(0, 0.02^2), or is one layer's of a `PrefixStack`.

    Attributes:
        offset: Summand of the keys and values from `table`; None without one. Not part of the state.
        is_real: Mask of the table's own rows, ``(R,)``, while it is padded to longer ones; None for all.
    """

    paddings: ClassVar = {"keys": _TABLE, "values": _TABLE}
    is_table = True
    is_real: Tensor | None

    def __init__(self, edit: Edit, place: FormPlace, generator: torch.Generator) -> None:
        """Draw the table, unless it is shared."""
        super().__init__(edit, place, generator)
        self.offset: tuple[Tensor, Tensor] | None = None
        blocks, width = place.blocks, place.width
        if place.shared is None:
            self.register_buffer("is_real", None, persistent=False)
            self.keys = nn.Parameter(normal(blocks.shape(width, blocks.in_width), _DEVIATION, generator))
            self.values = nn.Parameter(normal(blocks.shape(width, blocks.out_width), _DEVIATION, generator))

    @classmethod
    def shares(cls, form: Form) -> type[PrefixStack] | None:
        """Return the class of the shared MLP, if there is one."""
        return None if form.reparameterization is None else PrefixStack

    @torch.no_grad()
    def take(self, source: nn.Module) -> None:
        """Copy the table that the shared MLP makes."""
        if isinstance(source, SoftmaxMemoryDelta) and source.shared is not None:
            keys, values = source.table()
            self.keys.copy_(keys)
            self.values.copy_(values)

    def table(self) -> tuple[Tensor, Tensor]:
        """Return keys ``(N, R, D_in)`` and values ``(N, R, D_out)``, for the convex gate."""
        keys, values = (self.keys, self.values) if self.shared is None else self.shared.table(self.layer)
        return (keys, values) if self.offset is None else (keys + self.offset[0], values + self.offset[1])

    def masked(self, logits: Tensor) -> Tensor:
        """Mask logits ``(..., R)`` of padded rows with -inf."""
        is_real = (self if self.shared is None else self.shared).is_real
        return logits if is_real is None else logits.masked_fill(~is_real, -torch.inf)

    def forward(self, z: Tensor, weight: Tensor | None = None, scaling: float | None = None) -> Tensor:
        """Map ``(B, T, D_in)`` or ``(B, T, H, D_in)`` to ``(B, T, [H,] D_out)``.

        Args:
            z: Input.
            weight: Factor of each head's summand if heads are summed, ``(B, T, H, 1)``; None is 1.
            scaling: Factor of the logits; None means 1/sqrt(D_in).
        """
        keys, values = self.table()
        factor = self.blocks.in_width**-0.5 if scaling is None else scaling
        logits = self.masked(block_product(z, keys.transpose(-1, -2), self.blocks) * factor)
        wide = torch.promote_types(logits.dtype, torch.float32)
        shares = torch.softmax(logits, dim=-1, dtype=wide).to(logits.dtype)  # (B, T, [H,] R)
        return output_product(shares, values, self.blocks, weight)
