"""A trained vector, the change of a bias."""

import torch
from torch import Tensor, nn


class ConstantDelta(nn.Module):
    """A vector that starts at zero and is added to every token."""

    def __init__(self, width: int) -> None:
        """Start at zero."""
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(width, dtype=torch.float64))

    def forward(self, z: Tensor | None) -> Tensor:
        """``(D_out,)``, whatever is read."""
        return self.bias
