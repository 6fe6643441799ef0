"""What the module of every change of a whole model answers, and the free change, which is full fine-tuning."""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from trial_runner.deltas.form_delta import DeltaModule


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

    def full(self, value: float) -> Tensor:
        """``(D,)`` of one value, where the tensors are; at least float32."""
        first = next(iter(self.tensors.values()))
        dtype = torch.promote_types(first.dtype, torch.float32)
        return torch.full((sum(self.sizes),), value, dtype=dtype, device=first.device)

    def plus(self, change: Tensor) -> dict[str, Tensor]:
        """Every tensor with its part of a change ``(D,)`` added."""
        parts = torch.split(change, self.sizes)  # unlike those of slices, their gradients are joined in one pass
        return {
            name: tensor + part.view_as(tensor)
            for (name, tensor), part in zip(self.tensors.items(), parts, strict=True)
        }


class WholeModelDelta(DeltaModule):
    """The trainable numbers of a change of all weights.

    Attributes:
        stores_parameters: Whether its parameters are what must be stored.
        own_names: Of what must be stored beside them, or in their place.
    """

    stores_parameters: ClassVar[bool] = True
    own_names: ClassVar[tuple[str, ...]] = ()

    def __init__(self, form: Any, frozen: FrozenWeights, generator: torch.Generator) -> None:
        """Keep the weights; what is random is drawn on the CPU."""
        super().__init__()
        self._frozen = frozen

    @property
    def gates(self) -> list[nn.Parameter]:
        """Parameters that have a learning rate of their own, `GATE_RATE_FACTOR` times that of the others."""
        return []

    def weights(self) -> dict[str, Tensor]:
        """The weights of the moment by name, differentiable in what is trained."""
        raise NotImplementedError

    def penalty(self) -> Tensor | None:
        """What is added to the loss; None for nothing."""
        return None

    def before_step(self, seed: int) -> None:
        """Take up the randomness of a training step; it is in force in training mode only."""

    def after_step(self, done: int, steps: int) -> bool:
        """Go on to what comes next in training, and say whether optimisers start anew with it."""
        return False

    def own_tensors(self) -> dict[str, Tensor]:
        """What `own_names` says."""
        return {}

    def take_own(self, tensors: Mapping[str, Tensor]) -> None:
        """Take back what `own_tensors` returned."""


class FullDelta(WholeModelDelta):
    """A free change of every weight that starts at zero."""

    def __init__(self, form: Any, frozen: FrozenWeights, generator: torch.Generator) -> None:
        """Start at zero."""
        super().__init__(form, frozen, generator)
        self.change = nn.Parameter(frozen.full(0))  # (D,)

    def weights(self) -> dict[str, Tensor]:
        """The weights of the moment by name, differentiable in the change."""
        return self._frozen.plus(self.change)
