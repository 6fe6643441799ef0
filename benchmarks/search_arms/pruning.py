"""What a rule of pruning lets through and what it saves, on trials that nothing has learned from.

The trials are published methods and draws uniform over structures, each with all its readings. Rules differ in which of
them they stop; nothing else does. Beside the rules stands what nobody could do better who sees scores, or losses:
thresholds for each rung that were chosen afterwards, on readings less that of a trial as good as the best published
method on the same task. `search_arms.foresight` has the least by losses and more rungs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from search_arms.arms import BY_CHANCE, SIGNIFICANT, UNPRUNED
from search_arms.drawn import SURVIVE, Outcome, Task, drawn_task
from search_arms.foresight import least_steps_by_chance
from search_arms.readings import Measurements, expected_points, points_of_loss
from search_arms.simulation import Mapped, Setting
from search_arms.statistics import Interval, share
from search_arms.training import STEPS, Training
from studies.search.rungs import RungPlan

RULES: dict[str, RungPlan] = {
    "none": UNPRUNED,
    **{
        f"{margin} standard errors": replace(SIGNIFICANT, margin=margin) for margin in (0.0, 0.5, 0.84, 1.0, 1.28, 1.64)
    },
    "0.84, of a third": replace(SIGNIFICANT, reduction=3),
    "0.84, rungs at 3/8 and 3/4": replace(SIGNIFICANT, steps=tuple(STEPS * n // 8 for n in (2, 3, 4, 6))),
}
"""What is compared where scores are all that is known; 0.84 is what `Rule.SIGNIFICANCE` does."""

PAIRED_RULES: dict[str, RungPlan] = {
    **{
        f"{margin} standard errors of losses": replace(SIGNIFICANT, paired_margin=margin)
        for margin in (0.0, 0.4, 0.7, 1.28, 2.0)
    },
    "1.28, of a third": replace(SIGNIFICANT, reduction=3),
    "1.28, rungs at 3/8 and 3/4": replace(SIGNIFICANT, steps=tuple(STEPS * n // 8 for n in (2, 3, 4, 6))),
}
"""The same where losses are stored example by example; 1.28 is what it does."""

CHANCES: dict[str, RungPlan] = {
    f"a chance of {least:.0%}": replace(BY_CHANCE, least_chance=least) for least in (0.06, 0.09, 0.12)
}
"""By how probable it is that a trial beats the best published method; 9% is what is done now."""

LEAST: Mapping[str, tuple[int, ...]] = {
    "the least, at 1/4 and 1/2": (STEPS // 4, STEPS // 2),
    "the least, at 1/4, 3/8, 1/2": (STEPS // 4, STEPS * 3 // 8, STEPS // 2),
    "the least, at all eighths": tuple(STEPS * eighth // 8 for eighth in range(1, 8)),
}
"""Rungs at which somebody decides who knows how good the best published method is."""

_THRESHOLDS = np.arange(-9.0, 2.01, 0.25)


def outcome(tasks: Sequence[Task], plan: RungPlan, noise: float, *, has_losses: bool = False) -> Outcome:
    """What a rule does with the trials of some tasks, with their losses or without."""
    survived, spent = [], 0
    for task in tasks:
        measurements = Measurements(task.seed, noise=noise, steps=STEPS)
        training = Training(task.space, plan, measurements, hears_losses=has_losses)
        for trial in task.trials:
            steps = training.train(trial.candidate, trial.truth)[-1].step
            spent += steps
            if trial.method is None and trial.truth > task.best_published:
                survived.append(steps == STEPS)
    return Outcome(survived=survived, steps=spent / (STEPS * sum(len(task.trials) for task in tasks)))


def least_steps(tasks: Sequence[Task], rungs: Sequence[int], noise: float, *, has_losses: bool = False) -> Outcome:
    """The least that thresholds spend with which `SURVIVE` of the better draws survive; published methods go on."""
    above, better = _above_the_best_published(tasks, rungs, noise, has_losses=has_losses)
    published = sum(one.method is not None for task in tasks for one in task.trials)
    found: list[tuple[float, NDArray[np.bool_]]] = []
    for first in _THRESHOLDS:
        kept = above[:, 0] >= first
        for second in _THRESHOLDS:
            alive = kept & (above[:, 1] >= second)
            if alive[better].mean() >= SURVIVE:
                spent = rungs[0] * (~kept).sum() + rungs[1] * (kept & ~alive).sum() + STEPS * alive.sum()
                total = (spent + STEPS * published) / (STEPS * (len(above) + published))
                found.append((float(total), alive[better]))
    steps, alive = min(found, key=lambda one: one[0])
    return Outcome(survived=alive.tolist(), steps=steps)


def _above_the_best_published(
    tasks: Sequence[Task], rungs: Sequence[int], noise: float, *, has_losses: bool
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Points of every draw's readings above what the best published method reads, and whether it is truly better."""
    rows, better = [], []
    for task in tasks:
        measurements = Measurements(task.seed, noise=noise, steps=STEPS)
        for number, trial in enumerate(task.trials):
            if trial.method is not None:
                continue
            read = [measurements.read(number, trial.fingerprint, trial.truth, step) for step in rungs]
            points = [points_of_loss(one.loss) if has_losses else 100 * one.score for one in read]
            expected = [expected_points(task.best_published, step / STEPS) for step in rungs]
            rows.append([one - other for one, other in zip(points, expected, strict=True)])
            better.append(trial.truth > task.best_published)
    return np.array(rows), np.array(better)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A line of the table to be: how a rule does at every noise."""

    name: str
    plan: RungPlan
    has_losses: bool


def _outcomes(tasks: Sequence[Task], noises: Sequence[float], asked: _Asked) -> list[Outcome]:
    return [outcome(tasks, asked.plan, noise, has_losses=asked.has_losses) for noise in noises]


def pruning_lines(setting: Setting, seeds: Sequence[int], noises: Sequence[float], mapped: Mapped) -> Iterator[str]:
    """The table: each rule with what survives and what is spent."""
    tasks = [drawn_task(setting, seed) for seed in seeds]
    better = sum(one.method is None and one.truth > task.best_published for task in tasks for one in task.trials)
    yield f"{len(tasks)} tasks of {setting.trials} trials; {better} draws are truly better than every published method"
    yield f"{'':<32}" + "".join(f"{f'{noise} points of noise':>34}" for noise in noises)
    yield f"{'':<32}" + "".join(f"{'survive':>24}{'steps':>10}" for _ in noises)
    for rules, has_losses in ((RULES | {"a chance of 9%": BY_CHANCE}, False), (PAIRED_RULES | CHANCES, True)):
        asked = [_Asked(name=name, plan=plan, has_losses=has_losses) for name, plan in rules.items()]
        for one, outcomes in zip(asked, mapped(partial(_outcomes, tasks, noises), asked), strict=True):
            yield _line(one.name, outcomes)
        least = [least_steps(tasks, SIGNIFICANT.steps, noise, has_losses=has_losses) for noise in noises]
        yield _line(f"the least by {'losses' if has_losses else 'scores'}, in hindsight", least)
    for name, rungs in LEAST.items():
        yield _line(name, [least_steps_by_chance(tasks, rungs, noise) for noise in noises])


def _line(name: str, outcomes: Sequence[Outcome]) -> str:
    cells = (f"{_words(share(one.survived)):>24}{one.steps:>10.1%}" for one in outcomes)
    return f"{name:<32}" + "".join(cells)


def _words(interval: Interval) -> str:
    return f"{interval.value:.2f} [{interval.low:.2f}, {interval.high:.2f}]"
