"""How long texts are in tokens, and which largest length leaves most of them whole."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trial_runner.huggingface import quiet_transformers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_STEP = 8
_WHOLE = 0.98
"""Share of the texts that a proposed length leaves whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Tokens of some texts, special ones among them.

    Attributes:
        tokens: Ascending, at least one.
    """

    tokens: tuple[int, ...]

    def quantile(self, share: float) -> int:
        """The smallest length that so large a share of the texts do not exceed."""
        return self.tokens[min(len(self.tokens) - 1, max(0, -int(-share * len(self.tokens) // 1) - 1))]

    def share_cut(self, longest: int) -> float:
        """Share of the texts that are longer."""
        return sum(length > longest for length in self.tokens) / len(self.tokens)

    def proposed(self, *, most: int) -> int:
        """A multiple of 8 that leaves 98 in 100 texts whole, if it is not above ``most``; at least 8."""
        wanted = -(-self.quantile(_WHOLE) // _STEP) * _STEP
        return max(_STEP, min(wanted, most))


def longest(lengths: Sequence[Lengths]) -> Lengths:
    """Those of several splits of which most are longest."""
    return max(lengths, key=lambda each: (each.quantile(_WHOLE), each.tokens[-1]))


def token_lengths(tokenizer: "PreTrainedTokenizerFast", columns: Sequence[Sequence[str]], *, extra: int = 0) -> Lengths:
    """The lengths of texts, or of pairs.

    Args:
        columns: The texts; of pairs also the second ones.
        extra: Tokens that the task adds to each.
    """
    with quiet_transformers():
        ids = tokenizer(*(list(column) for column in columns), truncation=False, padding=False)["input_ids"]
    return Lengths(tokens=tuple(sorted(len(row) + extra for row in ids)))
