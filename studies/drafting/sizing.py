"""How many trials of how many steps a machine does in a time."""

from dataclasses import replace

from studies.foresight.forecast import Workload, forecast
from studies.foresight.speed import Speed

FEWEST_TRIALS, MOST_TRIALS = 24, 100
"""Published methods and some discoveries; and from where on more are for another day."""
FEWEST_STEPS = 60


def sized(work: Workload, speed: Speed, seconds: float, *, trials: int | None = None) -> Workload:
    """As much of a workload as there is time for: trials first, then steps.

    Args:
        work: With as many steps as would be good.
        speed: Of a trial here.
        seconds: There is so much time, if no trial is pruned.
        trials: How many there must be; None is 24 to 100.

    Returns:
        The workload with the trials and steps that fit; the fewest of both if those do not fit either.
    """
    fitting = int(seconds * work.workers / forecast(work, speed).trial_seconds)
    count = trials or min(MOST_TRIALS, max(FEWEST_TRIALS, fitting))
    wanted = replace(work, trials=count)
    over = forecast(wanted, speed).most_seconds / seconds
    if over <= 1:
        return wanted
    steps = max(min(FEWEST_STEPS, work.steps), int(work.steps / over) // 10 * 10)
    return replace(wanted, steps=steps)
