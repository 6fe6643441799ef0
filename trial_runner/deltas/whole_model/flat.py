"""The frozen parameters of a model as one long vector of D entries."""

from collections.abc import Mapping

import torch
from torch import Tensor


class FrozenWeights:
    """Parameters that stay as they are, by name.

    Args:
        tensors: Referred to, so that they follow the model to its device; a change of the model's weights needs
            no copy of it.
    """

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        """Keep the references."""
        self.tensors = dict(tensors)
        self.sizes = [tensor.numel() for tensor in self.tensors.values()]

    @property
    def size(self) -> int:
        """Entries D of all tensors."""
        return sum(self.sizes)

    def full(self, value: float) -> Tensor:
        """``(D,)`` of one value, where the tensors are; at least float32."""
        first = next(iter(self.tensors.values()))
        dtype = torch.promote_types(first.dtype, torch.float32)
        return torch.full((self.size,), value, dtype=dtype, device=first.device)

    def plus(self, change: Tensor) -> dict[str, Tensor]:
        """Every tensor with its part of a change ``(D,)`` added."""
        parts = torch.split(change, self.sizes)  # unlike those of slices, their gradients are joined in one pass
        return {
            name: tensor + part.view_as(tensor)
            for (name, tensor), part in zip(self.tensors.items(), parts, strict=True)
        }
