"""A trained vector, the change of a bias."""

import torch
from torch import Tensor, nn

from search_space.edit import Edit
from trial_runner.deltas.affine import Affine
from trial_runner.deltas.form_delta import FormDelta, FormPlace


class ConstantDelta(FormDelta):
    """A vector that starts at zero and is added to every token."""

    def __init__(self, edit: Edit, place: FormPlace, generator: torch.Generator) -> None:
        """Initialise with zeros."""
        super().__init__(edit, place, generator)
        self.bias = nn.Parameter(torch.zeros(place.blocks.out_width, dtype=torch.float64))

    def affine(self) -> Affine:
        """Return the shift."""
        return Affine(shift=self.bias.detach().double())

    def forward(self, z: Tensor | None, weight: Tensor | None = None, scaling: float | None = None) -> Tensor:
        """Return the vector ``(D_out,)`` for any input."""
        return self.bias
