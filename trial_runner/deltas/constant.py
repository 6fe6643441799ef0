"""A trained vector, the change of a bias."""

import torch
from torch import Tensor, nn

from search_space.edit import Edit
from trial_runner.deltas.affine import Affine
from trial_runner.deltas.form_delta import FormDelta, FormPlace


class ConstantDelta(FormDelta):
    """A vector that starts at zero and is added to every token."""

    def __init__(self, edit: Edit, place: FormPlace, generator: torch.Generator) -> None:
        """Start at zero."""
        super().__init__(edit, place, generator)
        self.bias = nn.Parameter(torch.zeros(place.blocks.out_width, dtype=torch.float64))

    def affine(self) -> Affine:
        """See `FormDelta`."""
        return Affine(shift=self.bias.detach().double())

    def forward(self, z: Tensor | None, weight: Tensor | None = None, scaling: float | None = None) -> Tensor:
        """``(D_out,)``, whatever is read."""
        return self.bias
