"""DoRA: a frozen matrix with a low-rank change, decomposed into magnitude and direction."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from search_space.edit import Edit
from trial_runner.deltas.affine import Affine
from trial_runner.deltas.blocks import product, uniform
from trial_runner.deltas.form_delta import COLUMNS, ROWS, FormDelta, FormPlace
from trial_runner.errors import AttachError


class DoraDelta(FormDelta):
    """``z (W + s A B) ⊙ c - z W`` with ``c = m / |W + s A B|`` of each column.

    It is zero at the start of training. A is uniform in +-1/sqrt(D_in), B starts at zero and m at the norms of W. The
    norm is a constant to the gradient (Liu et al. 2024, section 4.3). It needs no matrix as large as W. The sums go
    over the rank:
    ``|W + s A B|^2 = |W|^2 + 2 s sum(W^T A ⊙ B^T) + s^2 sum(A^T A B ⊙ B)``.

    W, ``(D_in, D_out)``, is not part of the module.
    """

    paddings: ClassVar = {"a": COLUMNS, "b": ROWS}
    has_input_dropout = True
    holds_scale = True

    def __init__(self, edit: Edit, place: FormPlace, generator: torch.Generator) -> None:
        """Draw A."""
        super().__init__(edit, place, generator)
        if place.weight is None:
            raise AttachError(f"{edit.form.name} needs the frozen matrix that writes {edit.write}; got none.")
        self.frozen = place.weight
        rows, columns = self.frozen.matrix.shape
        norms = self.frozen.norms[self.frozen.columns]
        self.a = nn.Parameter(uniform((rows, place.width), rows**-0.5, generator))
        self.b = nn.Parameter(torch.zeros((place.width, columns), dtype=torch.float64))
        self.magnitude = nn.Parameter(norms.clone())
        self.register_buffer("norms", norms, persistent=False)
        self.norms: Tensor

    def _column_factors(self, scale: Tensor | None) -> Tensor:
        """Return the factor of each column, ``(D_out,)``."""
        with torch.no_grad(), torch.autocast(self.a.device.type, enabled=False):
            frozen = self.frozen.matrix.to(self.a.dtype)
            b = self.b if scale is None else self.b * scale.to(self.b.dtype)
            crossed = ((frozen.T @ self.a) * b.T).sum(dim=-1)
            squared = ((self.a.T @ self.a) @ b * b).sum(dim=0)
            grown = 1 + (2 * crossed + squared) / self.norms.square()
            norm = self.norms * grown.clamp_min(torch.finfo(grown.dtype).eps).sqrt()
        return self.magnitude / norm

    def forward(self, z: Tensor, weight: Tensor | None = None, scaling: float | None = None) -> Tensor:
        """Map ``(B, T, D_in)`` to ``(B, T, D_out)``.

        Args:
            z: Input.
            weight: Scale s, ``()`` or ``(D_out,)``; None is 1.
            scaling: Ignored.
        """
        factors = self._column_factors(weight)
        change = product(product(z, self.a), self.b)
        change = change if weight is None else change * weight.to(change.dtype)
        return self.frozen.product(z) * (factors - 1).to(change.dtype) + change * factors.to(change.dtype)

    def direction(self, factor: Tensor) -> Affine:
        """Return ``s A B``."""
        return Affine(down=self.a.detach().double(), up=self.b.detach().double() * factor)

    def affine_under(self, factor: Tensor) -> Affine:
        """Return the change of the matrix; the factor is the scale s."""
        frozen = self.frozen.matrix.double()
        changed = frozen + factor.to(frozen.device) * (self.a.detach().double() @ self.b.detach().double())
        factors = self.magnitude.detach().double() / torch.linalg.vector_norm(changed, dim=0)
        return Affine(whole=changed * factors - frozen)
