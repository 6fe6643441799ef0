"""One factor per channel."""

import torch
from torch import Tensor, nn

from search_space.edit import Edit
from trial_runner.deltas.affine import Affine
from trial_runner.deltas.form_delta import FormDelta, FormPlace


class DiagonalDelta(FormDelta):
    """``z * w``: w starts at 1 if the product replaces the input ((IA)^3), at 0 if it is added."""

    def __init__(self, edit: Edit, place: FormPlace, generator: torch.Generator) -> None:
        """Initialise with ones or zeros."""
        super().__init__(edit, place, generator)
        first = float(edit.gate.multiplies)
        self.scale = nn.Parameter(torch.full((place.blocks.out_width,), first, dtype=torch.float64))

    def affine(self) -> Affine:
        """Return the diagonal."""
        return Affine(diagonal=self.scale.detach().double())

    def forward(self, z: Tensor, weight: Tensor | None = None, scaling: float | None = None) -> Tensor:
        """Map ``(B, T, D)`` to ``(B, T, D)``."""
        return z * self.scale.to(z.dtype)
