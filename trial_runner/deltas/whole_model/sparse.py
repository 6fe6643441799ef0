"""Diff pruning: ``theta_0 + z w`` with trained gates z that select the changed weights (Guo et al. 2021)."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from search_space.forms import Sparse
from trial_runner.deltas.whole_model.whole_delta import FrozenWeights, WholeModelDelta

GATE_RATE_FACTOR = 10_000.0
"""Learning rate of the gates over that of the changes: 0.1 and 1e-5 in Guo et al. 2021."""

_LOW, _HIGH = -1.5, 1.5
_ALPHA = 5.0
_PENALTY = 1.25e-7
_NOISE_EDGE = 1e-4


def hard_concrete(alpha: Tensor, noise: Tensor | None) -> Tensor:
    """Compute gates in [0, 1] that can be exactly 0 or 1 (Louizos et al. 2018).

    Args:
        alpha: Log-odds of an open gate.
        noise: Uniform draws of the same shape; None for the deterministic gate.
    """
    logits = alpha if noise is None else alpha + torch.logit(noise.to(alpha.dtype), eps=_NOISE_EDGE)
    return (torch.sigmoid(logits) * (_HIGH - _LOW) + _LOW).clamp(0, 1)


class SparseDelta(WholeModelDelta):
    """A sparse change of a model's weights, in two stages.

    First every weight has a change w, its own gate and a gate of its tensor; gates are random in training steps.
    After half of the steps (rounded up) the ``width`` largest ``|z w|`` of the model become the new w and train without
    gates.
    """

    stores_parameters = False
    own_names = ("places", "changes")

    def __init__(self, form: Sparse, frozen: FrozenWeights, generator: torch.Generator) -> None:
        """Initialise changes with zeros and gates as open."""
        super().__init__(form, frozen, generator)
        self._width = form.width
        self._noise_seed: int | None = None
        self.change = nn.Parameter(frozen.full(0))  # (D,)
        self.alpha = nn.Parameter(frozen.full(_ALPHA))  # (D,)
        self.tensor_alpha = nn.Parameter(torch.full((len(frozen.sizes),), _ALPHA, dtype=torch.float64))
        self.mask: Tensor
        self.is_fixed: Tensor
        self.register_buffer("mask", torch.ones_like(self.change, dtype=torch.bool))  # (D,)
        self.register_buffer("is_fixed", torch.zeros((), dtype=torch.bool))

    @property
    def gates(self) -> list[nn.Parameter]:
        """Parameters whose learning rate is `GATE_RATE_FACTOR` times that of the changes."""
        return [self.alpha, self.tensor_alpha]

    def weights(self) -> dict[str, Tensor]:
        """Compute the current weights by name, differentiable in changes and gates."""
        return self.frozen.plus(self._gated_change())

    def penalty(self) -> Tensor:
        """Return the term added to the loss: 1.25e-7 times the expected number of changed weights.

        It is 0 in the second stage. A weight is changed if its own gate and its tensor's are open, so their
        probabilities are multiplied. That of a gate is ``sigmoid(alpha - log(-low / high))``, whose logarithm is 0.
        """
        if self.is_fixed:
            return self.change.new_zeros(())
        parts = torch.split(torch.sigmoid(self.alpha), self.frozen.sizes)
        own = torch.stack([part.sum() for part in parts])  # of each tensor
        return _PENALTY * (own * torch.sigmoid(self.tensor_alpha).to(own.dtype)).sum()

    def before_step(self, seed: int) -> None:
        """Set the seed of a training step's noise; used in training mode only."""
        self._noise_seed = seed

    def after_step(self, done: int, steps: int) -> bool:
        """Fix the mask after half of the steps.

        Returns:
            Whether the second stage begins, for which optimizers are reset.
        """
        if self.is_fixed or done < (steps + 1) // 2:
            return False
        with torch.no_grad():
            self._noise_seed = None
            gated = self._gated_change()
            self.mask.zero_()[gated.abs().topk(self._width).indices] = True
            self.change.copy_(gated * self.mask)
            self.is_fixed.fill_(True)
        return True

    def kept(self) -> tuple[Tensor, Tensor]:
        """Return the stored positions ``(width,)`` in the vector of all weights, and their changes.

        Before the second stage all D positions are returned.
        """
        places = self.mask.nonzero().flatten()
        return places, self._gated_change().detach()[places]

    def own_tensors(self) -> dict[str, Tensor]:
        """Return the positions and changes."""
        return dict(zip(self.own_names, self.kept(), strict=True))

    def take_own(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore stored changes at their positions, as in the second stage."""
        places = tensors["places"].to(self.change.device)
        self.change.zero_()
        self.change[places] = tensors["changes"].to(self.change.device, self.change.dtype)
        self.mask.zero_()[places] = True
        self.is_fixed.fill_(True)

    def _gated_change(self) -> Tensor:
        """Return the gated change ``(D,)``."""
        if self.is_fixed:
            return self.change * self.mask
        element_noise, tensor_noise = self._noise()
        tensor_gates = hard_concrete(self.tensor_alpha, tensor_noise)
        spread = [gate.expand(size) for gate, size in zip(tensor_gates, self.frozen.sizes, strict=True)]
        return self.change * hard_concrete(self.alpha, element_noise) * torch.cat(spread)

    def _noise(self) -> tuple[Tensor, Tensor] | tuple[None, None]:
        if not self.training or self._noise_seed is None:
            return None, None
        device = self.change.device
        generator = torch.Generator(device=device).manual_seed(self._noise_seed)
        element = torch.rand(self.alpha.shape, generator=generator, device=device)
        tensor = torch.rand(self.tensor_alpha.shape, generator=generator, device=device)
        return element, tensor
