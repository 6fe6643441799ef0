"""Diagonal: one factor per channel, which is (IA)^3 where it multiplies what it reads."""

from dataclasses import dataclass
from typing import ClassVar

from search_space.affine import AffineCount
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Insertion, Port, Positions
from search_space.edit_protocol import EditEndpoints, WriteReadPairs, block_widths
from search_space.forms.form import Form, PeftKind, composed_formula, insertion_word
from search_space.rules import rule_error
from search_space.symbols import DeltaFormula, read_symbol


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagonal(Form):
    """One trained factor per channel.

    With the gate ``mul``, ``h * l`` with l = 1 at the start ((IA)^3, Liu et al. 2022); with an additive gate,
    ``z * w`` with w = 0 at the start.
    """

    name: ClassVar[str] = "diag"
    learning_rates: ClassVar[tuple[float, float]] = (3e-3, 5e-2)
    peft: ClassVar[PeftKind | None] = PeftKind.IA3
    unmergeable_reason: ClassVar[str | None] = None
    multiplies: ClassVar[bool] = True
    port_sets_at_attention: ClassVar[tuple[WriteReadPairs, ...]] = (((Port.K, Port.K), (Port.V, Port.V)),)

    def check_on(self, edit: EditEndpoints, shape: BackboneShape) -> None:
        """Refuse different widths at the two ends."""
        read, written = block_widths(edit, shape)
        if read != written:
            raise rule_error("V15", f"a diagonal of widths {read} and {written}", "Use another form.")

    def is_near_duplicate(self, edit: EditEndpoints, shape: BackboneShape) -> bool:
        """Return true for factors of k and of the concatenated heads, which are factors of q and of v (V13)."""
        at_k = edit.write is edit.read is Port.K and shape.positions is not Positions.ROTARY
        return at_k or (edit.write is edit.read is Port.CONCAT and shape.query_heads == shape.key_value_heads)

    def count(self, edit: EditEndpoints, shape: BackboneShape) -> AffineCount:
        """Count one weight per channel."""
        return AffineCount(weights=shape.port_width(edit.write))

    def display_name(self, edit: EditEndpoints) -> str:
        """Return ``scaling`` for a sequential edit, else ``parallel diagonal``."""
        return "scaling" if edit.insertion is Insertion.SEQUENTIAL else f"{insertion_word(edit)} diagonal"

    def formula(self, edit: EditEndpoints, shape: BackboneShape) -> str:
        """Return a product per channel."""
        width = shape.port_width(edit.write)
        if edit.read is edit.write:
            return f"{edit.write} <- {edit.write} ⊙ l, l: {width}"
        return composed_formula(edit, shape, DeltaFormula(body=f"{read_symbol(edit)} ⊙ w", matrices=f"w: {width}"))
