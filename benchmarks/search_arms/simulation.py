"""One study of one arm on a planted truth: the real proposer and the real rungs, simulated trials."""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Protocol, TypeVar

from search_arms.readings import Measurements
from search_arms.training import STEPS, Training
from search_arms.truth import COLLAPSED, PlantedTruth
from search_space.published import COMPARED
from search_space.space.space import Candidate, SearchSpace
from studies.search.chronicle import Course
from studies.search.factored.observation import Observation
from studies.search.factored.sampler import FactoredSearch
from studies.search.factored.settings import FactoredSettings
from studies.search.opening import Opening
from studies.search.proposer import Proposal, Proposer
from studies.search.rungs import RungPlan
from studies.search.samplers import Sampler
from studies.store.records import TrialState

GAIN = 0.5
"""Points above the best published method that count as having found something."""

AFTER = 100
"""What is proposed after so many trials tells what a sampler has learned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What all arms share.

    Attributes:
        space: What is searched.
        trials: Of a study, published methods among them.
        noise: Standard deviation of an accuracy near one half, in points.
        ruggedness: Points of standard deviation that are a structure's, or a pair's, alone.
        checkpoints: Numbers of ended trials at which a configuration is recommended.
    """

    space: SearchSpace
    trials: int
    noise: float
    ruggedness: float
    checkpoints: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A trial that has ended.

    Attributes:
        proposal: What was tried.
        truth: Its true score, in points.
        score: What it measured in the end, in points; None if it was pruned.
        steps: It was trained for.
    """

    proposal: Proposal
    truth: float
    score: float | None
    steps: int

    @property
    def is_published(self) -> bool:
        """Whether it is a published method."""
        return self.proposal.candidate.method is not None


class Search(Protocol):
    """What proposes from the whole history, as `FactoredSearch` does."""

    def candidate(self, history: Sequence[Observation], *, number: int, retry: int = 0) -> Candidate | None:
        """One candidate that was not tried before; None if nothing new was drawn."""
        ...


_Given = TypeVar("_Given")
_Found = TypeVar("_Found")


class Mapped(Protocol):
    """Does something with each of many things, in their order; perhaps in several processes."""

    def __call__(self, work: Callable[[_Given], _Found], given: Iterable[_Given], /) -> Iterable[_Found]:
        """What comes of each."""
        ...


Recommend = Callable[[Sequence[Ended], Sequence[Observation], SearchSpace], Ended | None]


OPENING = Opening(published=COMPARED)
"""How studies begin, and what the best published method is told from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """A way to search.

    Attributes:
        name: In the table.
        sampler: Who proposes on a task; published methods alone, where there is a search. Only an oracle looks at the
            truth.
        search: What proposes after the published methods, for a space and a seed; None for the sampler.
        opening: What comes first.
        rungs: Where trials are compared.
        recommend: What is recommended of the trials that have ended.
        hears_losses: Whether what proposes and recommends is told losses, too, and trials are compared by them.
    """

    name: str
    sampler: Callable[[PlantedTruth], Sampler]
    search: Callable[[SearchSpace, int], Search] | None = None
    opening: Opening = OPENING
    rungs: RungPlan
    recommend: Recommend
    hears_losses: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommended:
    """What a study recommends after some trials.

    Attributes:
        trials: That have ended.
        cost: Steps spent, in full trials.
        truth: True score, in points; NaN while nothing is complete.
        score: What it was measured with, or what is estimated where estimates recommend.
    """

    trials: int
    cost: float
    truth: float
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """What came of a study.

    Attributes:
        arm: Its name.
        seed: Of the task and the study.
        tuned: True score of the best published method with its rates tuned, in points.
        tried: That of the best published method at the rates at which studies try it first.
        recommended: At every checkpoint.
        found_trial: Ended trials when the first complete one was truly 0.5 points above ``tuned``; None if never.
        late_proposals: Mean true score of what was proposed after `AFTER` trials; None without any.
        above_median: Share of all proposals truly above the median published method, as tried.
        collapsed: Share of all proposals that collapse.
        seconds: Of the processor, for a proposal, in the mean.
    """

    arm: str
    seed: int
    tuned: float
    tried: float
    recommended: tuple[Recommended, ...]
    found_trial: int | None
    late_proposals: float | None
    above_median: float
    collapsed: float
    seconds: float


def best_score(ended: Sequence[Ended], history: Sequence[Observation], space: SearchSpace) -> Ended | None:
    """The complete trial with the highest score."""
    complete = [one for one in ended if one.score is not None]
    return max(complete, key=lambda one: (one.score or 0.0, -one.proposal.number), default=None)


