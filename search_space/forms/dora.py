"""DoRA: a frozen matrix with a low-rank change, decomposed into the magnitude and the direction of each column."""

from dataclasses import dataclass
from typing import ClassVar

from search_space.affine import AffineCount
from search_space.backbones.shape import BackboneShape
from search_space.edit_protocol import PROJECTION_SETS_AT_ATTENTION, EditEndpoints, WriteReadPairs, block_widths
from search_space.forms.form import LinearForm, PeftKind
from search_space.rules import PROJECTION_INPUTS, rule_error


@dataclass(frozen=True, slots=True, kw_only=True)
class Dora(LinearForm):
    """``z (m ⊙ (W + s A B) / |W + s A B|)`` in the place of ``z W`` (Liu et al. 2024).

    W (D_in, D_out) is the frozen projection, A (D_in, R), B (R, D_out), norms are of columns and m (D_out) starts as
    that of W. B starts at zero; the scale s comes from the gate. No gradient goes through the norm (section 4.3).

    Attributes:
        width: Rank R. At least 1.
        widened: Number of sublayers, counted from the output, with one more rank.

    Raises:
        InvalidEditError: If a size is out of range.
    """

    name: ClassVar[str] = "dora"
    is_opt_in: ClassVar[bool] = True
    learning_rates: ClassVar[tuple[float, float]] = (1e-3, 1.5e-2)
    peft: ClassVar[PeftKind | None] = PeftKind.DORA
    needs_weights: ClassVar[bool] = True
    port_sets_at_attention: ClassVar[tuple[WriteReadPairs, ...]] = PROJECTION_SETS_AT_ATTENTION

    width: int
    widened: int = 0

    def check(self, edit: EditEndpoints) -> None:
        """Refuse ports without a projection between them, and gates that are neither plain nor scales."""
        if PROJECTION_INPUTS.get(edit.write) is not edit.read:
            raise rule_error("decomposed", f"{self.name} from {edit.read} to {edit.write}", "Use lowrank there.")
        if not edit.gate.is_plain:
            raise rule_error(
                "decomposed", f"{self.name} with gate {edit.gate.name}", "Use add, scale or scale_learned."
            )

    def count(self, edit: EditEndpoints, shape: BackboneShape) -> AffineCount:
        """Count two matrices and one magnitude per output channel."""
        in_width, out_width = block_widths(edit, shape)
        return AffineCount(weights_per_width=in_width + out_width, weights=out_width)

    def display_name(self, edit: EditEndpoints) -> str:
        """Return ``DoRA``."""
        return "DoRA"

    def formula(self, edit: EditEndpoints, shape: BackboneShape) -> str:
        """Return the replaced projection."""
        in_width, out_width = block_widths(edit, shape)
        changed = f"(W + {edit.gate.scaled('A B')})"
        matrices = f"A: {in_width} × {self.size}, B: {self.size} × {out_width}, m: {out_width}"
        return f"{edit.write} <- {edit.read} (m ⊙ {changed} / |{changed}|) + b of the frozen layer; {matrices}"
