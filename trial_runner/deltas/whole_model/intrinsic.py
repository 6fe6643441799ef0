"""Intrinsic dimension: ``theta_0 + P(z)`` with a fixed random P (Aghajanyan et al. 2021)."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from search_space.forms import Form, Intrinsic
from trial_runner.deltas.whole_model.fastfood import Fastfood
from trial_runner.deltas.whole_model.flat import FrozenWeights
from trial_runner.deltas.whole_model.whole_delta import WholeModelDelta
from trial_runner.errors import AttachError


class IntrinsicDelta(WholeModelDelta):
    """A change of all weights within a random subspace; the same z goes through a Fastfood transform per tensor.

    With ``per_tensor`` (SAID) each tensor's part is multiplied by a trained factor that starts at 1. z starts at zero.
    """

    own_names = ("seeds",)

    def __init__(self, form: Intrinsic, frozen: FrozenWeights, generator: torch.Generator) -> None:
        """Draw a seed per tensor; the transforms themselves are drawn when they are first used."""
        super().__init__()
        self._frozen = frozen
        number = len(frozen.sizes)
        self._draw(torch.randint(2**63 - 1, (number,), generator=generator))
        self.z = nn.Parameter(torch.zeros(form.width - number * form.per_tensor, dtype=torch.float64))
        self.factors = nn.Parameter(torch.ones(number, dtype=torch.float64)) if form.per_tensor else None

    @classmethod
    def build(cls, form: Form, frozen: FrozenWeights, generator: torch.Generator) -> "IntrinsicDelta":
        """See `WholeModelDelta`."""
        if not isinstance(form, Intrinsic):
            raise AttachError(f"a random subspace needs a form of one; got {form.name}. This is a bug.")
        return cls(form, frozen, generator)

    @property
    def seeds(self) -> Tensor:
        """Those of the projections, ``(number of tensors,)``: with z and the factors, all that need be stored."""
        return self._seeds.clone()

    @seeds.setter
    def seeds(self, seeds: Tensor) -> None:
        """Project as another one of these does."""
        self._draw(seeds)

    def take(self, source: nn.Module) -> None:
        """See `DeltaModule`."""
        if isinstance(source, IntrinsicDelta):
            self.seeds = source.seeds

    def own_tensors(self) -> dict[str, Tensor]:
        """See `WholeModelDelta`."""
        return {"seeds": self.seeds}

    def take_own(self, tensors: Mapping[str, Tensor]) -> None:
        """See `WholeModelDelta`."""
        self.seeds = tensors["seeds"]

    def _draw(self, seeds: Tensor) -> None:
        self._seeds = seeds.detach().cpu().clone()
        sizes = self._frozen.sizes
        self._projections = [Fastfood(size, seed) for size, seed in zip(sizes, seeds.tolist(), strict=True)]

    def weights(self) -> dict[str, Tensor]:
        """The weights of the moment by name, differentiable in z and the factors."""
        factors = [None] * len(self._projections) if self.factors is None else self.factors.unbind()
        changed = {}
        for (name, tensor), projection, factor in zip(
            self._frozen.tensors.items(), self._projections, factors, strict=True
        ):
            change = projection(self.z).view_as(tensor)
            changed[name] = tensor + (change if factor is None else factor * change)
        return changed
