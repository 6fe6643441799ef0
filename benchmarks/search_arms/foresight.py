"""The most that pruning by a trial's own losses could save.

It is for who knows how good the best published method of the task is, how good draws are on such tasks, and how far
every reading can be trusted: a trial stops where the probability that it is better, by its own losses, is below a
threshold of the rung. The thresholds are chosen afterwards. Who knows how alike configurations do can save more.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from search_arms.drawn import SURVIVE, Outcome, Task
from search_arms.readings import Measurements, blur_of_losses, expected_points, learned, points_of_loss
from search_arms.training import STEPS
from studies.search.rungs import KEPT_PUBLISHED

_PRICES = np.geomspace(0.05, 3.0, 22)
"""Full trials that are paid for the survival of all better draws."""

_LOST = np.linspace(0.0, 0.16, 81)
"""Shares of the better draws that a rung alone may lose."""

_ROUNDS = 5


def chances(tasks: Sequence[Task], rungs: Sequence[int], noise: float) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Of N draws at R rungs: how probable it is that each is better than the best published method, and whether it is.

    Told all its losses up to the rung, and the true score of the best published method, (N, R) and (N,).
    """
    shares = [step / STEPS for step in rungs]
    slopes, spread = np.array([learned(share) for share in shares]), blur_of_losses(shares, noise)
    rows, leads = [], []
    for task in tasks:
        expected = [expected_points(task.best_published, share) for share in shares]
        measurements = Measurements(task.seed, noise=noise, steps=STEPS)
        for number, trial in enumerate(task.trials):
            if trial.method is None:
                read = [measurements.read(number, trial.fingerprint, trial.truth, step) for step in rungs]
                rows.append([points_of_loss(one.loss) - other for one, other in zip(read, expected, strict=True)])
                leads.append(trial.truth - task.best_published)
    readings, lead = np.array(rows), np.array(leads)
    found = []
    for known in range(1, len(rungs) + 1):
        weights = np.linalg.solve(spread[:known, :known], slopes[:known])
        precision = float(weights @ slopes[:known])
        likely = np.exp(-0.5 * precision * (readings[:, :known] @ weights[:, None] / precision - lead) ** 2)
        found.append(likely[:, lead > 0].sum(axis=1) / np.maximum(likely.sum(axis=1), 1e-300))
    return np.array(found).T, lead > 0


@dataclass(frozen=True, slots=True)
class _Stopped:
    """What thresholds do with draws."""

    alive: NDArray[np.bool_]
    survive: float
    steps: float


def _stopped(
    values: NDArray[np.float64], better: NDArray[np.bool_], rungs: Sequence[int], lowest: Sequence[float]
) -> _Stopped:
    alive, spent = np.ones(len(values), dtype=np.bool_), 0
    for place, rung in enumerate(rungs):
        stops = alive & (values[:, place] < lowest[place])
        spent += rung * int(stops.sum())
        alive &= ~stops
    steps = (spent + STEPS * int(alive.sum())) / (STEPS * len(values))
    return _Stopped(alive, float(alive[better].mean()), steps)


def least_by(values: NDArray[np.float64], better: NDArray[np.bool_], rungs: Sequence[int]) -> _Stopped:
    """The fewest steps with which `SURVIVE` of the better draws survive, by thresholds of values at rungs, (N, R).

    Thresholds are moved one at a time, for a price of a better draw that is lost, and for many prices.
    """
    choices = np.quantile(values[better], _LOST, axis=0)
    best = _stopped(values, better, rungs, choices[0])
    for price in _PRICES:
        lowest = choices[2].copy()
        for _ in range(_ROUNDS):
            before = lowest.copy()
            for place in range(len(rungs)):
                tried = [np.where(np.arange(len(rungs)) == place, choice, lowest) for choice in choices[:, place]]
                found = [_stopped(values, better, rungs, one) for one in tried]
                lowest = tried[min(range(len(tried)), key=lambda at: found[at].steps - price * found[at].survive)]
            if (lowest == before).all():
                break
        last = _stopped(values, better, rungs, lowest)
        best = last if last.survive >= SURVIVE and last.steps < best.steps else best
    return best


def least_steps_by_chance(tasks: Sequence[Task], rungs: Sequence[int], noise: float) -> Outcome:
    """What nobody does better by a trial's own losses; published methods that are not protected stop at once."""
    values, better = chances(tasks, rungs, noise)
    found = least_by(values, better, rungs)
    published = sum(one.method is not None for task in tasks for one in task.trials)
    whole = (KEPT_PUBLISHED + 1) * len(tasks)
    spent = found.steps * len(values) + whole + (published - whole) * rungs[0] / STEPS
    return Outcome(survived=found.alive[better].tolist(), steps=spent / (len(values) + published))
