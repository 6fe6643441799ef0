"""Diff pruning: ``theta_0 + z w`` with gates z that learn which weights are changed (Guo et al. 2021)."""

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
    """Gates in [0, 1] that can be exactly 0 or 1 (Louizos et al. 2018).

    Args:
        alpha: Log-odds of being open.
        noise: Uniform draws of the same shape; None for the gate without randomness.
    """
    logits = alpha if noise is None else alpha + torch.logit(noise.to(alpha.dtype), eps=_NOISE_EDGE)
    return (torch.sigmoid(logits) * (_HIGH - _LOW) + _LOW).clamp(0, 1)


class SparseDelta(WholeModelDelta):
    """A sparse change of a model's weights, in two stages.

    First every weight has a change w, a gate of its own and one that it shares with its tensor; the gates are random
    in training steps. When half of the steps (rounded up) are done, the ``width`` largest ``|z w|`` of the model are
    kept, become the new w there, and go on training without gates.
    """

    stores_parameters = False
    own_names = ("places", "changes")

    def __init__(self, form: Sparse, frozen: FrozenWeights, generator: torch.Generator) -> None:
        """Start with changes of zero and gates that are open."""
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
        """The parameters whose learning rate is `GATE_RATE_FACTOR` times that of the changes."""
        return [self.alpha, self.tensor_alpha]

    def weights(self) -> dict[str, Tensor]:
        """The weights of the moment by name, differentiable in changes and gates."""
        return self._frozen.plus(self._gated_change())

    def penalty(self) -> Tensor:
        """What is added to the loss: 1.25e-7 times the expected number of changed weights; 0 in the second stage.

        A weight is changed if its own gate and its tensor's are open, so their probabilities are multiplied: of a gate
        ``sigmoid(alpha - log(-low / high))``, where the logarithm is 0.
        """
        if self.is_fixed:
            return self.change.new_zeros(())
        parts = torch.split(torch.sigmoid(self.alpha), self._frozen.sizes)
        own = torch.stack([part.sum() for part in parts])  # of each tensor
        return _PENALTY * (own * torch.sigmoid(self.tensor_alpha).to(own.dtype)).sum()

    def before_step(self, seed: int) -> None:
        """Take up the randomness of a training step; it is in force in training mode only."""
        self._noise_seed = seed

    def after_step(self, done: int, steps: int) -> bool:
        """Fix the mask if its time has come.

        Returns:
            Whether the second stage begins now, in which optimisers start anew.
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
        """All that need be stored: places ``(width,)`` in the vector of all weights, and their changes.

        Before the second stage nothing is chosen yet, and all D places are returned.
        """
        places = self.mask.nonzero().flatten()
        return places, self._gated_change().detach()[places]

    def own_tensors(self) -> dict[str, Tensor]:
        """See `WholeModelDelta`."""
        return dict(zip(self.own_names, self.kept(), strict=True))

    def take_own(self, tensors: Mapping[str, Tensor]) -> None:
        """Put kept changes in their places, where the second stage leaves them."""
        places = tensors["places"].to(self.change.device)
        self.change.zero_()
        self.change[places] = tensors["changes"].to(self.change.device, self.change.dtype)
        self.mask.zero_()[places] = True
        self.is_fixed.fill_(True)

    def _gated_change(self) -> Tensor:
        """``(D,)``."""
        if self.is_fixed:
            return self.change * self.mask
        element_noise, tensor_noise = self._noise()
        tensor_gates = hard_concrete(self.tensor_alpha, tensor_noise)
        spread = [gate.expand(size) for gate, size in zip(tensor_gates, self._frozen.sizes, strict=True)]
        return self.change * hard_concrete(self.alpha, element_noise) * torch.cat(spread)

    def _noise(self) -> tuple[Tensor, Tensor] | tuple[None, None]:
        if not self.training or self._noise_seed is None:
            return None, None
        device = self.change.device
        generator = torch.Generator(device=device).manual_seed(self._noise_seed)
        element = torch.rand(self.alpha.shape, generator=generator, device=device)
        tensor = torch.rand(self.tensor_alpha.shape, generator=generator, device=device)
        return element, tensor
