"""Objectives of a study: the score alone, or the score and a size that is known before training."""

import math
from dataclasses import dataclass
from enum import StrEnum

from studies.errors import StudiesError
from studies.records import RankedTrial

SMALLEST_SHARE = 0.125
"""Share of the largest size below which all sizes count as equal, unless a study searches smaller ones."""


class SizeMeasure(StrEnum):
    """Objectives; all but the score are known exactly before training and are minimized."""

    SCORE = "score"
    PARAMETERS = "parameters"
    EXTRA_FLOPS = "extra_flops"

    def of(self, trial: RankedTrial) -> float:
        """Return a size of a trial; infinite if it is unknown."""
        if self is SizeMeasure.PARAMETERS:
            return trial.stored_parameters
        return math.inf if trial.extra_flops is None else trial.extra_flops


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeScale:
    """Logarithmic scale of sizes: every halving counts equally.

    Attributes:
        largest: Largest size of a study: its budget in parameters, or the extra FLOPs of as many.
        smallest_share: Share of the largest size below which all sizes count as equal.

    Raises:
        StudiesError: If the largest size is not above 0, or the share not in (0, 1].
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
        """Return the base-2 logarithm of a size as a share of the largest."""
        return max(self.low, math.log2(size / self.largest)) if size > 0 else self.low

    @property
    def low(self) -> float:
        """Position of the smallest size."""
        return math.log2(self.smallest_share)

    @property
    def high(self) -> float:
        """Position of the reference of fronts, an octave above the largest size; a better score there counts, too."""
        return 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeGoal:
    """Size to be minimized beside the score.

    Attributes:
        objective: Measure of the size.
        scale: Scale of its sizes.
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
        """Return the goal of a study.

        Args:
            objective: Measure of the size.
            budget: Budget in parameters; each costs two FLOPs where nothing can be merged.
            smallest_share: Smallest size of the search as a share of the largest.
            max_extra_flops: Largest number of extra FLOPs allowed.
        """
        flops = 2 * budget if max_extra_flops is None else max(1, max_extra_flops)
        largest = flops if objective is SizeMeasure.EXTRA_FLOPS else budget
        return cls(objective=objective, scale=SizeScale(largest=largest, smallest_share=min(smallest_share, 0.5)))

    def size(self, trial: RankedTrial) -> float:
        """Return the size of a trial; infinite if it is unknown."""
        return self.objective.of(trial)
