"""Prompt: trained rows before the embedded input."""

from dataclasses import dataclass
from typing import ClassVar

from search_space.forms.form import SizedForm, check_size


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt(SizedForm):
    """Trained rows before the embedded input (Lester et al. 2021). They are tokens in every layer.

    Attributes:
        width: Number of rows, the prompt length l. At least 1.

    Raises:
        InvalidEditError: If it is out of range.
    """

    name: ClassVar[str] = "prompt"

    width: int

    def __post_init__(self) -> None:
        """Check the size."""
        check_size(self)
