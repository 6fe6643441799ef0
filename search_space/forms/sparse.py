"""Sparse: a change of few weights at learned positions, which is diff pruning."""

from dataclasses import dataclass
from typing import ClassVar

from search_space.backbones.shape import BackboneShape
from search_space.edit_protocol import EditEndpoints
from search_space.forms.form import WeightForm


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparse(WeightForm):
    """A sparse change of the backbone's weights at learned positions: diff pruning (Guo et al. 2021).

    ``theta = theta_0 + z w`` with hard-concrete gates z per weight and per tensor; then the ``width`` largest changes
    are kept and trained on.

    Attributes:
        width: Number of weights that are changed in the end.

    Raises:
        InvalidEditError: If the number is out of range.
    """

    name: ClassVar[str] = "sparse"
    learning_rates: ClassVar[tuple[float, float]] = (1e-5, 5e-4)

    width: int

    def training_surplus(self, edit: EditEndpoints, shape: BackboneShape) -> int:
        """Count a change and a gate for every weight, and a gate for every tensor."""
        return 2 * shape.frozen_parameters + shape.parameter_tensors - self.width

    def describe(self, edit: EditEndpoints) -> str:
        """Return the number of changed weights."""
        return f"a change of {self.width:,} weights"

    def display_name(self, edit: EditEndpoints) -> str:
        """Return ``a change of few weights``."""
        return "a change of few weights"

    def formula(self, edit: EditEndpoints, shape: BackboneShape) -> str:
        """Return a gated change."""
        stays = f"z: hard-concrete gates, of which {self.width} stay"
        return f"θ <- θ + z ⊙ w, {stays}; w: {shape.frozen_parameters}"
