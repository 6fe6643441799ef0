"""What a study wants: a high score alone, or with as little as possible of something that is known before training."""

import math
from dataclasses import dataclass
from enum import StrEnum

from studies.errors import StudiesError
from studies.records import RankedTrial

SMALLEST_SHARE = 0.125
"""Share of the largest size below which sizes are not told apart, unless a study searches smaller ones."""


class SizeMeasure(StrEnum):
    """What can be wanted; all but the score are known exactly before a trial is trained, and are to be small."""

    SCORE = "score"
    PARAMETERS = "parameters"
    EXTRA_FLOPS = "extra_flops"


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeScale:
    """How sizes are weighed against each other: every halving counts as much as the one before.

    Attributes:
        largest: Of a study: its budget in parameters, or the extra FLOPs of as many.
        smallest_share: Of it; sizes below are not told apart.

    Raises:
        StudiesError: If the largest is not above 0, or the share not in (0, 1].
    """

    largest: float
    smallest_share: float = SMALLEST_SHARE

    def __post_init__(self) -> None:
        """Check the ranges."""
        if not self.largest > 0 or not 0 < self.smallest_share <= 1:
            raise StudiesError(
                "a scale of sizes must have a largest one above 0 and a share of it in (0, 1]; "
                f"got {self.largest} and {self.smallest_share}."
            )

    def place(self, size: float) -> float:
        """Base-2 logarithm of a size as a share of the largest."""
        return max(self.low, math.log2(size / self.largest)) if size > 0 else self.low

    @property
    def low(self) -> float:
        """The place of the smallest."""
        return math.log2(self.smallest_share)

    @property
    def high(self) -> float:
        """Where fronts end, an octave above the largest: being best there is worth something, too."""
        return 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeGoal:
    """What is to be small, beside a high score.

    Attributes:
        objective: Any but the score.
        scale: How its sizes are weighed.
    """

    objective: SizeMeasure
    scale: SizeScale

    @classmethod
    def of(
        cls,
        objective: SizeMeasure,
        *,
        budget: int,
        smallest_share: float = SMALLEST_SHARE,
        max_extra_flops: int | None = None,
    ) -> "SizeGoal":
        """The goal of a study.

        Args:
            objective: Any but the score.
            budget: In parameters; each of them costs two FLOPs where nothing can be merged.
            smallest_share: The smallest size that is searched, as a share of the largest.
            max_extra_flops: The most that are allowed.
        """
        flops = 2 * budget if max_extra_flops is None else max(1, max_extra_flops)
        largest = flops if objective is SizeMeasure.EXTRA_FLOPS else budget
        return cls(objective=objective, scale=SizeScale(largest=largest, smallest_share=min(smallest_share, 0.5)))

    def size(self, trial: RankedTrial) -> float:
        """Of a trial; infinite where it is not known, so that it is held against nobody."""
        if self.objective is SizeMeasure.PARAMETERS:
            return trial.stored_parameters
        return math.inf if trial.extra_flops is None else trial.extra_flops
