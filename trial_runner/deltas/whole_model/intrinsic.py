"""Intrinsic dimension: ``theta_0 + P(z)`` with a fixed random P (Aghajanyan et al. 2021)."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from search_space.forms import Intrinsic
from trial_runner.deltas.whole_model.whole_delta import FrozenWeights, WholeModelDelta


def walsh_hadamard(x: Tensor) -> Tensor:
    """Compute ``H x`` with the unnormalised Walsh-Hadamard matrix in Sylvester's order.

    Args:
        x: Vector whose length is a power of two. H is symmetric, so the transform is its own gradient.
    """
    half = 1
    while half < x.numel():
        first, second = x.view(-1, 2, half).unbind(dim=1)
        x = torch.stack((first + second, first - second), dim=1)
        half *= 2
    return x.reshape(-1)


class Fastfood:
    """``H G Pi H B z / (sqrt(LL sum(G^2)) sqrt(D / LL))``, the first D entries. LL is the least power of two from D on.

    B are random signs, Pi is a permutation and G is normal. z is padded with zeros to LL, or cropped if it is longer
    (Aghajanyan et al. 2021, released code).

    They are drawn at the first use and again for every device and precision, so they are not part of a state.

    Args:
        size: Number of output entries D.
        seed: Seed of B, Pi and G.
    """

    def __init__(self, size: int, seed: int) -> None:
        """Store the sizes; nothing is drawn yet."""
        self._size = size
        self._seed = seed
        self._length = 1 << (size - 1).bit_length()
        self._drawn: tuple[Tensor, Tensor, Tensor] | None = None

    def __call__(self, z: Tensor) -> Tensor:
        """Map ``(D_z,)`` to ``(D,)``."""
        signs, order, normal = self._parts(z)
        padded = torch.nn.functional.pad(z, (0, self._length - z.numel()))  # a negative pad crops
        mixed = walsh_hadamard(signs * padded).index_select(0, order)
        return walsh_hadamard(normal * mixed)[: self._size]

    def _parts(self, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return B as int8, Pi as int32, and G over the divisor, on z's device and in its precision."""
        if self._drawn is None or (self._drawn[2].device, self._drawn[2].dtype) != (z.device, z.dtype):
            generator = torch.Generator().manual_seed(self._seed)
            signs = torch.randint(2, (self._length,), generator=generator, dtype=torch.int8) * 2 - 1
            order = torch.randperm(self._length, generator=generator, dtype=torch.int32)
            normal = torch.randn(self._length, generator=generator).to(z.dtype)
            # sqrt(LL sum(G^2)) sqrt(D / LL) = |G| sqrt(D)
            normal /= torch.linalg.vector_norm(normal) * self._size**0.5
            self._drawn = (signs.to(z.device), order.to(z.device), normal.to(z.device))
        return self._drawn


class IntrinsicDelta(WholeModelDelta):
    """A change of all weights within a random subspace; the same z goes through a Fastfood transform per tensor.

    With ``per_tensor`` (SAID) each tensor's part is multiplied by a trained factor that starts at 1. z starts at zero.
    """

    own_names = ("seeds",)

    def __init__(self, form: Intrinsic, frozen: FrozenWeights, generator: torch.Generator) -> None:
        """Draw a seed per tensor; the transforms are drawn at their first use."""
        super().__init__(form, frozen, generator)
        number = len(frozen.sizes)
        self._draw(torch.randint(2**63 - 1, (number,), generator=generator))
        self.z = nn.Parameter(torch.zeros(form.width - number * form.per_tensor, dtype=torch.float64))
        self.factors = nn.Parameter(torch.ones(number, dtype=torch.float64)) if form.per_tensor else None

    def take(self, source: nn.Module) -> None:
        """Copy the seeds."""
        if isinstance(source, IntrinsicDelta):
            self._draw(source._seeds)

    def own_tensors(self) -> dict[str, Tensor]:
        """Return the seeds."""
        return {"seeds": self._seeds.clone()}

    def take_own(self, tensors: Mapping[str, Tensor]) -> None:
        """Set the seeds."""
        self._draw(tensors["seeds"])

    def _draw(self, seeds: Tensor) -> None:
        """Set the seeds ``(number of tensors,)``, which are stored with z and the factors."""
        self._seeds = seeds.detach().cpu().clone()
        sizes = self.frozen.sizes
        self._projections = [Fastfood(size, seed) for size, seed in zip(sizes, seeds.tolist(), strict=True)]

    def weights(self) -> dict[str, Tensor]:
        """Compute the current weights by name, differentiable in z and the factors."""
        factors = [None] * len(self._projections) if self.factors is None else self.factors.unbind()
        changed = {}
        for (name, tensor), projection, factor in zip(
            self.frozen.tensors.items(), self._projections, factors, strict=True
        ):
            change = projection(self.z).view_as(tensor)
            changed[name] = tensor + (change if factor is None else factor * change)
        return changed
