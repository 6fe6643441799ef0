"""Softmax memory: attention over a trained table, which is prefix tuning at the heads."""

from dataclasses import dataclass
from typing import ClassVar

from search_space.dimensions import Heads
from search_space.forms.form import SizedForm, check_reparameterization, check_size


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftmaxMemory(SizedForm):
    """Attention over a trained table: ``softmax(z P_k^T / sqrt(D_in)) P_v``, P_k (R, D_in), P_v (R, D_out).

    With the convex gate at the heads this is prefix tuning (Li & Liang 2021; He et al. 2022, eq. 7).

    Attributes:
        width: Rows R of the table; `l` of prefix tuning. At least 1.
        widened: How many sublayers, counted from the output, have one row more.
        heads: One table, or one per head.
        reparameterization: Hidden width of the MLP that produces the table during training; None trains the
            table itself. The MLP is dropped afterwards, so it is in the trained count but not in the stored one.
        robust: Whether a second table, added to the first and tuned anew for every batch that is predicted, pulls
            the layers' activations towards those of correctly predicted training examples (Yang & Liu 2022).

    Raises:
        InvalidEditError: If a size is out of range.
    """

    name: ClassVar[str] = "softmax_memory"

    width: int
    widened: int = 0
    heads: Heads = Heads.SINGLE
    reparameterization: int | None = None
    robust: bool = False

    def __post_init__(self) -> None:
        """Check the sizes."""
        check_size(self)
        check_reparameterization(self)
