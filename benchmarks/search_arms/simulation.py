"""Study on a planted truth with the real proposer, rungs and estimates and with simulated trials."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from search_arms.readings import Measurements
from search_arms.truth import FlatTruth, PlantedTruth, draw_normal
from search_space.published import COMPARED
from search_space.space.space import SearchSpace
from studies.history.history import StudyHistory
from studies.history.noise import ScoreNoise
from studies.pruning.rungs import Protected, Rule, RungPlan, stop_reason
from studies.records import TrialReport, TrialState
from studies.runtime.replicates import early_original, repeat
from studies.score_evidence import Z_95, Estimate
from studies.search.candidates import new_trial
from studies.search.initial_design import InitialDesign
from studies.search.proposer import Proposer
from studies.surrogate.encoding import Encoding
from studies.surrogate.posterior import SurrogateFitter
from studies.surrogate.score_warp import KNEE

STEPS = 200
"""Steps of a full trial."""

GAIN = 0.5
"""Points above the best published method from which a trial counts as found."""

_OPENING = InitialDesign(published=COMPARED)
_RUNGS = RungPlan(steps=(STEPS // 4, STEPS // 2), rule=Rule.MEDIAN, protected=Protected.BEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedTask:
    """Task with a planted truth.

    Attributes:
        seed: Seed of the truth and of all noise.
        noise: Standard deviation of an accuracy near one half over examples, in points.
        spread: Standard deviation of the score of a configuration over the seeds of its training, in points.
        is_flat: Whether all configurations have one true score.
    """

    seed: int
    noise: float
    spread: float = 0.0
    is_flat: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """Recommended trial of a study after some trials, by its estimates.

    Attributes:
        trials: Number of ended trials.
        cost: Number of steps, in full trials.
        truth: True score, in points; NaN while no trial is complete.
        estimate: Estimated score, in points.
        held: Whether its 95% interval contains the true score.
        of_all: Share of all trials whose intervals do.
        far: Number of trials with scores below the knee of the warp, four spreads below the median.
        far_held: Number of these whose intervals do.
        lead: Estimated lead of the best discovery over the best published method, in points; 0 without one.
        found: Whether the interval of the lead is above 0.
    """

    trials: int
    cost: float
    truth: float
    estimate: float
    held: bool = False
    of_all: float = math.nan
    far: int = 0
    far_held: int = 0
    lead: float = 0.0
    found: bool = False


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
    sampler: str, space: SearchSpace, task: SimulatedTask, *, trials: int, checkpoints: set[int]
) -> SimulatedStudy:
    """Run a study of a sampler on a task; equal trials have equal readings for all samplers.

    Args:
        checkpoints: Numbers of ended trials at which a configuration is recommended.
    """
    seed = task.seed
    truth = (FlatTruth if task.is_flat else PlantedTruth)(space, seed)
    measurements = Measurements(seed, noise=task.noise, steps=STEPS)
    proposer = Proposer(space, sampler=sampler, seed=seed, initial_design=_OPENING)
    rungs = replace(_RUNGS, examples=measurements.examples)
    fitter = SurrogateFitter(Encoding(space).features_of)
    tuned, found_trial, cost = truth.best_published(), None, 0.0
    history = StudyHistory(ScoreNoise(steps=STEPS, examples=measurements.examples))
    truths: list[float] = []
    recommended = []
    for number in range(trials):
        is_design = proposer.next_of_design(history) is not None
        original = None if is_design else early_original(history)
        if original is None:
            candidate = proposer.propose(history)
            truths.append(truth.score(candidate))
            trial = new_trial(candidate, space.shape, number=number, head_parameters=0, description="")
        else:
            trial = repeat(original, number, study_seed=seed)
            truths.append(truths[original.number])
        trained = truths[-1] + draw_normal(seed, "trained", trial.fingerprint, spread=task.spread)
        history = history.added([replace(trial, state=TrialState.RUNNING)])
        for step in (*_RUNGS.steps, STEPS):
            reading = measurements.read(number, trial.fingerprint, trained, step)
            history = history.reported(TrialReport(trial=number, attempt=1, reading=reading))
            if step == STEPS or original is not None:
                continue
            if stop_reason(rungs, history, reading) is not None:
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
    lead = None
    if None not in leaders:
        lead = Estimate.of_difference(means[leaders], covariance[np.ix_(leaders, leaders)])
    return Recommendation(
        trials=len(history),
        cost=cost,
        truth=truths[best],
        estimate=100 * float(means[best]),
        held=bool(held[best]),
        of_all=float(held.mean()),
        far=int(is_far.sum()),
        far_held=int(held[is_far].sum()),
        lead=0.0 if lead is None else 100 * lead.mean,
        found=lead is not None and lead.low > 0,
    )
