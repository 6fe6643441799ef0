"""Sparse: a change of few weights, whose places are learned, which is diff pruning."""

from dataclasses import dataclass
from typing import ClassVar

from search_space.forms.form import SizedForm, check_size


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparse(SizedForm):
    """A sparse change of the backbone's weights, whose places are learned: diff pruning (Guo et al. 2021).

    ``theta = theta_0 + z w`` with hard-concrete gates z per weight and per tensor; then the ``width`` largest changes
    are kept and trained on.

    Attributes:
        width: Number of weights that are changed in the end.

    Raises:
        InvalidEditError: If it is out of range.
    """

    name: ClassVar[str] = "sparse"

    width: int

    def __post_init__(self) -> None:
        """Check the size."""
        check_size(self)
