"""What the module of every form answers: one file of this folder holds those of one form.

What branches on a form elsewhere asks its module here, so that a new form is its own file and a word in `DELTAS`.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from search_space.backbones.shape import BackboneShape
from search_space.edit import Edit
from search_space.forms import Form
from trial_runner.deltas.affine import Affine
from trial_runner.deltas.blocks import Blocks
from trial_runner.deltas.frozen_matrix import FrozenMatrix
from trial_runner.errors import AttachError


@dataclass(frozen=True, slots=True, kw_only=True)
class Padding:
    """How a tensor is widened to the widest of its like.

    Zeros there change nothing that is computed, and their gradients are zero: a hidden unit without weights adds
    nothing, and rows of a table that are no real ones are left out of it.

    Attributes:
        axis: Its width, counted from the last axis.
        in_front: Whether the zeros stand before its own entries; rows of tables keep their distance from what follows.
        marks: The buffer, beside it, that says which rows are its own; None where nobody asks.
    """

    axis: int
    in_front: bool = False
    marks: str | None = None


COLUMNS, ROWS = Padding(axis=-1), Padding(axis=-2)


class PeftKind(StrEnum):
    """Adapters of peft that a form can be."""

    LORA = "LORA"
    DORA = "DORA"
    VERA = "VERA"
    IA3 = "IA3"
    PROMPT = "PROMPT_TUNING"


class DeltaModule(nn.Module):
    """The trainable numbers of a form, at a sublayer or elsewhere.

    Attributes:
        paddings: The tensors whose widths may differ where modules are computed together, by name.
        peft: The adapter of peft that it is; None of none.
    """

    paddings: ClassVar[Mapping[str, Padding]] = {}
    peft: ClassVar[PeftKind | None] = None

    @classmethod
    def folded(cls, form: Form) -> Form:
        """The form without networks that only serve training; it stores as many parameters."""
        return form if form.reparameterization is None else replace(form, reparameterization=None)

    def take(self, source: nn.Module) -> None:
        """Take the numbers over that a module of the unfolded form has by other names; it computes the same."""


class SharedDelta(nn.Module):
    """What the modules of a form at several sublayers share.

    Attributes:
        paddings: As of `DeltaModule`.
        is_of_one_site: Whether each edit has one for each kind of sublayer, and not the configuration one for all.
        label: Its name in a delta set, behind the number of the edit and before the kind of sublayer.
    """

    paddings: ClassVar[Mapping[str, Padding]] = {}
    is_of_one_site: ClassVar[bool] = False
    label: ClassVar[str]

    @classmethod
    def build(cls, edit: Edit, layers: int, shape: BackboneShape, generator: torch.Generator) -> Self:
        """The module for an edit that acts at so many sublayers of a kind."""
        raise NotImplementedError

    @classmethod
    def key(cls, edit: Edit, shape: BackboneShape) -> Hashable:
        """What edits of one configuration that share it have in common."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class FormPlace:
    """Where a form's module stands.

    Attributes:
        blocks: How the form is split over heads there.
        width: Of the form there; ignored by forms without one.
        shared: What it shares with its like at other sublayers; None for nothing.
        index: Which of them this one is, from 0.
        weight: The frozen matrix that writes its port, of a form that needs it.
    """

    blocks: Blocks
    width: int
    shared: SharedDelta | None = None
    index: int = 0
    weight: FrozenMatrix | None = None


class FormDelta(DeltaModule):
    """The trainable numbers of a form at one sublayer.

    Attributes:
        is_table: Whether it is a softmax over a table, which at the heads meets queries as the base keys do.
        is_dropped: Whether it sees a part of what it reads while it is trained, where a study says so.
        holds_scale: Whether the scale of its gate is within what it computes, given as ``weight``.
        layer: Which part of what a kind of sublayer shares is its own; None where there are no parts.
    """

    is_table: ClassVar[bool] = False
    is_dropped: ClassVar[bool] = False
    holds_scale: ClassVar[bool] = False

    @classmethod
    def shares(cls, form: Form) -> type[SharedDelta] | None:
        """What the modules of a form share; None for nothing."""
        return None

    def __init__(self, edit: Edit, place: FormPlace, generator: torch.Generator) -> None:
        """Draw the initial values on the CPU; what is shared is not registered a second time."""
        super().__init__()
        self.blocks = place.blocks
        self.layer = place.index if place.shared is not None and place.shared.is_of_one_site else None
        self._shared = (place.shared,)

    @property
    def shared(self) -> Any:
        """What it shares, of the class that `shares` says; its parameters are not listed here. None for nothing."""
        return self._shared[0]

    def forward(self, z: Any, weight: Tensor | None = None, scaling: float | None = None) -> Tensor:
        """What is read, ``(B, T, D_in)`` or ``(B, T, H, D_in)``, to ``(B, T, [H,] D_out)``.

        Args:
            z: What is read; None for constants.
            weight: Factor of each head's share where the heads are summed, ``(B, T, H, 1)``; None is 1.
            scaling: Factor of queries that are read scaled; None means 1/sqrt(d_h).
        """
        raise NotImplementedError

    def table(self) -> tuple[Tensor, Tensor]:
        """Keys and values ``(N, R, d_h)`` of a table.

        Raises:
            AttachError: If the form is none.
        """
        raise AttachError(f"keys and values need a table; {type(self).__name__} is none. This is a bug.")

    def affine(self) -> Affine:
        """The map, of a form that weights can hold; in float64.

        Raises:
            AttachError: If it is none.
        """
        raise AttachError(f"an affine map needs a linear form; {type(self).__name__} is none. This is a bug.")

    def affine_under(self, factor: Tensor) -> Affine:
        """The map under a gate that multiplies with a number ``()``, or one per channel ``(D_out,)``.

        Raises:
            AttachError: If it is none.
        """
        return self.affine().times(factor)
