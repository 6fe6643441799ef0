"""Studies of two objectives on planted truths: what pruning costs of the front, and what it spends.

A study with rungs and one without propose to the same tasks; what counts is the true hypervolume of what they
recommend: the trials on the front of the posterior means, above the task head alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean

import numpy as np

from search_arms.arms import BY_CHANCE, SIGNIFICANT
from search_arms.readings import Measurements
from search_arms.simulation import OPENING, Mapped, Setting
from search_arms.statistics import Interval, mean
from search_arms.training import STEPS, Training
from search_arms.truth import HEAD_ALONE, PlantedTruth
from search_space.space.space import Candidate, SearchSpace
from studies.search.chronicle import Course
from studies.search.factored.sampler import FactoredSearch
from studies.search.fronts import Staircase, front
from studies.search.objectives import Objective, SizeGoal
from studies.search.proposer import Proposer
from studies.search.rungs import RungPlan
from studies.store.records import TrialState

ARMS: dict[str, RungPlan] = {
    "unpruned": replace(SIGNIFICANT, steps=()),
    "by chance": BY_CHANCE,
    "significance": SIGNIFICANT,
    "reduction 8": replace(SIGNIFICANT, steps=(STEPS // 4,), reduction=8),
}
"""Where trials are compared; the first is what the others are compared with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a study found.

    Attributes:
        hypervolume: True, of the front that it recommends: the mean over sizes of points above the task head alone.
        steps: Spent, as a share of those of all trials at full length.
        earlier: Hypervolume and steps after every tenth of the trials.
    """

    hypervolume: float
    steps: float
    earlier: Sequence[tuple[float, float]]


class _Study:
    """A study of one arm on the task of a seed."""

    def __init__(self, arm: str, setting: Setting, seed: int) -> None:
        self.setting, self.space = setting, setting.space
        self.goal = SizeGoal.of(
            Objective.PARAMETERS, budget=self.space.budget, smallest_share=self.space.options.sizes[0]
        )
        self.truth = PlantedTruth(self.space, seed, ruggedness=setting.ruggedness)
        self.measurements = Measurements(seed, noise=setting.noise, steps=STEPS)
        self.course = Course(steps=STEPS, examples=self.measurements.examples, goal=self.goal, hears_losses=True)
        self.proposer = Proposer(self.space, sampler="factored", seed=seed, opening=OPENING, course=self.course)
        self.training = Training(self.space, ARMS[arm], self.measurements, goal=self.goal)
        self.candidates: list[Candidate] = []
        self.truths: list[float] = []
        self.steps = 0

    def run_one(self) -> None:
        """Propose, train and end a trial."""
        proposal = self.proposer.propose()
        candidate, number = proposal.candidate, proposal.number
        truth = self.truth.score(candidate)
        readings = self.training.train(candidate, truth)
        for one in readings:
            self.proposer.report(number, one.step, one.score, one.loss)
        state = self.training.history[number].state
        score = readings[-1].score if state is TrialState.COMPLETE else None
        self.proposer.close(number, state, score, size=float(candidate.counts.stored))
        self.candidates.append(candidate)
        self.truths.append(truth)
        self.steps += readings[-1].step

    def hypervolume(self) -> float:
        """True, of what is recommended now."""
        ranked = FactoredSearch(self.space, seed=0).ranked(self.training.history)
        ended = [(one.number, value) for one, value, _ in ranked if one.state is TrialState.COMPLETE]
        sizes = [self.candidates[number].counts.stored for number, _ in ended]
        chosen = [ended[place][0] for place in front(np.array(sizes, dtype=float), [value for _, value in ended])]
        scale = self.goal.scale
        stairs = Staircase.of(
            [scale.place(self.candidates[number].counts.stored) for number in chosen],
            [self.truths[number] for number in chosen],
            scale=scale,
            reference=HEAD_ALONE,
        )
        return stairs.area(HEAD_ALONE) / (scale.high - scale.low)


def found(setting: Setting, task: tuple[str, int]) -> Found:
    """Run a study of an arm on the task of a seed."""
    study = _Study(task[0], setting, task[1])
    earlier = []
    for number in range(1, setting.trials + 1):
        study.run_one()
        if number % max(1, setting.trials // 10) == 0:
            earlier.append((study.hypervolume(), study.steps / (STEPS * setting.trials)))
    return Found(hypervolume=study.hypervolume(), steps=study.steps / (STEPS * setting.trials), earlier=earlier)


def with_sizes(space: SearchSpace) -> SearchSpace:
    """The space with sizes from an eighth of the budget on."""
    return SearchSpace(shape=space.shape, budget=space.budget, options=replace(space.options, size=(0.125, 1.0)))


def front_lines(setting: Setting, seeds: Sequence[int], mapped: Mapped) -> Iterator[str]:
    """The table, with the share of the unpruned hypervolume that pruning keeps."""
    sized = replace(setting, space=with_sizes(setting.space))
    runs = iter(mapped(partial(found, sized), [(arm, seed) for arm in ARMS for seed in seeds]))
    yield from table_lines(setting, {arm: [next(runs) for _ in seeds] for arm in ARMS})


def table_lines(setting: Setting, runs: Mapping[str, Sequence[Found]]) -> Iterator[str]:
    """The table of some studies, by arm and in the order of the seeds."""
    baseline = runs[next(iter(ARMS))]
    yield f"{len(baseline)} tasks, {setting.trials} trials, {setting.noise} points of noise"
    yield "true hypervolume of the recommended front: points above the task head alone, mean over sizes"
    yield "at half the steps: the same when half of the steps of the unpruned study were spent, of its hypervolume"
    yield f"{'':<14}{'hypervolume':>16}{'of unpruned':>18}{'steps':>8}{'at half the steps':>20}"
    for arm, some in runs.items():
        ratio = mean([one.hypervolume / other.hypervolume for one, other in zip(some, baseline, strict=True)])
        volume = mean([one.hypervolume for one in some])
        half = mean([_at(one, 0.5) / other.hypervolume for one, other in zip(some, baseline, strict=True)])
        cells = f"{_with_reach(volume, '.2f'):>16}{_with_reach(ratio, '.1%'):>18}"
        yield f"{arm:<14}{cells}{fmean(one.steps for one in some):>8.0%}{_with_reach(half, '.1%'):>20}"


def _with_reach(interval: Interval, digits: str) -> str:
    return f"{interval.value:{digits}} ± {interval.high - interval.value:{digits}}"


def _at(study: Found, steps: float) -> float:
    """The hypervolume of a study when it had spent no more than so much, by tenths of its trials."""
    return next((volume for volume, spent in reversed(study.earlier) if spent <= steps + 1e-9), 0.0)
