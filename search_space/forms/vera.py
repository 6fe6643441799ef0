"""VeRA: a low-rank map with frozen random matrices and trained factors for rank and output channels."""

from dataclasses import dataclass, replace
from typing import ClassVar

from search_space.affine import AffineCount
from search_space.backbones.shape import BackboneShape
from search_space.edit_protocol import PROJECTION_SETS_AT_ATTENTION, EditEndpoints, WriteReadPairs, block_widths
from search_space.errors import InvalidEditError
from search_space.forms.form import LinearForm, PeftKind, composed_formula, insertion_word
from search_space.rules import PROJECTION_INPUTS, is_integer
from search_space.symbols import DeltaFormula, normed_read_symbol


@dataclass(frozen=True, slots=True, kw_only=True)
class Vera(LinearForm):
    """``((z A ⊙ d) B) ⊙ b`` with frozen random A (D_in, R) and B (R, D_out) (Kopiczko et al. 2024).

    All sublayers with the same input and output widths share A and B. d (R) starts at 0.1, b (D_out) at zero.

    Attributes:
        width: Rank R. At least 1.
        widened: Number of sublayers, counted from the output, with one more rank.
        seed: Seed of A and B, which depend on nothing else. At least 0.

    Raises:
        InvalidEditError: If a size, or the seed, is out of range.
    """

    name: ClassVar[str] = "vera"
    is_opt_in: ClassVar[bool] = True
    learning_rates: ClassVar[tuple[float, float]] = (3e-3, 5e-2)
    peft: ClassVar[PeftKind | None] = PeftKind.VERA
    port_sets_at_attention: ClassVar[tuple[WriteReadPairs, ...]] = PROJECTION_SETS_AT_ATTENTION

    width: int
    widened: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the sizes and the seed."""
        LinearForm.__post_init__(self)
        if not (is_integer(self.seed) and 0 <= self.seed < 1 << 63):
            raise InvalidEditError(f"a seed must be a whole number from 0 on; got {self.seed!r}.", rule="width")

    def count(self, edit: EditEndpoints, shape: BackboneShape) -> AffineCount:
        """Count one factor per rank and one per output channel."""
        return AffineCount(weights_per_width=1, weights=block_widths(edit, shape)[1])

    def inference_weights(self, edit: EditEndpoints, shape: BackboneShape) -> AffineCount:
        """Return the weights read at inference, projections included."""
        in_width, out_width = block_widths(edit, shape)
        return AffineCount(weights_per_width=in_width + out_width + 1, weights=out_width)

    def largest_width(self, edit: EditEndpoints, shape: BackboneShape) -> int | None:
        """Return the sum of both widths; beyond the smaller one each rank is still a direction of its own."""
        return sum(block_widths(edit, shape))

    def pack_key(self) -> "Vera":
        """Return one form for all ranks and seeds; vectors are padded and each has the matrices of its own seed."""
        return replace(self, width=1, widened=0, seed=0)

    def display_name(self, edit: EditEndpoints) -> str:
        """Return ``VeRA`` in parallel to a projection, else with its insertion."""
        return "VeRA" if PROJECTION_INPUTS.get(edit.write) is edit.read else f"{insertion_word(edit)} VeRA"

    def formula(self, edit: EditEndpoints, shape: BackboneShape) -> str:
        """Return two trained vectors with the frozen matrices."""
        in_width, out_width = block_widths(edit, shape)
        vectors = f"d: {self.size}, b: {out_width}"
        random = f"random A of {in_width} × {self.size} and B of {self.size} × {out_width}"
        body = f"(({normed_read_symbol(edit, shape)} A ⊙ d) B) ⊙ b"
        return composed_formula(edit, shape, DeltaFormula(body=body, matrices=f"{vectors}, {random}"))
