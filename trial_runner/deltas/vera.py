"""VeRA: frozen random matrices shared by sublayers, with trained factors of their channels."""

from collections.abc import Hashable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from search_space.backbones.shape import BackboneShape
from search_space.edit import Edit
from search_space.edit_protocol import block_widths
from search_space.forms import Form
from trial_runner.deltas.affine import Affine
from trial_runner.deltas.blocks import product, uniform
from trial_runner.deltas.form_delta import COLUMNS, ROWS, FormDelta, FormPlace, SharedDelta

_FIRST = 0.1
"""Initial value of d (Kopiczko et al. 2024, section 4)."""


class VeraMatrices(SharedDelta):
    """A ``(D_in, R)`` and B ``(R, D_out)``, uniform in +-sqrt(6/D_in) and +-sqrt(6/R) (Kaiming), drawn from their seed.

    They are not part of a state: the configuration determines them.
    """

    paddings: ClassVar = {"a": COLUMNS, "b": ROWS}
    label = "random"

    def __init__(self, in_width: int, rank: int, out_width: int, seed: int) -> None:
        """Draw both matrices."""
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.a: Tensor
        self.b: Tensor
        self.register_buffer("a", uniform((in_width, rank), (6 / in_width) ** 0.5, generator), persistent=False)
        self.register_buffer("b", uniform((rank, out_width), (6 / rank) ** 0.5, generator), persistent=False)

    @classmethod
    def build(cls, edit: Edit, layers: int, shape: BackboneShape, generator: torch.Generator) -> "VeraMatrices":
        """Draw the matrices of the form's seed and sizes."""
        form: Any = edit.form
        in_width, out_width = block_widths(edit, shape)
        return cls(in_width, form.width + (form.widened > 0), out_width, form.seed)

    @classmethod
    def key(cls, edit: Edit, shape: BackboneShape) -> Hashable:
        """Return the seed and the sizes."""
        form: Any = edit.form
        return form.seed, form.width + (form.widened > 0), block_widths(edit, shape)


class VeraDelta(FormDelta):
    """``((z A ⊙ d) B) ⊙ b``: d starts at 0.1, b at zero; the shared A and B may have more ranks."""

    paddings: ClassVar = {"d": COLUMNS, "own": COLUMNS}
    has_input_dropout = True

    def __init__(self, edit: Edit, place: FormPlace, generator: torch.Generator) -> None:
        """Initialise d and b; the contribution starts at zero."""
        super().__init__(edit, place, generator)
        self.d = nn.Parameter(torch.full((place.width,), _FIRST, dtype=torch.float64))
        self.b = nn.Parameter(torch.zeros(place.blocks.out_width, dtype=torch.float64))
        # padded entries of d meet columns of A that belong to wider sublayers
        self.own: Tensor
        self.register_buffer("own", torch.ones(place.width, dtype=torch.float64), persistent=False)

    @classmethod
    def shares(cls, form: Form) -> type[VeraMatrices] | None:
        """Return the class of the random matrices."""
        return VeraMatrices

    def forward(self, z: Tensor, weight: Tensor | None = None, scaling: float | None = None) -> Tensor:
        """Map ``(B, T, D_in)`` to ``(B, T, D_out)``."""
        rank = self.d.shape[-1]
        hidden = product(z, self.shared.a[:, :rank])  # (B, T, R)
        out = product(hidden * (self.d * self.own).to(hidden.dtype), self.shared.b[:rank])
        return out * self.b.to(out.dtype)

    def affine(self) -> Affine:
        """Return the two matrices with their factors."""
        rank, b = self.d.shape[-1], self.b.detach().double()
        down = self.shared.a[:, :rank].double() * self.d.detach().double()
        return Affine(down=down, up=self.shared.b[:rank].double() * b)
