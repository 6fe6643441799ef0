"""Prompt: trained rows before the embedded input."""

from dataclasses import dataclass
from typing import ClassVar

from search_space.affine import AffineCount
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Site
from search_space.ends import Ends
from search_space.forms.form import FormedEdit, SizedForm, check_size


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt(SizedForm):
    """Trained rows before the embedded input (Lester et al. 2021). They are tokens in every layer.

    Attributes:
        width: Number of rows, the prompt length l. At least 1.

    Raises:
        InvalidEditError: If it is out of range.
    """

    name: ClassVar[str] = "prompt"
    learning_rates: ClassVar[tuple[float, float]] = (1e-2, 3e-1)
    outside: ClassVar[Site | None] = Site.EMBEDDING
    reads: ClassVar[bool] = False
    can_widen: ClassVar[bool] = False

    width: int

    def __post_init__(self) -> None:
        """Check the size."""
        check_size(self)

    @property
    def starts_at_zero(self) -> bool:
        """No: its rows are tokens."""
        return False

    def count(self, edit: Ends, shape: BackboneShape) -> AffineCount:
        """The rows."""
        return AffineCount(weights_per_width=shape.width)

    def words(self, edit: FormedEdit) -> str:
        """With where it is."""
        return f"{self.noun(edit)} of {self.size} before the input"

    def noun(self, edit: FormedEdit) -> str:
        """Its name."""
        return "prompt"

    def formula(self, edit: FormedEdit, shape: BackboneShape) -> str:
        """Rows before rows."""
        return f"input <- [P, input]; P: {self.width} × {shape.width}"
