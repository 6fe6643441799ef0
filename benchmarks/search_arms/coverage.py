"""Coverage of the 95% intervals of score estimates on planted truths, by the spread of retrained scores."""

from dataclasses import dataclass

import numpy as np

from search_arms.readings import Measurements
from search_arms.truth import PlantedTruth, draw_normal
from search_space.published import COMPARED
from search_space.space.random_draw import RandomTrial
from search_space.space.space import SearchSpace
from studies.history.history import StudyHistory
from studies.history.noise import ScoreNoise
from studies.records import TrialReport, TrialState
from studies.score_evidence import Estimate
from studies.search.candidates import new_trial
from studies.surrogate.encoding import Encoding
from studies.surrogate.posterior import SurrogateFitter

_STEPS = (50, 100, 200)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Coverage in one study.

    Attributes:
        of_all: Share of the trials whose interval contains their expected score.
        of_best: Whether the interval of the trial with the best estimate does.
        deviation: Mean of the stated standard deviations, in points.
        error: Root of the mean squared error of the estimates, in points.
    """

    of_all: float
    of_best: bool
    deviation: float
    error: float


def coverage_of(space: SearchSpace, seed: int, *, trials: int, noise: float, spread: float) -> Coverage:
    """Return the coverage in a study of published methods and random trials, all complete, on the task of a seed.

    Args:
        noise: Standard deviation of an accuracy near one half over examples, in points.
        spread: Standard deviation of the score of a configuration over the seeds of its training, in points.
    """
    truth, measurements = PlantedTruth(space, seed), Measurements(seed, noise=noise, steps=_STEPS[-1])
    history, truths = StudyHistory(ScoreNoise(steps=_STEPS[-1], examples=measurements.examples)), []
    for number in range(trials):
        draw = RandomTrial(1000 * seed + number)
        is_published = number < len(COMPARED)
        candidate = space.suggest_published(COMPARED[number], draw) if is_published else space.suggest(draw)
        truths.append(truth.score(candidate))
        trained = truths[-1] + draw_normal(seed, "trained", candidate.fingerprint, spread=spread)
        trial = new_trial(candidate, space.shape, number=number, head_parameters=0, description="")
        history = history.added([trial])
        for step in _STEPS:
            reading = measurements.read(number, candidate.fingerprint, trained, step)
            history = history.reported(TrialReport(trial=number, attempt=1, reading=reading))
        history = history.changed(number, state=TrialState.COMPLETE)
    fitter = SurrogateFitter(Encoding(space).features_of)
    means, covariance = fitter.posterior(history).joint([fitter.features(one) for one in history])
    pairs = zip(means, np.sqrt(np.diag(covariance)), strict=True)
    estimates = [Estimate(mean=float(mean), deviation=float(deviation)) for mean, deviation in pairs]
    held = [one.low <= score / 100 <= one.high for one, score in zip(estimates, truths, strict=True)]
    return Coverage(
        of_all=float(np.mean(held)),
        of_best=held[int(np.argmax(means))],
        deviation=100 * float(np.mean([one.deviation for one in estimates])),
        error=float(np.sqrt(np.mean((100 * means - truths) ** 2))),
    )
