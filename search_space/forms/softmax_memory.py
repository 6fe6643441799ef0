"""Softmax memory: attention over a trained table, which is prefix tuning at the heads."""

from dataclasses import dataclass
from typing import ClassVar

from search_space.affine import AffineCount
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Heads
from search_space.edit_protocol import EditEndpoints, block_widths
from search_space.forms.form import (
    SizedForm,
    composed_formula,
    insertion_word,
    reads_query_at_heads,
    reparameterization_surplus,
)
from search_space.gates.gate import Logits
from search_space.rules import rule_error
from search_space.symbols import DeltaFormula, logit_divisor, normed_read_symbol


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftmaxMemory(SizedForm):
    """Attention over a trained table: ``softmax(z P_k^T / sqrt(D_in)) P_v``, P_k (R, D_in), P_v (R, D_out).

    With the convex gate at the heads this is prefix tuning (Li & Liang 2021; He et al. 2022, eq. 7).

    Attributes:
        width: Rows R of the table; `l` of prefix tuning. At least 1.
        widened: Number of sublayers, counted from the output, with one more row.
        heads: One table, or one per head.
        reparameterization: Hidden width of the MLP that produces the table during training; None trains the table
            itself. The MLP is dropped afterwards, so it is in the trained count but not in the stored one.
        robust: Whether prediction adds a second table, tuned for every batch. It pulls the layers' activations towards
            those of correctly predicted training examples (Yang & Liu 2022).

    Raises:
        InvalidEditError: If a size is out of range.
    """

    name: ClassVar[str] = "softmax_memory"
    size_symbol: ClassVar[str] = "l"
    learning_rates: ClassVar[tuple[float, float]] = (3e-3, 4e-2)
    unmergeable_reason: ClassVar[str | None] = "its softmax is not linear"
    logits: ClassVar[Logits | None] = Logits.TABLE
    per_head: ClassVar[Heads | None] = Heads.KEY_VALUE
    starts_at_zero: ClassVar[bool] = False
    dimensions: ClassVar[tuple[str, ...]] = ("reparameterization",)

    width: int
    widened: int = 0
    heads: Heads = Heads.SINGLE
    reparameterization: int | None = None
    robust: bool = False

    @property
    def variant(self) -> str | None:
        """``robust`` if a table is tuned for every batch; None otherwise."""
        return "robust" if self.robust else None

    def check(self, edit: EditEndpoints) -> None:
        """Refuse reparameterized and robust tables that are not prefixes."""
        if self.reparameterization is None and not self.robust:
            return
        is_prefix = reads_query_at_heads(edit) and self.heads is Heads.KEY_VALUE
        has_convex_gate = edit.gate.logits is Logits.TABLE and edit.gate.is_convex
        if not is_prefix or (self.robust and not has_convex_gate):
            raise rule_error("V17", f"{self.name} reading {edit.read}, writing {edit.write} per {self.heads}")

    def count(self, edit: EditEndpoints, shape: BackboneShape) -> AffineCount:
        """Count keys and values."""
        return AffineCount(weights_per_width=shape.heads(self.heads) * sum(block_widths(edit, shape)))

    def training_surplus(self, edit: EditEndpoints, shape: BackboneShape) -> int:
        """Count the MLP that makes the tables, if there is one."""
        if self.reparameterization is None:
            return 0
        per_layer = 2 * shape.key_value_width
        return reparameterization_surplus(
            edit, shape, length=self.width, hidden=self.reparameterization, per_layer=per_layer
        )

    def display_name(self, edit: EditEndpoints) -> str:
        """Return ``prefix`` for tables at the heads, else ``softmax memory``, with its variant."""
        gate = edit.gate
        if self.robust:
            return "robust prefix"
        if gate.logits is Logits.TABLE:
            return "prefix" if gate.is_convex else "weighted prefix"
        if reads_query_at_heads(edit):
            return "prefix" if gate.is_closing else "ungated prefix"
        return f"{insertion_word(edit)} softmax memory"

    def formula(self, edit: EditEndpoints, shape: BackboneShape) -> str:
        """Return a softmax over the rows."""
        in_width, out_width = block_widths(edit, shape)
        table = "(P + P')" if self.robust else "P"
        delta = DeltaFormula(
            body=f"softmax({normed_read_symbol(edit, shape)} {table}_kᵀ{logit_divisor(edit, shape)}) {table}_v",
            matrices=f"P_k: {self.size} × {in_width}, P_v: {self.size} × {out_width}",
            is_atomic=True,
        )
        more = "; P': as P, tuned anew for every batch" if self.robust else ""
        return f"{composed_formula(edit, shape, delta)}{more}"
