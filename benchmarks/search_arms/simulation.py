"""Study with the real proposer, rungs and estimates and with simulated trials."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from search_arms.readings import Measurements
from search_arms.truth import FlatTruth, PlantedTruth, draw_normal
from search_space.published import COMPARED
from search_space.space.space import Candidate, SearchSpace
from studies.history.history import StudyHistory
from studies.history.noise import ScoreNoise
from studies.pruning.rungs import Protected, Rule, RungPlan, stop_reason
from studies.records import TrialRecord, TrialReport, TrialState
from studies.runtime.replicates import early_original, repeat
from studies.score_evidence import Z_95, Estimate
from studies.search.candidates import new_trial
from studies.search.initial_design import InitialDesign
from studies.search.proposer import Proposer
from studies.surrogate.encoding import Encoding
from studies.surrogate.posterior import SurrogateFitter
from studies.surrogate.score_warp import KNEE
from trial_runner.requests import Reading

STEPS = 200
"""Steps of a full trial."""

GAIN = 0.5
"""Points above the best published method from which a trial counts as found."""

TOLERANCE = 0.5
"""Points by which the smallest trial of a verdict may be worse than the best one."""

DESIGN = InitialDesign(published=COMPARED)


class SimulatedTask(Protocol):
    """Task whose trials are simulated; equal trials have equal readings."""

    @property
    def seed(self) -> int:
        """Seed of the task and of all noise."""

    @property
    def score_noise(self) -> ScoreNoise:
        """Precision of its readings."""

    @property
    def tried(self) -> float:
        """True score of the best published method at the learning rates that studies try first, in points."""

    @property
    def to_beat(self) -> float:
        """True score of the best published method at its best rates, in points."""

    def score(self, candidate: Candidate) -> float:
        """Return the true score of a candidate after a full trial, in points."""

    def read(self, trial: TrialRecord, candidate: Candidate, step: int) -> Reading:
        """Return the reading of a trial of a candidate at a step."""


@dataclass(frozen=True, kw_only=True)
class PlantedTask:
    """Task with a planted truth.

    Attributes:
        seed: Seed of the truth and of all noise.
        noise: Standard deviation of an accuracy near one half over examples, in points.
        spread: Standard deviation of the score of a configuration over the seeds of its training, in points.
        is_flat: Whether all configurations have one true score.
    """

    space: SearchSpace
    seed: int
    noise: float
    spread: float = 0.0
    is_flat: bool = False

    @cached_property
    def truth(self) -> PlantedTruth:
        """True scores."""
        return (FlatTruth if self.is_flat else PlantedTruth)(self.space, self.seed)

    @cached_property
    def score_noise(self) -> ScoreNoise:
        """Precision of its readings."""
        return ScoreNoise(steps=STEPS, examples=self._measurements.examples)

    @cached_property
    def _measurements(self) -> Measurements:
        return Measurements(self.seed, noise=self.noise, steps=STEPS)

    @cached_property
    def tried(self) -> float:
        """True score of the best published method at the learning rates that studies try first, in points."""
        return max(self.truth.published_as_tried(DESIGN))

    @cached_property
    def to_beat(self) -> float:
        """True score of the best published method at its best rates, in points."""
        return self.truth.best_published()

    def score(self, candidate: Candidate) -> float:
        """Return the true score of a candidate, in points."""
        return self.truth.score(candidate)

    def read(self, trial: TrialRecord, candidate: Candidate, step: int) -> Reading:
        """Return the reading of a trial of a candidate at a step."""
        trained = self.score(candidate) + draw_normal(self.seed, "trained", trial.fingerprint, spread=self.spread)
        return self._measurements.read(trial.number, trial.fingerprint, trained, step)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """Recommended trial of a study after some trials, by its estimates.

    Attributes:
        trials: Number of ended trials.
        cost: Number of steps, in full trials.
        parameters: Number of parameters that its configuration stores.
        truth: True score, in points; NaN while no trial is complete.
        estimate: Estimated score, in points.
        held: Whether its 95% interval contains the true score.
        of_all: Share of all trials whose intervals do.
        far: Number of trials with scores below the knee of the warp, four spreads below the median.
        far_held: Number of these whose intervals do.
        lead: Estimated lead of the best discovery over the best published method, in points; 0 without one.
        found: Whether the interval of the lead is above 0.
        seed_deviation: Estimated standard deviation of expected scores over seeds of training, in points.
        smallest_parameters: Number of parameters of the smallest trial that is expected to be at most half a point
            worse than the recommended one.
        smallest_truth: True score of that trial, in points.
    """

    trials: int
    cost: float
    parameters: int = 0
    truth: float
    estimate: float
    held: bool = False
    of_all: float = math.nan
    far: int = 0
    far_held: int = 0
    lead: float = 0.0
    found: bool = False
    seed_deviation: float = math.nan
    smallest_parameters: int = 0
    smallest_truth: float = math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedStudy:
    """Result of a study.

    Attributes:
        tried: True score of the best published method at the learning rates that studies try first, in points.
        recommended: Recommendations, one for each checkpoint.
        found_trial: Number of ended trials when the first complete one had a true score `GAIN` above the best published
            method at its best rates; None if never.
    """

    sampler: str
    seed: int
    tried: float
    recommended: Sequence[Recommendation]
    found_trial: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPlan:
    """Search that is simulated.

    Attributes:
        sampler: Name of the sampler.
        space: Search space.
        design: Initial design.
        first: Candidates that are tried after it, before the sampler proposes any.
    """

    sampler: str
    space: SearchSpace
    design: InitialDesign = DESIGN
    first: Sequence[Candidate] = ()


def simulate(
    search: SearchPlan, task: SimulatedTask, *, checkpoints: Sequence[int], in_steps: bool = False
) -> SimulatedStudy:
    """Run a study of a search on a task, with rungs after a quarter and after half of the steps.

    Args:
        search: Search.
        task: Task.
        checkpoints: Ascending numbers of ended trials at which a configuration is recommended; the study ends with the
            last.
        in_steps: Whether checkpoints are numbers of full trials whose steps were spent.
    """
    seed, space, first, pending = task.seed, search.space, [*search.first], list(checkpoints)
    proposer = Proposer(space, sampler=search.sampler, seed=seed, initial_design=search.design)
    noise, steps = task.score_noise, task.score_noise.steps
    first_rungs = (steps // 4, steps // 2)
    rungs = RungPlan(steps=first_rungs, rule=Rule.MEDIAN, protected=Protected.BEST, examples=noise.examples)
    fitter = SurrogateFitter(Encoding(space).features_of)
    found_trial, cost = None, 0.0
    history = StudyHistory(noise)
    candidates: list[Candidate] = []
    recommended = []
    while pending:
        number = len(history)
        given = proposer.next_of_design(history) or (first.pop(0) if first else None)
        original = None if given is not None else early_original(history)
        if original is None:
            candidates.append(given or proposer.sampled(history))
            trial = new_trial(candidates[-1], space.shape, number=number, head_parameters=0, description="")
        else:
            trial = repeat(original, number, study_seed=seed)
            candidates.append(candidates[original.number])
        history = history.added([replace(trial, state=TrialState.RUNNING)])
        for step in (*first_rungs, steps):
            reading = task.read(trial, candidates[-1], step)
            history = history.reported(TrialReport(trial=number, attempt=1, reading=reading))
            if step == steps or original is not None:
                continue
            if stop_reason(rungs, history, reading) is not None:
                break
        is_complete, cost = step == steps, cost + step / steps
        state = TrialState.COMPLETE if is_complete else TrialState.PRUNED
        history = history.changed(number, state=state, score=reading.score if is_complete else None)
        if found_trial is None and is_complete and task.score(candidates[-1]) > task.to_beat + GAIN:
            found_trial = number + 1
        while pending and (cost if in_steps else number + 1) >= pending[0]:
            del pending[0]
            recommended.append(_recommendation(fitter, history, [task.score(one) for one in candidates], cost))
    return SimulatedStudy(
        sampler=search.sampler, seed=seed, tried=task.tried, recommended=recommended, found_trial=found_trial
    )


def _recommendation(
    fitter: SurrogateFitter, history: StudyHistory, truths: Sequence[float], cost: float
) -> Recommendation:
    complete = [one for one in history if one.state is TrialState.COMPLETE and one.replicate_of is None]
    if not complete:
        return Recommendation(trials=len(history), cost=cost, truth=math.nan, estimate=math.nan)
    posterior = fitter.integrated_posterior(history)
    means, covariance = posterior.joint([fitter.features(one) for one in history])
    held = np.abs(100 * means - truths) <= Z_95 * 100 * np.sqrt(np.diag(covariance))
    scale = posterior.scale
    is_far = np.array([one.score is not None and one.score < scale.middle + KNEE * scale.spread for one in history])
    best = max((one.number for one in complete), key=means.__getitem__)
    leaders = [
        max((one.number for one in complete if (one.method is None) is is_new), key=means.__getitem__, default=None)
        for is_new in (True, False)
    ]

    def difference(pair: Sequence[int]) -> Estimate:
        return Estimate.of_difference(means[pair], covariance[np.ix_(pair, pair)])

    lead = None if None in leaders else difference(leaders)
    near = [one for one in complete if 100 * (means[best] - means[one.number]) <= TOLERANCE]
    smallest = min(near, key=lambda one: (one.stored_parameters, one.number != best))
    return Recommendation(
        trials=len(history),
        cost=cost,
        parameters=history[best].stored_parameters,
        truth=truths[best],
        estimate=100 * float(means[best]),
        held=bool(held[best]),
        of_all=float(held.mean()),
        far=int(is_far.sum()),
        far_held=int(held[is_far].sum()),
        lead=0.0 if lead is None else 100 * lead.mean,
        found=lead is not None and lead.low > 0,
        seed_deviation=100 * math.sqrt(posterior.seed_deviation**2 - scale.error**2),
        smallest_parameters=smallest.stored_parameters,
        smallest_truth=truths[smallest.number],
    )
