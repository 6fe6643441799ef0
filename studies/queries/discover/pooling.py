"""Effects of several studies as one: a random-effects mean."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from studies.queries.discover.answer import LEVEL


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooled:
    """The mean of effects that differ from study to study.

    Attributes:
        mean: Of the distribution of effects.
        low: Lower end of its 90% interval.
        high: Upper end.
        between: Standard deviation of the effects over studies.
        studies: How many.
    """

    mean: float
    low: float
    high: float
    between: float
    studies: int

    @property
    def is_resolved(self) -> bool:
        """Whether the interval does not hold zero."""
        return self.low > 0 or self.high < 0


def pooled(means: Sequence[float], deviations: Sequence[float]) -> Pooled:
    """The random-effects mean of DerSimonian and Laird 1986, with the interval of Hartung and Knapp 2001.

    Its width is never below that of the fixed-effect interval, as Röver et al. 2015 advise for few studies.

    Args:
        means: Effect of every study; at least one.
        deviations: Their standard errors, above 0.
    """
    from scipy.stats import norm, t  # type: ignore[import-untyped]

    count = len(means)
    variances = [deviation**2 for deviation in deviations]
    between = _between(means, variances)
    weights = [1 / (variance + between) for variance in variances]
    total = sum(weights)
    mean = sum(weight * one for weight, one in zip(weights, means, strict=True)) / total
    error = math.sqrt(1 / total)
    quantile = float(norm.ppf((1 + LEVEL) / 2))
    if count > 1:
        spread = sum(weight * (one - mean) ** 2 for weight, one in zip(weights, means, strict=True)) / (count - 1)
        error *= math.sqrt(max(1.0, spread))
        quantile = float(t.ppf((1 + LEVEL) / 2, count - 1))
    return Pooled(
        mean=mean,
        low=mean - quantile * error,
        high=mean + quantile * error,
        between=math.sqrt(between),
        studies=count,
    )


def _between(means: Sequence[float], variances: Sequence[float]) -> float:
    """The variance of effects over studies, by moments."""
    weights = [1 / variance for variance in variances]
    total = sum(weights)
    fixed = sum(weight * one for weight, one in zip(weights, means, strict=True)) / total
    q = sum(weight * (one - fixed) ** 2 for weight, one in zip(weights, means, strict=True))
    left = total - sum(weight**2 for weight in weights) / total
    return max(0.0, (q - (len(means) - 1)) / left) if left > 0 else 0.0
