"""Low rank: a linear map of low rank, which is LoRA."""

from dataclasses import dataclass
from typing import ClassVar

from search_space.affine import AffineCount
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Heads, Port
from search_space.edit_protocol import EditEndpoints, WriteReadPairs, block_widths
from search_space.forms.form import LinearForm, PeftKind, composed_formula, insertion_word
from search_space.gates.gate import Logits
from search_space.rules import PROJECTION_INPUTS
from search_space.symbols import DeltaFormula, normed_read_symbol


@dataclass(frozen=True, slots=True, kw_only=True)
class LowRank(LinearForm):
    """A linear map of low rank: ``z A B``, A (D_in, R), B (R, D_out); B starts at zero (LoRA).

    Attributes:
        width: Rank R. At least 1.
        widened: Number of sublayers, counted from the output, with one more rank.
        heads: One map, or one per head.
        bias: Whether the output has a bias (the code of Chen et al. 2022 for generation).

    Raises:
        InvalidEditError: If a size is out of range.
    """

    name: ClassVar[str] = "lowrank"
    learning_rates: ClassVar[tuple[float, float]] = (1e-3, 1.5e-2)
    peft: ClassVar[PeftKind | None] = PeftKind.LORA
    logits: ClassVar[Logits | None] = Logits.QUERY
    per_head: ClassVar[Heads | None] = Heads.QUERY
    dimensions: ClassVar[tuple[str, ...]] = ("bias",)
    port_sets_at_attention: ClassVar[tuple[WriteReadPairs, ...]] = (
        ((Port.Q, Port.X_ATTN), (Port.V, Port.CTX)),
        ((Port.K, Port.CTX), (Port.V, Port.CTX)),
        ((Port.Q, Port.X_ATTN), (Port.K, Port.CTX), (Port.V, Port.CTX)),
        ((Port.Q, Port.X_ATTN), (Port.K, Port.CTX), (Port.V, Port.CTX), (Port.O, Port.CONCAT)),
    )

    width: int
    widened: int = 0
    heads: Heads = Heads.SINGLE
    bias: bool = False

    @classmethod
    def has_usual_bias(cls, write: Port) -> bool:
        """Return false, as in LoRA."""
        return False

    def count(self, edit: EditEndpoints, shape: BackboneShape) -> AffineCount:
        """Count two matrices and a bias; per head into o, the summed output has one bias."""
        blocks = shape.heads(self.heads)
        in_block, out_block = block_widths(edit, shape)
        return AffineCount(
            weights_per_width=blocks * (in_block + out_block),
            biases=(out_block if edit.write is Port.O else blocks * out_block) if self.bias else 0,
        )

    def display_name(self, edit: EditEndpoints) -> str:
        """Return ``LoRA`` in parallel to a frozen projection, else ``low-rank map``."""
        kind = "multi-head " if self.heads is not Heads.SINGLE else ""
        is_lora = not kind and PROJECTION_INPUTS.get(edit.write) is edit.read
        return "LoRA" if is_lora else f"{kind}{insertion_word(edit)} low-rank map"

    def formula(self, edit: EditEndpoints, shape: BackboneShape) -> str:
        """Return the product with two matrices."""
        in_width, out_width = block_widths(edit, shape)
        delta = DeltaFormula(
            body=f"{normed_read_symbol(edit, shape)} A B",
            bias=" + b" if self.bias else "",
            matrices=f"A: {in_width} × {self.size}, B: {self.size} × {out_width}",
        )
        return composed_formula(edit, shape, delta)
