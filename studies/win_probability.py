"""Probability that a running trial is worth its training."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WinProbability:
    """Probability that a trial beats its rival.

    Attributes:
        rival: Number of the trial to beat.
        is_published: Whether the rival is the best published method of the study; else it is the best other trial.
        chance: Probability that the trial's true score at full length is higher than the rival's.
    """

    rival: int
    is_published: bool
    chance: float
