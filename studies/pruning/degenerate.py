"""Trials that predict a constant, or unlearn: further steps would be lost on them."""

import math
from collections.abc import Iterable

from trial_runner.requests import Reading
from trial_runner.tasks import SAME_PREDICTION

COLLAPSED = "collapsed: "
"""How the reason of a trial begins that was stopped for it."""

FEWEST = 4
"""Others that were measured after as many steps, before a trial is said to have collapsed."""

RISE = 1.03
"""How many times as high as at the first rung losses are that have risen; less is the luck of the batches."""


def collapse(
    now: Reading, first: Reading | None, others: Iterable[tuple[Reading, Reading | None]], guessing: float | None
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


def _reason(now: Reading, first: Reading | None, guessing: float | None) -> str | None:
    """Whether a trial predicts a constant and no loss is better than guessing, or both have risen; as a reason.

    A constant prediction cannot have a better loss, however sure it is; one that begins to learn can.
    """
    losses = _losses(now)
    if now.metrics.get(SAME_PREDICTION) == 1 and (guessing is None or all(loss >= guessing for loss in losses)):
        beside = "" if guessing is None else f", and guessing has {guessing:.4g}"
        return f"{COLLAPSED}all its predictions are the same, its loss is {losses[1]:.4g}{beside}"
    if first is not None and all(loss > RISE * early for loss, early in zip(losses, _losses(first), strict=True)):
        return f"{COLLAPSED}its training loss has risen from {first.train_loss:.4g} to {now.train_loss:.4g}"
    return None


def _losses(reading: Reading) -> tuple[float, float]:
    """Of the training since the rung before, and of the validation split, NaN where that was not measured."""
    return reading.train_loss, reading.metrics.get("validation_loss", math.nan)
