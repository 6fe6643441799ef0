"""One factor per channel."""

import torch
from torch import Tensor, nn

from search_space.edit import Edit
from trial_runner.deltas.affine import Affine
from trial_runner.deltas.form_delta import FormDelta, FormPlace, PeftKind


class DiagonalDelta(FormDelta):
    """``z * w``: w is 1 at the start where the product replaces what is read ((IA)^3), 0 where it is added."""

    peft = PeftKind.IA3

    def __init__(self, edit: Edit, place: FormPlace, generator: torch.Generator) -> None:
        """Start at one or zero."""
        super().__init__(edit, place, generator)
        first = float(edit.gate.multiplies)
        self.scale = nn.Parameter(torch.full((place.blocks.out_width,), first, dtype=torch.float64))

    def affine(self) -> Affine:
        """See `FormDelta`."""
        return Affine(diagonal=self.scale.detach().double())

    def forward(self, z: Tensor, weight: Tensor | None = None, scaling: float | None = None) -> Tensor:
        """``(B, T, D)`` to ``(B, T, D)``."""
        return z * self.scale.to(z.dtype)
