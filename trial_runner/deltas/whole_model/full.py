"""Full fine-tuning: ``theta_0 + w`` with a free w."""

import torch
from torch import Tensor, nn

from search_space.forms import Form
from trial_runner.deltas.whole_model.flat import FrozenWeights
from trial_runner.deltas.whole_model.whole_delta import WholeModelDelta


class FullDelta(WholeModelDelta):
    """A free change of every weight that starts at zero."""

    def __init__(self, frozen: FrozenWeights) -> None:
        """Start at zero."""
        super().__init__()
        self._frozen = frozen
        self.change = nn.Parameter(frozen.full(0))  # (D,)

    @classmethod
    def build(cls, form: Form, frozen: FrozenWeights, generator: torch.Generator) -> "FullDelta":
        """See `WholeModelDelta`."""
        return cls(frozen)

    def weights(self) -> dict[str, Tensor]:
        """The weights of the moment by name, differentiable in the change."""
        return self._frozen.plus(self.change)
