"""What the module of every change of a whole model answers."""

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from search_space.forms import Form
from trial_runner.deltas.form_delta import DeltaModule
from trial_runner.deltas.whole_model.flat import FrozenWeights


class WholeModelDelta(DeltaModule):
    """The trainable numbers of a change of all weights.

    Attributes:
        stores_parameters: Whether its parameters are what must be stored.
        own_names: Of what must be stored beside them, or in their place.
    """

    stores_parameters: ClassVar[bool] = True
    own_names: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def build(cls, form: Form, frozen: FrozenWeights, generator: torch.Generator) -> "WholeModelDelta":
        """The module of a form; what is random is drawn on the CPU."""
        raise NotImplementedError

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
