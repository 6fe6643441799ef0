"""Intrinsic: a change of all weights within a random subspace."""

from dataclasses import dataclass
from typing import ClassVar

from search_space.forms.form import SizedForm, check_size


@dataclass(frozen=True, slots=True, kw_only=True)
class Intrinsic(SizedForm):
    """A change of all weights within a fixed random subspace (Aghajanyan et al. 2021): ``theta = theta_0 + P(z)``.

    P is a Fastfood transform per tensor.

    Attributes:
        width: Dimension of the subspace, d_int.
        per_tensor: Whether every parameter tensor has a trained factor of its own, taken from the ``width`` (SAID);
            else there is none (DID).

    Raises:
        InvalidEditError: If it is out of range.
    """

    name: ClassVar[str] = "intrinsic"

    width: int
    per_tensor: bool = False

    def __post_init__(self) -> None:
        """Check the size."""
        check_size(self)
