"""Learning rates of the task head, for searches that know nothing of them: near those that did well, or anywhere."""

import math
import random
from collections.abc import Sequence

from studies.records import TrialState
from studies.seeds import hashed_seed
from studies.surrogate.observation import Observation

_ANYWHERE = 1 / 3
"""Share of the trials whose rate is drawn from the whole range."""
_NEAR = 0.35
"""Deviation of the natural logarithm of the others from that of a trial that did well."""
_WELL = 4
"""One trial of so many did well."""


def head_rate(history: Sequence[Observation], bounds: tuple[float, float], seed: int, number: int) -> float:
    """Peak learning rate of a trial's head.

    Args:
        history: The trials so far; those that are complete and have a rate of their own tell of it.
        bounds: Lowest and highest rate.
        seed: Of the study.
        number: Of the trial.
    """
    low, high = bounds
    draw = random.Random(hashed_seed("head rate", seed, number))
    anywhere = math.exp(draw.uniform(math.log(low), math.log(high)))
    tried = [(rate, one) for one in history if (rate := one.head_learning_rate) and one.state is TrialState.COMPLETE]
    scores = [
        (rate, max(one.readings, key=lambda read: read.fraction).score, one.number)
        for rate, one in tried
        if one.readings
    ]
    ranked = sorted(scores, key=lambda one: (-one[1], one[2]))
    well = ranked[: len(ranked) // _WELL]
    is_near, aim, step = draw.random() >= _ANYWHERE, draw.random(), draw.gauss(0.0, _NEAR)
    rate = well[int(aim * len(well))][0] * math.exp(step) if well and is_near else anywhere
    return min(max(rate, low), high)
