"""What a study learned from earlier ones when it was begun. It is stored with the study and never changes."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from studies.score_evidence import Estimate
from studies.surrogate.features import unit_lr_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedRate:
    """Where the best learning rate of a form is expected: a log-normal distribution.

    Attributes:
        rate: Its median.
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
        """In a range of rates, from -1 at its low end to 1 at its high one, on a logarithmic scale."""
        if low == high:
            return Estimate(mean=0.0, deviation=1.0)
        inside = unit_lr_of(min(max(self.rate, low), high), low, high)
        return Estimate(mean=inside, deviation=2 * self.deviation / math.log(high / low))


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmStartTrial:
    """A configuration that an earlier study would bet on.

    Attributes:
        study: Name of the study that tried it.
        trial: Its number there.
        proposal: The parameters with which the space of the new study proposes it.
    """

    study: str
    trial: int
    proposal: Mapping[str, str | float]


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmStart:
    """What was learned.

    Attributes:
        sources: Names of the earlier studies, as they were then.
        starts: What is tried first, the most promising one first.
        replaced: Published methods whose places among the first trials the starts take.
        rates: By form, where its best rate is expected.
    """

    sources: tuple[str, ...] = ()
    starts: tuple[WarmStartTrial, ...] = ()
    replaced: tuple[str, ...] = ()
    rates: Mapping[str, ExpectedRate] = field(default_factory=dict)

    def places(self, ranges: Mapping[str, tuple[float, float]]) -> dict[str, Estimate]:
        """Where the best rates are expected within some ranges, by form."""
        known = self.rates.items()
        return {form: rate.place(*ranges[form]) for form, rate in known if form in ranges}


def lessons_from_json(stored: Mapping[str, Any]) -> WarmStart:
    """The lessons of a study file that was stored, which was checked when it was read."""
    return TypeAdapter(WarmStart).validate_python(stored)
