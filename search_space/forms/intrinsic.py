"""Intrinsic: a change of all weights within a random subspace."""

from dataclasses import dataclass
from typing import ClassVar

from search_space.backbones.shape import BackboneShape
from search_space.edit_protocol import EditEndpoints
from search_space.forms.form import WeightForm
from search_space.rules import rule_error


@dataclass(frozen=True, slots=True, kw_only=True)
class Intrinsic(WeightForm):
    """A change of all weights within a fixed random subspace (Aghajanyan et al. 2021): ``theta = theta_0 + P(z)``.

    P is a Fastfood transform per tensor.

    Attributes:
        width: Dimension of the subspace, d_int.
        per_tensor: Whether every parameter tensor has a trained factor of its own, taken from the ``width`` (SAID), or
            none (DID).

    Raises:
        InvalidEditError: If the dimension is out of range.
    """

    name: ClassVar[str] = "intrinsic"
    learning_rates: ClassVar[tuple[float, float]] = (1e-3, 1e-1)

    width: int
    per_tensor: bool = False

    @property
    def variant(self) -> str | None:
        """Name of the variant: ``a factor per tensor`` for SAID; None for DID."""
        return "a factor per tensor" if self.per_tensor else None

    def check_on(self, edit: EditEndpoints, shape: BackboneShape) -> None:
        """Refuse a dimension above the number of weights, or too small for a factor per tensor."""
        WeightForm.check_on(self, edit, shape)
        if self.per_tensor and self.width <= shape.parameter_tensors:
            got = f"{self.width} with a factor for each of {shape.parameter_tensors} tensors"
            raise rule_error("width", got, "Raise the dimension above their number.")

    def describe(self, edit: EditEndpoints) -> str:
        """Return the name with the dimension."""
        return f"{self.display_name(edit)} of {self.width:,}{', with a factor per tensor' if self.per_tensor else ''}"

    def display_name(self, edit: EditEndpoints) -> str:
        """Return ``all weights in a random subspace``."""
        return "all weights in a random subspace"

    def formula(self, edit: EditEndpoints, shape: BackboneShape) -> str:
        """Return the fixed projection of the trained vector."""
        if not self.per_tensor:
            return f"θ <- θ + P(z), P: fixed random Fastfood; z: {self.width}"
        tensors = shape.parameter_tensors
        return f"θ_t <- θ_t + μ_t P(z)_t, P: fixed random Fastfood; z: {self.width - tensors}, μ: {tensors}"
