"""Trials that predict a constant, or unlearn: further steps would be lost on them."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from trial_runner.requests import Reading
from trial_runner.tasks import SAME_PREDICTION

COLLAPSED = "collapsed: "
"""How the reason of a trial begins that was stopped for it."""

FEWEST = 4
"""Others that were measured after as many steps, before a trial is said to have collapsed."""

RISE = 1.03
"""How many times as high as at the first rung losses are that have risen; less is the luck of the batches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What a trial had learned at a rung.

    Attributes:
        train: Mean training loss since the rung before.
        validation: Mean loss on the validation split; NaN where it was not measured.
        same: Share of the validation examples that get the most frequent prediction; NaN where nothing was predicted.
    """

    train: float
    validation: float
    same: float = math.nan

    @classmethod
    def of(cls, reading: Reading) -> Self:
        """Of what was measured."""
        validation, same = (reading.metrics.get(name, math.nan) for name in ("validation_loss", SAME_PREDICTION))
        return cls(train=reading.train_loss, validation=validation, same=same)

    def is_a_guess(self, guessing: float | None) -> bool:
        """Whether it predicts a constant, and both losses are no better than guessing by the frequencies of the labels.

        A constant prediction cannot have a better loss, however sure it is; one that begins to learn can.
        """
        is_no_better = guessing is None or (self.train >= guessing and self.validation >= guessing)
        return self.same == 1 and is_no_better

    def has_risen(self, first: "Learned") -> bool:
        """Whether both losses are above those at the first rung; each is a mean over many steps or examples."""
        return self.train > RISE * first.train and self.validation > RISE * first.validation


def collapse(
    now: Learned, first: Learned | None, others: Iterable[tuple[Learned, Learned | None]], guessing: float | None
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
    return reason is not None and COLLAPSED in reason


def _reason(now: Learned, first: Learned | None, guessing: float | None) -> str | None:
    if now.is_a_guess(guessing):
        beside = "" if guessing is None else f", and guessing has {guessing:.4g}"
        return f"{COLLAPSED}all its predictions are the same, its loss is {now.validation:.4g}{beside}"
    if first is not None and now.has_risen(first):
        return f"{COLLAPSED}its training loss has risen from {first.train:.4g} to {now.train:.4g}"
    return None
