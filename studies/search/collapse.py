"""Trials that learn nothing, or unlearn: further steps would be lost on them."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

_WORD = "collapsed: "

FEWEST = 4
"""Others that were measured after as many steps, before a trial is said to learn nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """What a trial had learned at a rung.

    Attributes:
        train: Mean training loss since the rung before.
        validation: Mean loss on the validation split; NaN where it was not measured.
    """

    train: float
    validation: float

    def is_a_guess(self, guessing: float | None) -> bool:
        """Whether both are no better than those of guessing by the frequencies of the labels.

        A constant prediction cannot be better, however sure it is.
        """
        return guessing is not None and self.train >= guessing and self.validation >= guessing

    def has_risen(self, first: "Losses") -> bool:
        """Whether both are above those at the first rung; each is a mean over many steps or examples."""
        return self.train > first.train and self.validation > first.validation


def collapse(
    now: Losses, first: Losses | None, others: Iterable[tuple[Losses, Losses | None]], guessing: float | None
) -> str | None:
    """Why a trial has collapsed; None if it has not, or if nobody can tell.

    Where many others are still as bad, learning may be slow to begin: then nothing is said of any.

    Args:
        now: Of the trial at this rung.
        first: Of the trial at the first rung; None if this is the first.
        others: The same two of every other trial at this rung.
        guessing: Loss of guessing by the frequencies of the labels; None where there are no labels.
    """
    reason = _reason(now, first, guessing)
    if reason is None:
        return None
    known = [_reason(*other, guessing) is None for other in others]
    return reason if len(known) >= FEWEST and 2 * sum(known) > len(known) else None


def has_collapsed(reason: str | None) -> bool:
    """Whether a trial was stopped for it, by the reason in the ledger."""
    return reason is not None and _WORD in reason


def _reason(now: Losses, first: Losses | None, guessing: float | None) -> str | None:
    if not math.isfinite(now.train + now.validation):
        return None
    if guessing is not None and now.is_a_guess(guessing):
        return f"{_WORD}its loss {now.validation:.4g} is no better than guessing, which has {guessing:.4g}"
    if first is not None and now.has_risen(first):
        return f"{_WORD}its training loss has risen from {first.train:.4g} to {now.train:.4g}"
    return None
