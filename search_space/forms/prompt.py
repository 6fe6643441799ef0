"""Prompt: trained rows before the embedded input."""

from dataclasses import dataclass
from typing import ClassVar

from search_space.affine import AffineCount
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Site
from search_space.edit_protocol import Ends
from search_space.forms.form import SizedForm

SEQUENCE_TOKENS = 128
"""Tokens of an input that share the cost of a prompt before it."""


def weights_of_a_row(shape: BackboneShape) -> int:
    """Weights that a token meets for one row before its input: its part of the row's way through the blocks.

    In every layer the token and the row attend to each other.
    """
    layers = shape.encoder_layers or shape.decoder_layers
    attention = 2 * shape.width * (shape.query_width + shape.key_value_width)
    ffn = (2 + shape.gated_ffn) * shape.width * shape.ffn_width
    return layers * ((attention + ffn) // SEQUENCE_TOKENS + 4 * shape.query_width)


class PromptForm(SizedForm):
    """Rows before the embedded input, which are tokens in every layer."""

    __slots__ = ()

    letter: ClassVar[str] = "l"
    outside: ClassVar[Site | None] = Site.EMBEDDING
    reads: ClassVar[bool] = False
    unmergeable: ClassVar[str | None] = "its rows are tokens of every layer"
    can_widen: ClassVar[bool] = False
    starts_at_zero: ClassVar[bool] = False

    def count(self, edit: Ends, shape: BackboneShape) -> AffineCount:
        """The rows."""
        return AffineCount(weights_per_width=shape.width)

    def weights_met(self, edit: Ends, shape: BackboneShape) -> AffineCount:
        """Rows are tokens in every layer, whatever network made them."""
        return AffineCount(weights_per_width=weights_of_a_row(shape))

    def words(self, edit: Ends) -> str:
        """With where it is."""
        return f"{self.noun(edit)}{self.sized} before the input"

    def noun(self, edit: Ends) -> str:
        """Its name, whatever network made it."""
        return "prompt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt(PromptForm):
    """Trained rows before the embedded input (Lester et al. 2021).

    Attributes:
        width: Number of rows, the prompt length l. At least 1.

    Raises:
        InvalidEditError: If it is out of range.
    """

    name: ClassVar[str] = "prompt"
    learning_rates: ClassVar[tuple[float, float]] = (1e-2, 3e-1)

    width: int

    def formula(self, edit: Ends, shape: BackboneShape) -> str:
        """Rows before rows."""
        return f"input <- [P, input]; P: {self.width} × {shape.width}"
