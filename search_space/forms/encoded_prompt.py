"""Encoded prompt: a prompt that a small network makes while it is trained, which is P-tuning."""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from search_space.errors import InvalidEditError
from search_space.forms.form import SizedForm, check_size, is_whole


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
        encoder: Which network.
        hidden: Its hidden width h.

    Raises:
        InvalidEditError: If a size is out of range.
    """

    name: ClassVar[str] = "encoded_prompt"

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
