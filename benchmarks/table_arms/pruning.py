"""Studies of rows of a table in random order, with rules of pruning at the recorded readings."""

import json
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

import numpy as np
from search_arms.intervals import with_interval

from search_space.backbones.shape import BackboneShape
from search_space.codec import configuration_from_json
from search_space.space.space import Candidate, SearchSpace
from studies.history.history import StudyHistory
from studies.history.noise import ScoreNoise
from studies.pruning.rungs import LEAST_OTHERS, RungPlan, below_the_median
from studies.records import TrialRecord, TrialReport, TrialState
from studies.score_evidence import Estimate
from studies.search.candidates import new_trial
from studies.surrogate.encoding import Encoding
from studies.surrogate.posterior import SurrogateFitter
from trial_runner.requests import Reading

_NO_RUNGS = RungPlan(steps=())

# decides from the history with the newest reading whether its trial stops
Stops = Callable[[SurrogateFitter, StudyHistory, Reading], bool]


def below_median(fitter: SurrogateFitter, history: StudyHistory, reading: Reading) -> bool:
    """Apply the rule of the product."""
    return below_the_median(_NO_RUNGS, history, reading) is not None


def below(share: float) -> Stops:
    """Return the rule that stops a trial below a quantile of the others at the step."""

    def stops(fitter: SurrogateFitter, history: StudyHistory, reading: Reading) -> bool:
        others = [*history.scores_at(reading.step)]
        others.remove(reading.score)
        return len(others) >= LEAST_OTHERS and reading.score < np.quantile(others, share)

    return stops


def unlikely(least: float) -> Stops:
    """Return the rule that stops a trial whose probability to beat the best other one is below a bound."""

    def stops(fitter: SurrogateFitter, history: StudyHistory, reading: Reading) -> bool:
        others = [fitter.features(one) for one in history if one.number != reading.trial]
        if len(others) < LEAST_OTHERS:
            return False
        posterior = fitter.posterior(history)
        rival = others[int(np.argmax(posterior.means(others)))]
        own = fitter.features(history[reading.trial])
        return Estimate.of_difference(*posterior.joint([own, rival])).chance < least

    return stops


RULES: Mapping[str, Stops] = {
    "none": lambda *_: False,
    "below the median": below_median,
    "below the lower third": below(1 / 3),
    **{f"chance below {least:.0%}": unlikely(least) for least in (0.02, 0.05, 0.1)},
}


TRIALS = 40
"""Number of trials of a study."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of one task and budget.

    Attributes:
        task: Name of the task.
        share: Budget as it is given, such as ``0.03%``.
        budget: Budget in parameters.
        seed_deviation: Standard deviation of scores of the task over seeds, in points.
        example_error: Standard error of scores of the task over other examples in comparisons, in points.
    """

    task: str
    share: str
    rows: Sequence[Mapping[str, Any]]
    shape: BackboneShape
    budget: int
    seed_deviation: float
    example_error: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PrunedStudy:
    """Outcome of a study.

    Attributes:
        steps: Share of the steps of a study without pruning.
        test_score: Score on test of the trial with the best estimate.
        test_of_best_score: That of the trial with the highest score.
    """

    steps: float
    test_score: float
    test_of_best_score: float


def pruned_study(
    rows: Sequence[Mapping[str, Any]], shape: BackboneShape, budget: int, stops: Stops, settings: Mapping[str, int]
) -> PrunedStudy:
    """Run a study of rows in their order, with rungs at a quarter and at half of the steps."""
    space = SearchSpace(shape=shape, budget=budget)
    fitter, steps = SurrogateFitter(Encoding(space).features_of), settings["steps"]
    history, spent = StudyHistory(score_noise(settings)), 0
    for number, row in enumerate(rows):
        history = history.added([trial_of(row, number, shape)])
        for reading in readings_of(row, number, steps):
            history = history.reported(TrialReport(trial=number, attempt=1, reading=reading))
            if reading.step < steps and stops(fitter, history, reading):
                history = history.changed(number, state=TrialState.PRUNED, score=None)
                break
        else:
            history = history.changed(number, state=TrialState.COMPLETE, score=reading.score)
        spent += reading.step
    complete = [one for one in history if one.state is TrialState.COMPLETE]
    means = fitter.posterior(history).means([fitter.features(one) for one in complete])
    expected, highest = (
        rows[complete[max(range(len(complete)), key=values.__getitem__)].number]["test_score"]
        for values in (means, [one.score or 0.0 for one in complete])
    )
    return PrunedStudy(steps=spent / (steps * len(rows)), test_score=expected, test_of_best_score=highest)


def score_noise(settings: Mapping[str, int]) -> ScoreNoise:
    """Return the precision of the readings of rows of some settings."""
    return ScoreNoise(steps=settings["steps"], examples=settings["validation"], rung_examples=settings["rung"])


def candidate_of(row: Mapping[str, Any], shape: BackboneShape) -> Candidate:
    """Return the candidate that a row has trained."""
    rates = (row["attention_learning_rate"], row["ffn_learning_rate"])
    known = [None if rate is None or math.isnan(rate) else rate for rate in rates]
    return Candidate.of(configuration_from_json(json.loads(row["configuration"])), (known[0], known[1]), shape)


def trial_of(row: Mapping[str, Any], number: int, shape: BackboneShape) -> TrialRecord:
    """Return the running trial of a row."""
    trial = new_trial(candidate_of(row, shape), shape, number=number, head_parameters=0, description="")
    return replace(trial, state=TrialState.RUNNING, proposal={})


def readings_of(row: Mapping[str, Any], number: int, steps: int) -> Iterator[Reading]:
    """Yield the readings of the trial of a row at a quarter, at half and at all of its steps."""
    rungs = zip(row["rung_steps"][:2], row["rung_scores"], row["rung_losses"], strict=False)
    for step, score, loss in (*rungs, (steps, row["score"], row["validation_loss"])):
        metrics = {"validation_loss": loss}
        yield Reading(trial=number, step=int(step), score=score, metrics=metrics, train_loss=loss, seconds=1.0)


def pruning_lines(tables: Sequence[Table], settings: Mapping[str, int], studies: int) -> Iterator[str]:
    """Yield a line for each rule: means over studies of `TRIALS` trials of each table, with 95% intervals."""
    yield "| rule | studies | share of the steps | test, by estimate | less none | test, by highest score | less none |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    orders = [(random.Random(seed).sample(table.rows, TRIALS), table) for seed in range(studies) for table in tables]
    base: list[PrunedStudy] = []
    for rule, stops in RULES.items():
        found = [pruned_study(rows, table.shape, table.budget, stops, settings) for rows, table in orders]
        base = base or found
        cells = [rule, len(found), f"{fmean(one.steps for one in found):.2f}"]
        for name in ("test_score", "test_of_best_score"):
            points = [100 * getattr(one, name) for one in found]
            gaps = [point - 100 * getattr(one, name) for point, one in zip(points, base, strict=True)]
            cells += [f"{fmean(points):.2f}", "" if found is base else with_interval(gaps)]
        yield f"| {' | '.join(map(str, cells))} |"
