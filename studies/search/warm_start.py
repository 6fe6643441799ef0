"""Warm start of a study from earlier ones, stored when the study is created and never changed."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from studies.score_evidence import Estimate
from studies.surrogate.features import unit_lr_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedRate:
    """Log-normal distribution of the best learning rate of a form.

    Attributes:
        rate: Median.
        deviation: Standard deviation of the natural logarithm; above 0.
    """

    rate: float
    deviation: float

    def __post_init__(self) -> None:
        """Check the numbers."""
        if not (self.rate > 0 and self.deviation > 0):
            raise ValueError(
                f"an expected rate and its deviation must be above 0; got {self.rate} and {self.deviation}"
            )

    def place(self, low: float, high: float) -> Estimate:
        """Return the position in a range, from -1 at its low end to 1 at its high end on a logarithmic scale."""
        if low == high:
            return Estimate(mean=0.0, deviation=1.0)
        inside = unit_lr_of(min(max(self.rate, low), high), low, high)
        return Estimate(mean=inside, deviation=2 * self.deviation / math.log(high / low))


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmStartTrial:
    """Configuration of an earlier study that is tried first.

    Attributes:
        study: Name of the earlier study.
        trial: Number of the trial there.
        proposal: Parameters with which the new study's space proposes it.
    """

    study: str
    trial: int
    proposal: Mapping[str, str | float]


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmStart:
    """Configurations and learning rates from earlier studies.

    Attributes:
        sources: Names of the earlier studies at that time.
        starts: First trials, the most promising one first.
        replaced: Published methods whose places in the initial design the first trials take.
        rates: Expected best learning rate by form.
    """

    sources: tuple[str, ...] = ()
    starts: tuple[WarmStartTrial, ...] = ()
    replaced: tuple[str, ...] = ()
    rates: Mapping[str, ExpectedRate] = field(default_factory=dict)

    def expected_rates(self, ranges: Mapping[str, tuple[float, float]]) -> dict[str, Estimate]:
        """Return the expected best learning rates as positions in some ranges, by form."""
        known = self.rates.items()
        return {form: rate.place(*ranges[form]) for form, rate in known if form in ranges}


def warm_start_from_json(stored: Mapping[str, Any]) -> WarmStart:
    """Return the warm start of a stored study file, which was validated when it was read."""
    return TypeAdapter(WarmStart).validate_python(stored)
