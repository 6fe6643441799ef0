"""Full: a free change of every weight, which is full fine-tuning."""

from dataclasses import dataclass
from typing import ClassVar

from search_space.affine import AffineCount
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Site
from search_space.edit_protocol import EditEndpoints
from search_space.forms.form import Form


@dataclass(frozen=True, slots=True, kw_only=True)
class Full(Form):
    """A free change of every weight of the backbone: full fine-tuning. Starts at zero."""

    name: ClassVar[str] = "full"
    learning_rates: ClassVar[tuple[float, float]] = (1e-5, 5e-4)
    unmergeable_reason: ClassVar[str | None] = None
    outside_site: ClassVar[Site | None] = Site.GLOBAL
    reads: ClassVar[bool] = False
    needs_weights: ClassVar[bool] = True

    def count(self, edit: EditEndpoints, shape: BackboneShape) -> AffineCount:
        """Count all frozen weights."""
        return AffineCount(weights=shape.frozen_parameters)

    def display_name(self, edit: EditEndpoints) -> str:
        """Return ``a change of every weight``."""
        return "a change of every weight"

    def formula(self, edit: EditEndpoints, shape: BackboneShape) -> str:
        """Return a free change of all weights."""
        return f"θ <- θ + Δ; Δ: {shape.frozen_parameters}"
