"""How probable it is that a trial which has begun will have been worth its training."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WinProbability:
    """What is to be expected of a trial.

    Attributes:
        rival: Number of the trial that it is to beat.
        is_published: Whether that is the best published method of the study; else it is the best of all other trials.
        chance: The probability that the trial is truly better than its rival, both at full length.
    """

    rival: int
    is_published: bool
    chance: float
