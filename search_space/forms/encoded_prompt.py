"""Encoded prompt: a prompt that a small network produces during training, which is P-tuning."""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from search_space.affine import linear_parameters
from search_space.backbones.shape import BackboneShape
from search_space.edit_protocol import EditEndpoints
from search_space.forms.prompt import PromptForm
from search_space.rules import check_positive_integer


class PromptEncoder(StrEnum):
    """Network that produces a prompt during training (P-tuning)."""

    MLP = "mlp"
    LSTM = "lstm"


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedPrompt(PromptForm):
    """A prompt that a small network produces during training; only the rows are stored (Liu et al. 2021, P-tuning).

    ``MLP``: Linear(d, h), ReLU, Linear(h, h), ReLU, Linear(h, d). ``LSTM``: two bidirectional layers (d -> h per
    direction), Linear(2h, 2h), ReLU, Linear(2h, d).

    Attributes:
        width: Number of rows, the prompt length l. At least 1.
        encoder: Kind of network.
        hidden: Hidden width h of the network.

    Raises:
        InvalidEditError: If a size is out of range.
    """

    name: ClassVar[str] = "encoded_prompt"
    learning_rates: ClassVar[tuple[float, float]] = (3e-4, 1e-2)

    width: int
    encoder: PromptEncoder = PromptEncoder.MLP
    hidden: int = 128

    def __post_init__(self) -> None:
        """Check the sizes."""
        PromptForm.__post_init__(self)
        check_positive_integer(self.hidden, "the hidden width of a prompt encoder")

    @property
    def variant(self) -> str | None:
        """Kind of network."""
        return f"from {self.encoder}"

    def training_surplus(self, edit: EditEndpoints, shape: BackboneShape) -> int:
        """Count the network that produces the rows."""
        width, hidden = shape.width, self.hidden
        if self.encoder is PromptEncoder.MLP:
            return (
                linear_parameters(width, hidden) + linear_parameters(hidden, hidden) + linear_parameters(hidden, width)
            )
        lstm = sum(2 * (4 * hidden * (inputs + hidden) + 8 * hidden) for inputs in (width, 2 * hidden))
        return lstm + linear_parameters(2 * hidden, 2 * hidden) + linear_parameters(2 * hidden, width)

    def describe(self, edit: EditEndpoints) -> str:
        """Return the name with the network."""
        return f"{self.display_name(edit)}{self.size_suffix} from an {self.encoder.upper()} before the input"

    def formula(self, edit: EditEndpoints, shape: BackboneShape) -> str:
        """Return the concatenation of rows, with the network's layers."""
        width, hidden = shape.width, self.hidden
        layers = f"MLP of {width}, {hidden}, {hidden}, {width}"
        if self.encoder is PromptEncoder.LSTM:
            layers = f"bidirectional LSTM of {width}, 2 × {hidden}, 2 × {hidden}; MLP of {2 * hidden}, {width}"
        return f"input <- [E(P), input]; P: {self.width} × {width}, E: {layers}, dropped after training"