def best_estimate(
    ended: Sequence[Ended],
    history: Sequence[Observation],
    space: SearchSpace,
    *,
    settings: FactoredSettings | None = None,
) -> Ended | None:
    """The complete trial with the highest posterior mean under the model of the factored sampler, as its score."""
    for trial, mean, _ in FactoredSearch(space, seed=0, settings=settings).ranked(history):
        if ended[trial.number].score is not None:
            return replace(ended[trial.number], score=100 * mean)
    return None


class Run:
    """A study as it runs: one trial after another."""

    def __init__(
        self,
        arm: Arm,
        setting: Setting,
        seed: int,
        *,
        truth: PlantedTruth | None = None,
        opening: Opening | None = None,
    ) -> None:
        """Begin a study.

        Args:
            arm: Who proposes and what is recommended.
            setting: What all arms share.
            seed: Of the study and, unless there is a truth, of the task.
            truth: The task.
            opening: What comes first; None for that of the arm.
        """
        self.arm, self.setting, self.opening = arm, setting, opening or arm.opening
        self.truth = truth or PlantedTruth(setting.space, seed, ruggedness=setting.ruggedness)
        self.measurements = Measurements(seed, noise=setting.noise, steps=STEPS)
        self.proposer = Proposer(
            setting.space,
            sampler=arm.sampler(self.truth),
            seed=seed,
            opening=self.opening,
            course=Course(steps=STEPS, examples=self.measurements.examples, hears_losses=arm.hears_losses),
        )
        self.search = None if arm.search is None else arm.search(setting.space, seed)
        self.published = len(set(self.opening.published) & set(setting.space.published_that_fit()))
        self.training = Training(
            setting.space,
            arm.rungs,
            self.measurements,
            hears_losses=arm.hears_losses,
            prospects=self.search.prospects if isinstance(self.search, FactoredSearch) else None,
        )
        self.ended: list[Ended] = []
        self.seconds = 0.0

    def step(self) -> Ended:
        """Propose, train and end a trial."""
        began_at = time.process_time()
        proposal = self._proposal()
        self.seconds += time.process_time() - began_at
        truth = self.truth.score(proposal.candidate)
        readings = self.training.train(proposal.candidate, truth)
        last = readings[-1]
        is_complete = last.step == STEPS
        if proposal.number < self.proposer.next_number:
            for one in readings:
                self.proposer.report(proposal.number, one.step, one.score, one.loss)
            state = TrialState.COMPLETE if is_complete else TrialState.PRUNED
            self.proposer.close(proposal.number, state, last.score if is_complete else None)
        score = 100 * last.score if is_complete else None
        self.ended.append(Ended(proposal=proposal, truth=truth, score=score, steps=last.step))
        return self.ended[-1]

    @property
    def history(self) -> Sequence[Observation]:
        """All trials so far."""
        return self.training.history

    def _proposal(self) -> Proposal:
        number = len(self.ended)
        if self.search is None or number < self.published:
            return self.proposer.propose()
        found = self.search.candidate(self.history, number=number)
        if found is None:
            raise RuntimeError(f"{self.arm.name} must find something new; it did not after {number} trials.")
        return Proposal(number=number, candidate=found)

    def recommended(self) -> Recommended:
        """What is recommended now."""
        chosen = self.arm.recommend(self.ended, self.history, self.setting.space)
        cost = sum(one.steps for one in self.ended) / STEPS
        if chosen is None or chosen.score is None:
            return Recommended(trials=len(self.ended), cost=cost, truth=math.nan, score=math.nan)
        return Recommended(trials=len(self.ended), cost=cost, truth=chosen.truth, score=chosen.score)


def simulated(arm: Arm, setting: Setting, seed: int) -> Study:
    """Run a study of an arm on the task of a seed."""
    run = Run(arm, setting, seed)
    tuned = run.truth.best_published()
    recommended: list[Recommended] = []
    found_trial = None
    for _ in range(setting.trials):
        ended = run.step()
        if found_trial is None and ended.score is not None and ended.truth > tuned + GAIN:
            found_trial = len(run.ended)
        if len(run.ended) in setting.checkpoints:
            recommended.append(run.recommended())
    # a search may try published methods again, at other rates; the reference is what studies try first
    published = run.truth.published_as_tried(OPENING)
    proposed = [one.truth for one in run.ended if not one.is_published]
    late = [one.truth for one in run.ended[AFTER:] if not one.is_published]
    return Study(
        arm=arm.name,
        seed=seed,
        tuned=tuned,
        tried=max(published),
        recommended=tuple(recommended),
        found_trial=found_trial,
        late_proposals=fmean(late) if late else None,
        above_median=fmean(one > median(published) for one in proposed),
        collapsed=fmean(one == COLLAPSED for one in proposed),
        seconds=run.seconds / setting.trials,
    )
