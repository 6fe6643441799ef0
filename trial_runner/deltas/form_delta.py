"""Interface of all forms' modules; each file of this folder contains those of one form.

Code elsewhere that depends on the form calls its module, so that a new form is one file and an entry of `DELTAS`.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
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
    """Padding of a tensor to the largest width among modules computed together.

    The padding is zero, changes no result and gets zero gradients: hidden units without weights add nothing, and padded
    rows of a table are masked.

    Attributes:
        axis: Padded axis, counted from the last one.
        in_front: Whether the zeros come first, so that rows of tables keep their distance from the following tokens.
        mask_name: Name of the sibling buffer with the mask of real rows; None without one.
    """

    axis: int
    in_front: bool = False
    mask_name: str | None = None


COLUMNS, ROWS = Padding(axis=-1), Padding(axis=-2)


class DeltaModule(nn.Module):
    """Trainable parameters of a form, at a sublayer or outside.

    Attributes:
        paddings: Tensors whose widths may differ between modules computed together, by name.
    """

    paddings: ClassVar[Mapping[str, Padding]] = {}

    @classmethod
    def folded(cls, form: Form) -> Form:
        """Return the form without networks for training only; it stores as many parameters."""
        return form if form.reparameterization is None else replace(form, reparameterization=None)

    def take(self, source: nn.Module) -> None:
        """Copy parameters that a module of the unfolded form has under other names; both compute the same."""


class SharedDelta(nn.Module):
    """Parameters that the modules of a form at several sublayers share.

    Attributes:
        paddings: Tensors whose widths may differ, as in `DeltaModule`.
        is_of_one_site: Whether each edit has one per kind of sublayer, instead of one for the whole configuration.
        label: Name in a delta set, after the number of the edit and before the kind of sublayer.
    """

    paddings: ClassVar[Mapping[str, Padding]] = {}
    is_of_one_site: ClassVar[bool] = False
    label: ClassVar[str]

    @classmethod
    def build(cls, edit: Edit, layers: int, shape: BackboneShape, generator: torch.Generator) -> Self:
        """Build the module for an edit at some sublayers of a kind."""
        raise NotImplementedError

    @classmethod
    def key(cls, edit: Edit, shape: BackboneShape) -> Hashable:
        """Return a key that is equal for edits of one configuration that share the module."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class FormPlace:
    """Position of a form's module.

    Attributes:
        blocks: Blocks of the form there.
        width: Width of the form there; ignored by forms without one.
        shared: Module shared with other sublayers; None without one.
        index: Index among the sharing sublayers, from 0.
        weight: Frozen matrix that writes the port, for forms that need it.
    """

    blocks: Blocks
    width: int
    shared: SharedDelta | None = None
    index: int = 0
    weight: FrozenMatrix | None = None


class FormDelta(DeltaModule):
    """Trainable parameters of a form at one sublayer.

    Attributes:
        is_table: Whether the form is a softmax over a table, whose keys act at the heads as the base keys do.
        has_input_dropout: Whether the input is dropped in training, if a study sets a share.
        holds_scale: Whether the form applies the gate's scale itself, given as ``weight``.
        layer: Index of the layer in a module shared per kind of sublayer; None otherwise.
    """

    is_table: ClassVar[bool] = False
    has_input_dropout: ClassVar[bool] = False
    holds_scale: ClassVar[bool] = False

    @classmethod
    def shares(cls, form: Form) -> type[SharedDelta] | None:
        """Return the class of the module that a form's modules share; None without one."""
        return None

    def __init__(self, edit: Edit, place: FormPlace, generator: torch.Generator) -> None:
        """Draw the initial values on the CPU; a shared module is not registered a second time."""
        super().__init__()
        self.blocks = place.blocks
        self.layer = place.index if place.shared is not None and place.shared.is_of_one_site else None
        self._shared = (place.shared,)

    @property
    def shared(self) -> Any:
        """Shared module, of the class from `shares`; its parameters are not listed here. None without one."""
        return self._shared[0]

    def forward(self, z: Any, weight: Tensor | None = None, scaling: float | None = None) -> Tensor:
        """Map the input ``(B, T, D_in)`` or ``(B, T, H, D_in)`` to ``(B, T, [H,] D_out)``.

        Args:
            z: Input; None for constants.
            weight: Factor of each head's summand if heads are summed, ``(B, T, H, 1)``; None is 1.
            scaling: Factor of scaled queries; None means 1/sqrt(d_h).
        """
        raise NotImplementedError

    def table(self) -> tuple[Tensor, Tensor]:
        """Return keys and values ``(N, R, d_h)`` of a table.

        Raises:
            AttachError: If the form is no table.
        """
        raise AttachError(f"keys and values need a table; {type(self).__name__} is none. This is a bug.")

    def affine(self) -> Affine:
        """Return the affine map of a mergeable form, in float64.

        Raises:
            AttachError: If the form is not affine.
        """
        raise AttachError(f"an affine map needs a linear form; {type(self).__name__} is none. This is a bug.")

    def affine_under(self, factor: Tensor) -> Affine:
        """Return the affine map under a gate with a factor ``()``, or one per channel ``(D_out,)``.

        Raises:
            AttachError: If the form is not affine.
        """
        return self.affine().times(factor)
