"""The Fastfood transform: a fixed random linear map of a few numbers to many (Le et al. 2013)."""

import torch
from torch import Tensor


def walsh_hadamard(x: Tensor) -> Tensor:
    """``H x`` with the unnormalised Walsh-Hadamard matrix in Sylvester's order.

    Args:
        x: A vector whose length is a power of two. H is symmetric, so the transform is its own gradient.
    """
    half = 1
    while half < x.numel():
        first, second = x.view(-1, 2, half).unbind(dim=1)
        x = torch.stack((first + second, first - second), dim=1)
        half *= 2
    return x.reshape(-1)


class Fastfood:
    """``H G Pi H B z / (sqrt(LL sum(G^2)) sqrt(D / LL))``, the first D entries, with LL the power of two from D on.

    B are random signs, Pi is a permutation and G is normal; z is padded with zeros to LL, or cropped where LL is less
    than its length (Aghajanyan et al. 2021, released code).

    They are drawn at the first use and anew for every device and precision, so they are not part of a state.

    Args:
        size: Entries D of what is computed.
        seed: Of the three.
    """

    def __init__(self, size: int, seed: int) -> None:
        """Draw nothing yet."""
        self._size = size
        self._seed = seed
        self._length = 1 << (size - 1).bit_length()
        self._drawn: tuple[Tensor, Tensor, Tensor] | None = None

    def __call__(self, z: Tensor) -> Tensor:
        """``(D_z,)`` to ``(D,)``."""
        signs, order, normal = self._parts(z)
        padded = torch.nn.functional.pad(z, (0, self._length - z.numel()))  # a negative pad crops
        mixed = walsh_hadamard(signs * padded).index_select(0, order)
        return walsh_hadamard(normal * mixed)[: self._size]

    def _parts(self, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """B as int8, Pi as int32, and G over the divisor; in the place and precision of z."""
        if self._drawn is None or (self._drawn[2].device, self._drawn[2].dtype) != (z.device, z.dtype):
            generator = torch.Generator().manual_seed(self._seed)
            signs = torch.randint(2, (self._length,), generator=generator, dtype=torch.int8) * 2 - 1
            order = torch.randperm(self._length, generator=generator, dtype=torch.int32)
            normal = torch.randn(self._length, generator=generator).to(z.dtype)
            # sqrt(LL sum(G^2)) sqrt(D / LL) = |G| sqrt(D)
            normal /= torch.linalg.vector_norm(normal) * self._size**0.5
            self._drawn = (signs.to(z.device), order.to(z.device), normal.to(z.device))
        return self._drawn
