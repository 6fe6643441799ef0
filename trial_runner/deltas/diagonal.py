"""One factor per channel."""

import torch
from torch import Tensor, nn


class DiagonalDelta(nn.Module):
    """``z * w``: w is 1 at the start where the product replaces what is read ((IA)^3), 0 where it is added."""

    def __init__(self, width: int, *, replaces: bool) -> None:
        """Start at one or zero."""
        super().__init__()
        self.scale = nn.Parameter(torch.full((width,), float(replaces), dtype=torch.float64))

    def forward(self, z: Tensor) -> Tensor:
        """``(B, T, D)`` to ``(B, T, D)``."""
        return z * self.scale.to(z.dtype)
