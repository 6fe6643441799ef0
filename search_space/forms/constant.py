"""Constant: a trained vector, which is BitFit."""

from dataclasses import dataclass
from typing import ClassVar

from search_space.affine import AffineCount
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Port, Site
from search_space.edit_protocol import EditEndpoints, WriteReadPairs
from search_space.forms.form import Form
from search_space.gates import Add
from search_space.rules import rule_error


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant(Form):
    """A trained vector (D_out) that starts at zero: the change of a bias (BitFit). Reads nothing."""

    name: ClassVar[str] = "const"
    learning_rates: ClassVar[tuple[float, float]] = (1e-3, 1e-2)
    title: ClassVar[str] = "constant"
    reads: ClassVar[bool] = False
    unmergeable_reason: ClassVar[str | None] = None
    port_sets_at_attention: ClassVar[tuple[WriteReadPairs, ...]] = (((Port.Q, None), (Port.V, None)),)
    port_sets_at_ffn: ClassVar[tuple[WriteReadPairs, ...]] = (((Port.U, None), (Port.F, None)),)

    def check(self, edit: EditEndpoints) -> None:
        """Refuse gates other than ``add``: a scale of a trained vector adds nothing."""
        if not isinstance(edit.gate, Add):
            raise rule_error("gate", f"gate {edit.gate.name}")

    def check_on(self, edit: EditEndpoints, shape: BackboneShape) -> None:
        """Refuse a port whose module has no bias."""
        site = Site.ATTENTION if edit.site.is_attention else edit.site
        if (site, edit.write) not in shape.biased_ports:
            raise rule_error("V14", f"{site} {edit.write} on {shape.family}", "Choose a port with a bias.")

    def is_near_duplicate(self, edit: EditEndpoints, shape: BackboneShape) -> bool:
        """Return true at norms, and at k where a constant shifts all logits of a query equally (V12)."""
        return edit.write is Port.NORM or (edit.write is Port.K and not shape.positions.multiply_keys)

    def count(self, edit: EditEndpoints, shape: BackboneShape) -> AffineCount:
        """Count one weight per channel."""
        return AffineCount(weights=shape.port_width(edit.write))

    def display_name(self, edit: EditEndpoints) -> str:
        """Return ``bias``."""
        return "bias"

    def formula(self, edit: EditEndpoints, shape: BackboneShape) -> str:
        """Return a sum."""
        return f"{edit.write} <- {edit.write} + b, b: {shape.port_width(edit.write)}"
