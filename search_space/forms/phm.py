"""Kronecker products: a bottleneck of few parameters, which is Compacter."""

from dataclasses import dataclass
from typing import ClassVar

from search_space.dimensions import Activation
from search_space.errors import InvalidEditError
from search_space.forms.form import SizedForm, check_size, is_whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Phm(SizedForm):
    """A bottleneck of sums of Kronecker products: ``W = sum_i C_i (x) B_i``, C_i (n, n), B_i (D_in/n, D_out/n).

    Compacter (Karimi Mahabadi et al. 2021): C shared by the whole model and ``B_i = s_i t_i^T`` of low rank.

    Attributes:
        width: Hidden width R, a multiple of ``n``.
        widened: How many sublayers, counted from the output, have ``n`` hidden units more.
        n: Number of products, and size of C_i.
        factor_rank: Rank of B_i; None for full matrices.
        shared: Whether all edits of the configuration with this ``n`` share one C; else each projection has one.
        activation: Nonlinearity of the hidden units.
        bias: Whether both projections have a bias.

    Raises:
        InvalidEditError: If a size is out of range.
    """

    name: ClassVar[str] = "phm"

    width: int
    widened: int = 0
    n: int = 4
    factor_rank: int | None = 1
    shared: bool = True
    activation: Activation = Activation.GELU
    bias: bool = True

    def __post_init__(self) -> None:
        """Check the sizes."""
        check_size(self)
        if not (is_whole(self.n) and self.n >= 1 and self.width % self.n == 0):
            raise InvalidEditError(
                f"a phm bottleneck must be a multiple of n, at least 1; got {self.width} and n {self.n!r}.", rule="V15"
            )
        if self.factor_rank is not None and not (is_whole(self.factor_rank) and self.factor_rank >= 1):
            raise InvalidEditError(
                f"the rank of phm factors must be a whole number of at least 1; got {self.factor_rank!r}.",
                rule="width",
            )

    @property
    def width_step(self) -> int:
        """A bottleneck has a whole number of rows for each of the products."""
        return self.n
