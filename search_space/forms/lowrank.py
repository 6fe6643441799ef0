"""Low rank: a linear map of low rank, which is LoRA."""

from dataclasses import dataclass
from typing import ClassVar

from search_space.dimensions import Heads
from search_space.forms.form import SizedForm, check_size


@dataclass(frozen=True, slots=True, kw_only=True)
class LowRank(SizedForm):
    """A linear map of low rank: ``z A B``, A (D_in, R), B (R, D_out); B starts at zero (LoRA).

    Attributes:
        width: Rank R. At least 1.
        widened: How many sublayers, counted from the output, have one rank more.
        heads: One map, or one per head.
        bias: Whether the output has a bias (the code of Chen et al. 2022 for generation).

    Raises:
        InvalidEditError: If a size is out of range.
    """

    name: ClassVar[str] = "lowrank"

    width: int
    widened: int = 0
    heads: Heads = Heads.SINGLE
    bias: bool = False

    def __post_init__(self) -> None:
        """Check the sizes."""
        check_size(self)
