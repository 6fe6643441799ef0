"""Study on a planted truth with the real proposer, rungs and estimates and with simulated trials."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from search_arms.readings import Measurements
from search_arms.truth import PlantedTruth
from search_space.published import COMPARED
from search_space.space.space import SearchSpace
from studies.history.history import StudyHistory
from studies.history.noise import ScoreNoise
from studies.pruning.rungs import Protected, Rule, RungPlan, stop_reason
from studies.records import TrialReport, TrialState
from studies.search.candidates import new_trial
from studies.search.initial_design import InitialDesign
from studies.search.proposer import Proposer
from studies.surrogate.candidate_search import FactoredSearch
from studies.surrogate.encoding import Encoding
from studies.surrogate.posterior import SurrogateFitter

STEPS = 200
"""Steps of a full trial."""

GAIN = 0.5
"""Points above the best published method from which a trial counts as found."""

_OPENING = InitialDesign(published=COMPARED)
_RUNGS = RungPlan(steps=(STEPS // 4, STEPS // 2), rule=Rule.CHANCE, protected=Protected.BEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """Recommended trial of a study after some trials, by its estimates.

    Attributes:
        trials: Number of ended trials.
        cost: Number of steps, in full trials.
        truth: True score, in points; NaN while no trial is complete.
        estimate: Estimated score, in points.
    """

    trials: int
    cost: float
    truth: float
    estimate: float


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


def simulate(
    sampler: str, space: SearchSpace, seed: int, *, trials: int, noise: float, checkpoints: set[int]
) -> SimulatedStudy:
    """Run a study of a sampler on the task of a seed; equal trials have equal readings for all samplers.

    Args:
        noise: Standard deviation of an accuracy near one half, in points.
        checkpoints: Numbers of ended trials at which a configuration is recommended.
    """
    truth, measurements = PlantedTruth(space, seed), Measurements(seed, noise=noise, steps=STEPS)
    proposer = Proposer(space, sampler=sampler, seed=seed, initial_design=_OPENING)
    rungs, search = replace(_RUNGS, examples=measurements.examples), FactoredSearch(space, seed=0)
    fitter = SurrogateFitter(Encoding(space).features_of)
    tuned, found_trial, cost = truth.best_published(), None, 0.0
    history = StudyHistory(ScoreNoise(steps=STEPS, examples=measurements.examples))
    truths: list[float] = []
    recommended = []
    for number in range(trials):
        candidate = proposer.propose(history)
        truths.append(truth.score(candidate))
        trial = new_trial(candidate, space.shape, number=number, head_parameters=0, description="")
        history = history.added([replace(trial, state=TrialState.RUNNING)])
        for step in (*_RUNGS.steps, STEPS):
            reading = measurements.read(number, candidate.fingerprint, truths[-1], step)
            history = history.reported(TrialReport(trial=number, attempt=1, reading=reading))
            chance = search.win_probabilities(history, [number]).get(number) if step < STEPS else None
            if step < STEPS and stop_reason(rungs, history, reading, chance) is not None:
                break
        is_complete, cost = step == STEPS, cost + step / STEPS
        state = TrialState.COMPLETE if is_complete else TrialState.PRUNED
        history = history.changed(number, state=state, score=reading.score if is_complete else None)
        if found_trial is None and is_complete and truths[number] > tuned + GAIN:
            found_trial = number + 1
        if number + 1 in checkpoints:
            recommended.append(_recommendation(fitter, history, truths, cost))
    tried = max(truth.published_as_tried(_OPENING))
    return SimulatedStudy(sampler=sampler, seed=seed, tried=tried, recommended=recommended, found_trial=found_trial)


def _recommendation(
    fitter: SurrogateFitter, history: StudyHistory, truths: Sequence[float], cost: float
) -> Recommendation:
    complete = [one for one in history if one.state is TrialState.COMPLETE]
    if not complete:
        return Recommendation(trials=len(history), cost=cost, truth=math.nan, estimate=math.nan)
    means = fitter.posterior(history).means([fitter.features(one) for one in complete])
    best = int(np.argmax(means))
    truth = truths[complete[best].number]
    return Recommendation(trials=len(history), cost=cost, truth=truth, estimate=100 * float(means[best]))
