"""Detection of collapsed trials: constant predictions, or rising losses."""

import math
from collections.abc import Iterable

from trial_runner.requests import Reading
from trial_runner.tasks import SAME_PREDICTION

COLLAPSED = "collapsed: "
"""Prefix of the reason of a trial stopped because it collapsed."""

FEWEST = 4
"""Number of other trials at the rung from which on a trial can count as collapsed."""

RISE = 1.03
"""Factor over the loss at the first rung from which on a loss counts as risen; less is noise of the batches."""


def collapse(
    now: Reading, first: Reading | None, others: Iterable[tuple[Reading, Reading | None]], guessing: float | None
) -> str | None:
    """Return the reason why a trial has collapsed; None if it has not, or if it cannot be decided.

    If most others are as bad, learning may only be slow to begin, and no trial counts as collapsed.

    Args:
        now: Reading of the trial at this rung.
        first: Reading of the trial at the first rung; None if this is the first.
        others: The same two readings of every other trial at this rung.
        guessing: Loss of guessing by the frequencies of the labels; None without labels.
    """
    reason = _reason(now, first, guessing)
    if reason is None:
        return None
    known = [_reason(*other, guessing) is None for other in others]
    return reason if len(known) >= FEWEST and 2 * sum(known) > len(known) else None


def has_collapsed(reason: str | None) -> bool:
    """Return whether a trial was stopped because it collapsed, by its recorded reason."""
    return reason is not None and COLLAPSED in reason


def _reason(now: Reading, first: Reading | None, guessing: float | None) -> str | None:
    """Return a reason if predictions are constant and no loss beats guessing, or if both losses have risen.

    A constant prediction cannot have a better loss than guessing; a trial that begins to learn can.
    """
    losses = _losses(now)
    if now.metrics.get(SAME_PREDICTION) == 1 and (guessing is None or all(loss >= guessing for loss in losses)):
        guess = "" if guessing is None else f", and guessing has {guessing:.4g}"
        return f"{COLLAPSED}all its predictions are the same, its loss is {losses[1]:.4g}{guess}"
    if first is not None and all(loss > RISE * early for loss, early in zip(losses, _losses(first), strict=True)):
        return f"{COLLAPSED}its training loss has risen from {first.train_loss:.4g} to {now.train_loss:.4g}"
    return None


def _losses(reading: Reading) -> tuple[float, float]:
    """Return the training loss since the last rung and the validation loss, NaN where it was not measured."""
    return reading.train_loss, reading.metrics.get("validation_loss", math.nan)
