"""Full fine-tuning: ``theta_0 + w`` with a free w."""

from torch import Tensor, nn

from trial_runner.deltas.whole_model.flat import FrozenWeights


class FullDelta(nn.Module):
    """A free change of every weight that starts at zero."""

    def __init__(self, frozen: FrozenWeights) -> None:
        """Start at zero."""
        super().__init__()
        self._frozen = frozen
        self.change = nn.Parameter(frozen.full(0))  # (D,)

    def weights(self) -> dict[str, Tensor]:
        """The weights of the moment by name, differentiable in the change."""
        return self._frozen.plus(self.change)
