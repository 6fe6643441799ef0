"""Pruning with more foresight than a rule has: what could be saved at most, and what a forecast of the end saves.

The most is for who knows how good the best published method of the task is, how good draws are on such tasks, and how
far every reading can be trusted: a trial stops where the probability that it is better, by its own losses, is below a
threshold of the rung. The thresholds are chosen afterwards.

The forecast knows the readings alone: a trial stops where a fifth of all trials that have begun are ahead of it by more
than the spread of what complete trials gained from that rung to their end. It is no rule of the product.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from search_arms.drawn import SURVIVE, Drawn, Outcome, Task
from search_arms.readings import Measurements, Reading, blur_of_losses, expected_points, learned, points_of_loss
from search_arms.simulation import STEPS
from search_space.published.whole_model import HEAD_ONLY
from studies.search.rungs import FEWEST, KEPT_PUBLISHED

_PRICES = np.geomspace(0.05, 3.0, 22)
"""Full trials that are paid for the survival of all better draws."""

_LOST = np.linspace(0.0, 0.16, 81)
"""Shares of the better draws that a rung alone may lose."""

_ROUNDS = 5

_USUAL = 4
"""Complete trials that what is expected of the spread of their gains weighs as much as."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """A rule by how much trials gain from a rung to their end.

    Attributes:
        steps: Of the rungs, ascending.
        margins: Spreads of these gains, of each rung.
        ahead: Share of all trials that have begun which must be ahead.
    """

    steps: tuple[int, ...]
    margins: tuple[float, ...]
    ahead: float = 0.2


class _Board:
    """What was read on a task, in points of losses."""

    def __init__(self, rule: Forecast) -> None:
        self.rule = rule
        self.read: list[dict[int, float]] = [{} for _ in rule.steps]
        self.errors: list[dict[int, float]] = [{} for _ in rule.steps]
        self.ends: dict[int, float] = {}

    def stops(self, number: int, rung: int) -> bool:
        """Whether a trial, whose reading is on the board, stops at a rung."""
        own = self.read[rung][number]
        others = [value for other, value in self.read[rung].items() if other != number]
        if len(others) < FEWEST:
            return False
        margin = self.rule.margins[rung] * self._spread_of_gains(number, rung)
        needed = math.ceil(self.rule.ahead * len(self.read[0]))
        return sum(value - own > margin for value in others) >= needed

    def _spread_of_gains(self, number: int, rung: int) -> float:
        """Of complete trials; while they are few, that of two readings of one trial."""
        errors = self.errors[rung]
        usual = errors[number] ** 2 + float(np.median(list(errors.values()))) ** 2
        gains = np.array([end - self.read[rung][trial] for trial, end in self.ends.items()])
        if len(gains) < 2:
            return math.sqrt(usual)
        return math.sqrt((_USUAL * usual + float(((gains - gains.mean()) ** 2).sum())) / (_USUAL + len(gains) - 1))


def outcome_by_forecast(tasks: Sequence[Task], rule: Forecast, noise: float) -> Outcome:
    """What the forecast does with the trials of some tasks; the best published methods are protected as always."""
    survived, spent = [], 0
    for task in tasks:
        measurements = Measurements(task.seed, noise=noise, steps=STEPS)
        board, first = _Board(rule), dict[int, float]()
        for number, trial in enumerate(task.trials):
            steps = _steps_of(number, trial, board, measurements, first)
            spent += steps
            if trial.method is None and trial.truth > task.best_published:
                survived.append(steps == STEPS)
    return Outcome(survived=survived, steps=spent / (STEPS * sum(len(task.trials) for task in tasks)))


def _steps_of(number: int, trial: Drawn, board: _Board, measurements: Measurements, first: dict[int, float]) -> int:
    """How far a trial goes.

    Args:
        number: Of the trial.
        trial: What was drawn.
        board: What was read before.
        measurements: Of the task.
        first: Scores of published methods at the first rung; told of this one.
    """

    def read(step: int) -> Reading:
        return measurements.read(number, trial.fingerprint, trial.truth, step)

    for rung, step in enumerate(board.rule.steps):
        reading = read(step)
        if rung == 0 and trial.method not in (None, HEAD_ONLY.name):
            first[number] = reading.score
        board.read[rung][number] = points_of_loss(reading.loss)
        board.errors[rung][number] = measurements.error_of_loss(reading)
        kept = sorted(first, key=lambda one: -first[one])[:KEPT_PUBLISHED]
        if trial.method != HEAD_ONLY.name and number not in kept and board.stops(number, rung):
            return step
    board.ends[number] = points_of_loss(read(STEPS).loss)
    return STEPS
