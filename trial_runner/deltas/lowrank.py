"""LoRA: ``z A B`` with B = 0 at the start."""

import torch
from torch import Tensor, nn

from trial_runner.deltas.blocks import Blocks, block_product, output_product, uniform


class LowRankDelta(nn.Module):
    """A linear map of low rank, once or per head; A is uniform in +-1/sqrt(D_in) (Hu et al. 2022, released code)."""

    def __init__(self, blocks: Blocks, width: int, generator: torch.Generator, *, has_bias: bool = False) -> None:
        """Draw A; B and the bias start at zero."""
        super().__init__()
        self.blocks = blocks
        self.a = nn.Parameter(uniform(blocks.shape(blocks.in_width, width), blocks.in_width**-0.5, generator))
        self.b = nn.Parameter(torch.zeros(blocks.shape(width, blocks.out_width), dtype=torch.float64))
        zeros = torch.zeros(blocks.output_bias_shape, dtype=torch.float64)
        self.bias = nn.Parameter(zeros) if has_bias else None

    def forward(self, z: Tensor, weight: Tensor | None = None) -> Tensor:
        """``(B, T, D_in)`` or ``(B, T, H, D_in)`` to ``(B, T, [H,] D_out)``.

        Args:
            z: What is read.
            weight: Factor of ``z A``, ``(B, T, H, 1)``; the bias goes without it.
        """
        out = output_product(block_product(z, self.a, self.blocks), self.b, self.blocks, weight)
        return out if self.bias is None else out + self.blocks.spread_output_bias(self.bias).to(out.dtype)
