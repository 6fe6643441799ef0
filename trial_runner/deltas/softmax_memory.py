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
_TABLE = Padding(axis=-2, in_front=True, marks="is_real")


class TableDelta(FormDelta):
    """A softmax over a table of R keys and values, whoever holds it.

    Attributes:
        blocks: How it is split over heads.
        offset: Added to the keys and values that `table` returns; None for nothing. Not a part of the state.
        is_real: Which rows are the table's own, ``(R,)``, while it is padded to those of others; None for all.
    """

    is_table = True
    is_real: Tensor | None

    def __init__(self, edit: Edit, place: FormPlace, generator: torch.Generator) -> None:
        """Without an offset."""
        super().__init__(edit, place, generator)
        self.offset: tuple[Tensor, Tensor] | None = None

    def own_table(self) -> tuple[Tensor, Tensor]:
        """Keys ``(N, R, D_in)`` and values ``(N, R, D_out)`` without the offset."""
        raise NotImplementedError

    def table(self) -> tuple[Tensor, Tensor]:
        """Keys ``(N, R, D_in)`` and values ``(N, R, D_out)``, for the convex gate."""
        keys, values = self.own_table()
        return (keys, values) if self.offset is None else (keys + self.offset[0], values + self.offset[1])

    def forward(self, z: Tensor, weight: Tensor | None = None, scaling: float | None = None) -> Tensor:
        """``(B, T, D_in)`` or ``(B, T, H, D_in)`` to ``(B, T, [H,] D_out)``.

        Args:
            z: What is read.
            weight: Factor of each head's share where the heads are summed, ``(B, T, H, 1)``; None is 1.
            scaling: Factor of the logits; None means 1/sqrt(D_in).
        """
        keys, values = self.table()
        return output_product(self._shares_of_rows(z, keys, scaling), values, self.blocks, weight)

    def _shares_of_rows(self, z: Tensor, keys: Tensor, scaling: float | None) -> Tensor:
        """How much of each row is taken, ``(B, T, [H,] R)``."""
        factor = self.blocks.in_width**-0.5 if scaling is None else scaling
        logits = block_product(z, keys.transpose(-1, -2), self.blocks) * factor
        if self.is_real is not None:
            logits = logits.masked_fill(~self.is_real, -torch.inf)
        wide = torch.promote_types(logits.dtype, torch.float32)
        return torch.softmax(logits, dim=-1, dtype=wide).to(logits.dtype)


class SoftmaxMemoryDelta(TableDelta):
    """A trained table, once or per head, drawn from N(0, 0.02^2)."""

    paddings: ClassVar = {"keys": _TABLE, "values": _TABLE}

    def __init__(self, edit: Edit, place: FormPlace, generator: torch.Generator) -> None:
        """Draw the table."""
        super().__init__(edit, place, generator)
        blocks, width = place.blocks, place.width
        self.register_buffer("is_real", None, persistent=False)
        self.keys = nn.Parameter(normal(blocks.shape(width, blocks.in_width), _DEVIATION, generator))
        self.values = nn.Parameter(normal(blocks.shape(width, blocks.out_width), _DEVIATION, generator))

    @classmethod
    def shares(cls, form: Form) -> type[PrefixStack] | None:
        """See `FormDelta`."""
        return None if form.reparameterization is None else PrefixStack

    @classmethod
    def build(cls, edit: Edit, place: FormPlace, generator: torch.Generator) -> TableDelta:
        """See `FormDelta`."""
        return (cls if place.shared is None else StackedPrefix)(edit, place, generator)

    @torch.no_grad()
    def take(self, source: nn.Module) -> None:
        """See `DeltaModule`."""
        if isinstance(source, StackedPrefix):
            keys, values = source.table()
            self.keys.copy_(keys)
            self.values.copy_(values)

    def own_table(self) -> tuple[Tensor, Tensor]:
        """See `TableDelta`."""
        return self.keys, self.values


class StackedPrefix(TableDelta):
    """One layer's view of a `PrefixStack`; it has no parameters of its own."""

    def __init__(self, edit: Edit, place: FormPlace, generator: torch.Generator) -> None:
        """Know which layer it is."""
        super().__init__(edit, place, generator)
        self.layer = place.index

    @property
    def is_real(self) -> Tensor | None:  # type: ignore[override]
        """See `TableDelta`."""
        is_real: Tensor | None = self.shared.is_real
        return is_real

    def own_table(self) -> tuple[Tensor, Tensor]:
        """See `TableDelta`."""
        keys, values = self.shared.table(self.layer)
        return keys, values
