"""Encoded prompt: a prompt that a small network makes while it is trained, which is P-tuning."""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from search_space.affine import AffineCount, linear
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Site
from search_space.edit_protocol import Ends
from search_space.errors import InvalidEditError
from search_space.forms.form import FormedEdit, SizedForm, check_size, is_whole
from search_space.forms.prompt import weights_of_a_row


class PromptEncoder(StrEnum):
    """The network that produces a prompt while it is trained (P-tuning)."""

    MLP = "mlp"
    LSTM = "lstm"


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedPrompt(SizedForm):
    """A prompt that a small network produces while it is trained; only the rows are stored (Liu et al. 2021, P-tuning).

    ``MLP``: Linear(d, h), ReLU, Linear(h, h), ReLU, Linear(h, d). ``LSTM``: two bidirectional layers (d -> h per
    direction), Linear(2h, 2h), ReLU, Linear(2h, d).

    Attributes:
        width: Number of rows, the prompt length l. At least 1.
        hidden: Its hidden width h.

    Raises:
        InvalidEditError: If a size is out of range.
    """

    name: ClassVar[str] = "encoded_prompt"
    letter: ClassVar[str] = "l"
    learning_rates: ClassVar[tuple[float, float]] = (3e-4, 1e-2)
    outside: ClassVar[Site | None] = Site.EMBEDDING
    reads: ClassVar[bool] = False
    unmergeable: ClassVar[str | None] = "its rows are tokens of every layer"
    can_widen: ClassVar[bool] = False

    width: int
    encoder: PromptEncoder = PromptEncoder.MLP
    hidden: int = 128

    def __post_init__(self) -> None:
        """Check the sizes."""
        check_size(self)
        if not (is_whole(self.hidden) and self.hidden >= 1):
            raise InvalidEditError(
                f"the hidden width of a prompt encoder must be a whole number of at least 1; got {self.hidden!r}.",
                rule="width",
            )

    @property
    def starts_at_zero(self) -> bool:
        """No: its rows are tokens."""
        return False

    @property
    def variant(self) -> str | None:
        """What makes it."""
        return f"from {self.encoder}"

    def count(self, edit: Ends, shape: BackboneShape) -> AffineCount:
        """The rows."""
        return AffineCount(weights_per_width=shape.width)

    def weights_met(self, edit: Ends, shape: BackboneShape) -> AffineCount:
        """Those of a prompt: the network has made its rows by then."""
        return AffineCount(weights_per_width=weights_of_a_row(shape))

    def training_surplus(self, edit: Ends, shape: BackboneShape) -> int:
        """The network that makes the rows."""
        width, hidden = shape.width, self.hidden
        if self.encoder is PromptEncoder.MLP:
            return linear(width, hidden) + linear(hidden, hidden) + linear(hidden, width)
        lstm = sum(2 * (4 * hidden * (inputs + hidden) + 8 * hidden) for inputs in (width, 2 * hidden))
        return lstm + linear(2 * hidden, 2 * hidden) + linear(2 * hidden, width)

    def words(self, edit: FormedEdit) -> str:
        """With what makes it, and where it is."""
        return f"{self.noun(edit)}{self.sized} from an {self.encoder.upper()} before the input"

    def noun(self, edit: FormedEdit) -> str:
        """As without an encoder."""
        return "prompt"

    def formula(self, edit: FormedEdit, shape: BackboneShape) -> str:
        """Rows before rows, and what makes them."""
        width, hidden = shape.width, self.hidden
        layers = f"MLP of {width}, {hidden}, {hidden}, {width}"
        if self.encoder is PromptEncoder.LSTM:
            layers = f"bidirectional LSTM of {width}, 2 × {hidden}, 2 × {hidden}; MLP of {2 * hidden}, {width}"
        return f"input <- [E(P), input]; P: {self.width} × {width}, E: {layers}, dropped after training"
