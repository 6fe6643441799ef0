"""LoRA: ``z A B`` with B = 0 at the start."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from search_space.edit import Edit
from trial_runner.deltas.affine import Affine
from trial_runner.deltas.blocks import block_product, output_product, uniform
from trial_runner.deltas.form_delta import COLUMNS, ROWS, FormDelta, FormPlace


class LowRankDelta(FormDelta):
    """A linear map of low rank, once or per head; A is uniform in +-1/sqrt(D_in) (Hu et al. 2022, released code)."""

    paddings: ClassVar = {"a": COLUMNS, "b": ROWS}
    has_input_dropout = True

    def __init__(self, edit: Edit, place: FormPlace, generator: torch.Generator) -> None:
        """Draw A; B and the bias start at zero."""
        super().__init__(edit, place, generator)
        blocks, width = place.blocks, place.width
        self.a = nn.Parameter(uniform(blocks.shape(blocks.in_width, width), blocks.in_width**-0.5, generator))
        self.b = nn.Parameter(torch.zeros(blocks.shape(width, blocks.out_width), dtype=torch.float64))
        zeros = torch.zeros(blocks.output_bias_shape, dtype=torch.float64)
        self.bias = nn.Parameter(zeros) if edit.form.bias else None

    def affine(self) -> Affine:
        """Return the two matrices and the bias."""
        shift = None if self.bias is None else self.bias.detach().double()
        return Affine(down=self.a.detach().double(), up=self.b.detach().double(), shift=shift)

    def forward(self, z: Tensor, weight: Tensor | None = None, scaling: float | None = None) -> Tensor:
        """Map ``(B, T, D_in)`` or ``(B, T, H, D_in)`` to ``(B, T, [H,] D_out)``.

        Args:
            z: Input.
            weight: Factor of ``z A``, ``(B, T, H, 1)``; the bias is not multiplied.
            scaling: Ignored.
        """
        out = output_product(block_product(z, self.a, self.blocks), self.b, self.blocks, weight)
        return out if self.bias is None else out + self.blocks.spread_output_bias(self.bias).to(out.dtype)
