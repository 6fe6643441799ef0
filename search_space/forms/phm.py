"""Kronecker products: a bottleneck with few parameters, which is Compacter."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

from search_space.affine import AffineCount
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Activation
from search_space.edit_protocol import EditEndpoints, block_widths
from search_space.errors import InvalidEditError
from search_space.forms.form import SizedForm, activation_prefix, composed_formula, insertion_word
from search_space.rules import check_positive_integer, is_integer, rule_error
from search_space.symbols import DeltaFormula, matrix_shapes, normed_read_symbol


@dataclass(frozen=True, slots=True, kw_only=True)
class Phm(SizedForm):
    """A bottleneck of sums of Kronecker products: ``W = sum_i C_i (x) B_i``, C_i (n, n), B_i (D_in/n, D_out/n).

    Compacter (Karimi Mahabadi et al. 2021): C shared by the whole model and ``B_i = s_i t_i^T`` of low rank.

    Attributes:
        width: Hidden width R, a multiple of ``n``.
        widened: Number of sublayers, counted from the output, with ``n`` more hidden units.
        n: Number of products, and size of C_i.
        factor_rank: Rank of B_i; None for full matrices.
        shared: Whether all edits of the configuration with this ``n`` share one C; else each projection has one.
        activation: Nonlinearity of the hidden units.
        bias: Whether both projections have a bias.

    Raises:
        InvalidEditError: If a size is out of range.
    """

    name: ClassVar[str] = "phm"
    learning_rates: ClassVar[tuple[float, float]] = (1e-3, 2e-2)
    unmergeable_reason: ClassVar[str | None] = "its activation is not linear"
    starts_at_zero: ClassVar[bool] = False
    dimensions: ClassVar[tuple[str, ...]] = ("activation", "bias", "products", "factors", "sharing")

    width: int
    widened: int = 0
    n: int = 4
    factor_rank: int | None = 1
    shared: bool = True
    activation: Activation = Activation.GELU
    bias: bool = True

    def __post_init__(self) -> None:
        """Check the sizes."""
        SizedForm.__post_init__(self)
        if not (is_integer(self.n) and self.n >= 1 and self.width % self.n == 0):
            raise InvalidEditError(
                f"a phm bottleneck must be a multiple of n, at least 1; got {self.width} and n {self.n!r}.", rule="V15"
            )
        if self.factor_rank is not None:
            check_positive_integer(self.factor_rank, "the rank of phm factors")

    @property
    def width_step(self) -> int:
        """Increment of the width: one row for each of the products."""
        return self.n

    @property
    def variant(self) -> str | None:
        """Sharing of C and rank of B."""
        own, rank = "shared" if self.shared else "own", "full" if self.factor_rank is None else "low-rank"
        return f"{own} C, {rank} B"

    @property
    def shared_parameters(self) -> tuple[Hashable, int] | None:
        """One C of n^3 entries for each n; None if each projection has its own."""
        return ((self.name, self.n), self.n**3) if self.shared else None

    def check_on(self, edit: EditEndpoints, shape: BackboneShape) -> None:
        """Refuse an ``n`` that does not divide both widths."""
        ends = block_widths(edit, shape)
        if any(width % self.n for width in ends):
            got = f"n {self.n} for widths {ends[0]} and {ends[1]}"
            raise rule_error("V15", got, "Choose an n that divides them.")

    def count(self, edit: EditEndpoints, shape: BackboneShape) -> AffineCount:
        """Count the factors B of two matrices, C unless it is shared, and biases."""
        both, rank = sum(block_widths(edit, shape)), self.factor_rank
        own = 0 if self.shared else 2 * self.n**3
        return AffineCount(
            weights_per_width=both // self.n if rank is None else 2 * rank,
            weights=own + (0 if rank is None else rank * both),
            biases_per_width=int(self.bias),
            biases=block_widths(edit, shape)[1] if self.bias else 0,
        )

    def inference_weights(self, edit: EditEndpoints, shape: BackboneShape) -> AffineCount:
        """Return the two matrices that the products make."""
        return AffineCount(weights_per_width=sum(block_widths(edit, shape)))

    def pack_key(self) -> "Phm":
        """Return the form itself; products of different widths are not padded."""
        return self

    def display_name(self, edit: EditEndpoints) -> str:
        """Return ``PHM adapter`` with its activation and insertion."""
        return f"{activation_prefix(self.activation, Activation.GELU)}{insertion_word(edit)} PHM adapter"

    def formula(self, edit: EditEndpoints, shape: BackboneShape) -> str:
        """Return two matrices around the activation, with their products."""
        down, up = (" + b_down", " + b_up") if self.bias else ("", "")
        second = "B_j" if self.factor_rank is None else f"s_j t_jᵀ of rank {self.factor_rank}"
        cube = f"C: {self.n} × {self.n} × {self.n}{' for the whole model' if self.shared else ''}"
        delta = DeltaFormula(
            body=f"{self.activation}({normed_read_symbol(edit, shape)} W_down{down}) W_up",
            bias=up,
            matrices=f"{matrix_shapes(edit, shape, self.size)}, W = Σ_j C_j ⊗ {second}, {cube}",
        )
        return composed_formula(edit, shape, delta)
