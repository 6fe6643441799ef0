"""Interface of changes of a whole model, and the free change, which is full fine-tuning."""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from trial_runner.deltas.form_delta import DeltaModule


class FrozenWeights:
    """Constant parameters by name.

    Args:
        tensors: Parameters; they are referenced and not copied, so they follow the model to its device.
    """

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        """Store the references."""
        self.tensors = dict(tensors)
        self.sizes = [tensor.numel() for tensor in self.tensors.values()]

    def full(self, value: float) -> Tensor:
        """Return a vector ``(D,)`` of one value on the tensors' device, in at least float32."""
        first = next(iter(self.tensors.values()))
        dtype = torch.promote_types(first.dtype, torch.float32)
        return torch.full((sum(self.sizes),), value, dtype=dtype, device=first.device)

    def plus(self, change: Tensor) -> dict[str, Tensor]:
        """Add a change ``(D,)`` to the tensors, each with its own part."""
        parts = torch.split(change, self.sizes)  # unlike those of slices, their gradients are joined in one pass
        return {
            name: tensor + part.view_as(tensor)
            for (name, tensor), part in zip(self.tensors.items(), parts, strict=True)
        }


class WholeModelDelta(DeltaModule):
    """Trainable parameters of a change of all weights.

    Attributes:
        frozen: Weights before the change.
        stores_parameters: Whether its parameters are stored.
        own_names: Names of tensors that are stored in addition, or instead.
    """

    stores_parameters: ClassVar[bool] = True
    own_names: ClassVar[tuple[str, ...]] = ()

    def __init__(self, form: Any, frozen: FrozenWeights, generator: torch.Generator) -> None:
        """Store the weights; random values are drawn on the CPU."""
        super().__init__()
        self.frozen = frozen

    @property
    def gates(self) -> list[nn.Parameter]:
        """Parameters with `GATE_RATE_FACTOR` times the learning rate of the others."""
        return []

    def weights(self) -> dict[str, Tensor]:
        """Compute the current weights by name, differentiable in the trained parameters."""
        raise NotImplementedError

    def penalty(self) -> Tensor | None:
        """Return the term added to the loss; None without one."""
        return None

    def before_step(self, seed: int) -> None:
        """Set the seed of a training step's noise; used in training mode only."""

    def after_step(self, done: int, steps: int) -> bool:
        """Advance the stage of training, and return whether optimizers are reset."""
        return False

    def own_tensors(self) -> dict[str, Tensor]:
        """Return the tensors of `own_names`."""
        return {}

    def take_own(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore the tensors from `own_tensors`."""


class FullDelta(WholeModelDelta):
    """A free change of every weight that starts at zero."""

    def __init__(self, form: Any, frozen: FrozenWeights, generator: torch.Generator) -> None:
        """Initialise with zeros."""
        super().__init__(form, frozen, generator)
        self.change = nn.Parameter(frozen.full(0))  # (D,)

    def weights(self) -> dict[str, Tensor]:
        """Compute the current weights by name, differentiable in the change."""
        return self.frozen.plus(self.change)
