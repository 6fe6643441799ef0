"""Prompt: trained rows before the embedded input."""

from dataclasses import dataclass
from typing import ClassVar

from search_space.affine import AffineCount
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Site
from search_space.edit_protocol import EditEndpoints
from search_space.forms.form import PeftKind, SizedForm

SEQUENCE_TOKENS = 128
"""Length of an input, in tokens, over which the cost of a prompt is averaged."""


def inference_weights_per_row(shape: BackboneShape) -> int:
    """Return the weights per token that one prompt row costs: its share of the row's pass through the blocks.

    In every layer the token and the row attend to each other.
    """
    layers = shape.encoder_layers or shape.decoder_layers
    attention = 2 * shape.width * (shape.query_width + shape.key_value_width)
    ffn = (2 + shape.gated_ffn) * shape.width * shape.ffn_width
    return layers * ((attention + ffn) // SEQUENCE_TOKENS + 4 * shape.query_width)


class PromptForm(SizedForm):
    """Rows before the embedded input, which are tokens in every layer."""

    __slots__ = ()

    size_symbol: ClassVar[str] = "l"
    peft: ClassVar[PeftKind | None] = PeftKind.PROMPT
    outside_site: ClassVar[Site | None] = Site.EMBEDDING
    reads: ClassVar[bool] = False
    unmergeable_reason: ClassVar[str | None] = "its rows are tokens of every layer"
    can_widen: ClassVar[bool] = False
    starts_at_zero: ClassVar[bool] = False

    def count(self, edit: EditEndpoints, shape: BackboneShape) -> AffineCount:
        """Count the rows."""
        return AffineCount(weights_per_width=shape.width)

    def inference_weights(self, edit: EditEndpoints, shape: BackboneShape) -> AffineCount:
        """Return the cost of the rows as tokens of every layer."""
        return AffineCount(weights_per_width=inference_weights_per_row(shape))

    def describe(self, edit: EditEndpoints) -> str:
        """Return the name with its size and position."""
        return f"{self.display_name(edit)}{self.size_suffix} before the input"

    def display_name(self, edit: EditEndpoints) -> str:
        """Return ``prompt``."""
        return "prompt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt(PromptForm):
    """Trained rows before the embedded input (Lester et al. 2021).

    Attributes:
        width: Number of rows, the prompt length l. At least 1.

    Raises:
        InvalidEditError: If the length is out of range.
    """

    name: ClassVar[str] = "prompt"
    learning_rates: ClassVar[tuple[float, float]] = (1e-2, 3e-1)

    width: int

    def formula(self, edit: EditEndpoints, shape: BackboneShape) -> str:
        """Return the concatenation of rows."""
        return f"input <- [P, input]; P: {self.width} × {shape.width}"
