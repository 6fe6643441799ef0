"""How far outliers are followed, and what they cost: warps of the surrogate's scores on real trials.

    python benchmarks/warps.py sqlite:///STUDIES.db …              all studies there, those of one task together
    python benchmarks/warps.py --draws 20 sqlite:///STUDIES.db

Of all complete trials of a task some are drawn, outliers among them, and the scores of the others are predicted. The
table has negative log densities of readings on the scale of the scores, in nats a trial (lower is better), of all held
out trials and of those that are no outliers, with differences to the first line, draw by draw, and the standard error
of their mean. Outliers are more than four spreads below the median. The last columns are of outliers that the surrogate
knows: the mean distance of estimate and reading, and the share of readings in the 95% interval of the estimate.
"""

import argparse
import json
import math
import os
import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy.special import logsumexp

from studies.analysis.estimates import counted_examples
from studies.analysis.predictions import RecordedViews, history_of
from studies.ledger.ledger import Ledger
from studies.records import StudyKind, StudyRecord, TrialState
from studies.score_evidence import Z_95
from studies.surrogate.features import Features
from studies.surrogate.observation import Observation
from studies.surrogate.posterior import Posterior, SurrogateFitter
from studies.surrogate.score_warp import KNEE, LOGARITHMIC, Warp, logarithmic
from studies.surrogate.structure_distances import Array

SHARE = 0.6
"""Of the trials of a task, which the surrogate knows."""

_GRID = np.linspace(-8, 8, 4001)
_TO_DEVIATION = 1.4826
_ONE_TASK = ("task", "backbone", "training", "metric")


def _below(scores: Array) -> Array:
    return np.maximum(KNEE - scores, 0.0)


CUT = Warp(forward=lambda z: np.maximum(z, KNEE), back=lambda w: w, slope=np.ones_like)
"""The baseline: scores below the knee count as the knee."""

NONE = Warp(forward=lambda z: z, back=lambda w: w, slope=np.ones_like)
LINEAR = Warp(
    forward=lambda z: np.where(z < KNEE, KNEE - 0.1 * _below(z), z),
    back=lambda w: np.where(w < KNEE, KNEE - 10 * _below(w), w),
    slope=lambda z: np.where(z < KNEE, 0.1, 1.0),
)
STEEP = logarithmic(1.0, 1.0)
"""As steep below the knee as above it."""

EVEN = Warp(forward=LOGARITHMIC.forward, back=LOGARITHMIC.back, slope=np.ones_like)
"""Noise is as large on the warped scale as above the knee, as if seeds of bad trials differed by more."""

WARPS = {
    "cut": CUT,
    "no warp": NONE,
    "tenth": LINEAR,
    "logarithm, steep": STEEP,
    "logarithm, even": EVEN,
    "logarithm": LOGARITHMIC,
}
"""By name; the first one is the baseline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The complete trials of a task and what the surrogate sees of them, by the same numbers."""

    trials: tuple[Observation, ...]
    views: dict[int, Features]

    def view_of(self, observation: Observation) -> Features:
        """What the surrogate sees of a trial."""
        return self.views[observation.number]


def main() -> None:
    """Print a line for every task and warp."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("storages", nargs="*", metavar="STORAGE")
    parser.add_argument("--draws", type=int, default=12, help="of the trials that are known (default 12)")
    arguments = parser.parse_args()
    tasks = known_of(arguments.storages)
    if not tasks:
        sys.exit("there must be a study with complete trials; got none. Name the storage of one.")
    for line in lines_of(tasks, arguments.draws):
        print(line, flush=True)


def known_of(storages: Sequence[str]) -> dict[str, Known]:
    """The complete trials of every task of some storages, each configuration and seed once; by a name of the task."""
    trials: dict[str, list[Observation]] = defaultdict(list)
    views: dict[str, dict[int, Features]] = defaultdict(dict)
    seen: set[tuple[str, str, int]] = set()
    for storage in storages:
        with Ledger.open(storage, read_only=True) as ledger:
            for study in ledger.studies():
                task = _task(study)
                for seed, observation, view in _trials(ledger, study):
                    if (task, observation.fingerprint, seed) not in seen:
                        seen.add((task, observation.fingerprint, seed))
                        views[task][len(trials[task])] = view
                        trials[task].append(replace(observation, number=len(trials[task])))
    return {task: Known(trials=tuple(of_task), views=views[task]) for task, of_task in trials.items()}


def _task(study: StudyRecord) -> str:
    same = {key: study.specification.get(key) for key in _ONE_TASK} | {"budget": study.budget_parameters}
    return json.dumps(same, sort_keys=True, default=str)


def _trials(ledger: Ledger, study: StudyRecord) -> Iterator[tuple[int, Observation, Features]]:
    """Seeds, observations and views of the complete trials of a search."""
    trials = ledger.trials(study.id)
    complete = [one for one in trials if one.state is TrialState.COMPLETE and one.replicate_of is None]
    if study.kind is not StudyKind.SEARCH or not complete:
        return
    seen = RecordedViews(study, trials)
    history = history_of(trials, ledger.readings_by_trial(study.id), counted_examples(ledger, study))
    by_number = {one.number: one for one in history}
    for trial in complete:
        observation = by_number[trial.number]
        if observation.readings:
            yield trial.seed, observation, seen.view_of(observation)


def lines_of(tasks: dict[str, Known], draws: int) -> Iterator[str]:
    """The table."""
    heads = f"{'all':>8} {'difference':>17} {'no outliers':>12} {'difference':>15} {'distance':>9} {'inside':>7}"
    yield f"{'task':<20} {'trials':>6} {'outliers':>8} {'warp':<16} {heads}"
    for name, known in tasks.items():
        found = {warp: measured(known, draws, warp) for warp in WARPS}
        first, count = next(iter(found.values())), int(_are_outliers(known.trials).sum())
        for warp, rows in found.items():
            middle, apart = np.nanmean(rows, axis=0), rows - first
            error = apart.std(axis=0) / math.sqrt(draws)
            gain = apart.mean(axis=0)
            yield (
                f"{_short(name):<20} {len(known.trials):>6} {count:>8} {warp:<16} {middle[0]:>8.3f}"
                f" {gain[0]:>+8.3f} ± {error[0]:<6.3f} {middle[1]:>12.3f} {gain[1]:>+7.3f} ± {error[1]:.3f}"
                f" {middle[2]:>9.4f} {middle[3]:>7.0%}"
            )


def measured(known: Known, draws: int, warp: str) -> Array:
    """Densities of all held out trials and of those that are no outliers, and how known outliers are estimated."""
    rows = []
    far = _are_outliers(known.trials)
    for number in range(draws):
        draw = random.Random(f"{number}")
        # outliers are few: they are drawn by themselves
        chosen = [
            one
            for is_far in (False, True)
            for some in [[one for one, found in zip(known.trials, far, strict=True) if found == is_far]]
            for one in draw.sample(some, max(1, round(SHARE * len(some))) if some else 0)
        ]
        chosen.sort(key=lambda one: one.number)
        numbers = {one.number for one in chosen}
        others = [one for one in known.trials if one.number not in numbers]
        belief = SurrogateFitter(known, warp=WARPS[warp]).belief(chosen)
        densities = np.array([_density(belief, known.view_of(one), one) for one in others])
        rows.append(
            (
                densities.mean(),
                densities[[not far[one.number] for one in others]].mean(),
                *_estimates(belief, known, [one for one in chosen if far[one.number]]),
            )
        )
    return np.array(rows)


def _density(belief: Posterior, view: Features, trial: Observation) -> float:
    """Negative log density of the last score of a trial that is not known."""
    last, values = trial.readings[-1], belief.process.values
    (mean,), (deviation,) = belief.process.predict(belief.points([view]))
    noise = math.hypot(belief.scale.spread * math.hypot(values["trial"], values["nugget"]), last.standard_error)
    scores = belief.scale.middle + belief.scale.spread * belief.warp.back(mean + deviation * _GRID)
    logs = -0.5 * _GRID**2 - 0.5 * ((last.score - scores) / noise) ** 2 - math.log(2 * math.pi * noise)
    return -float(logsumexp(logs)) - math.log(_GRID[1] - _GRID[0])


def _estimates(belief: Posterior, known: Known, far: Sequence[Observation]) -> tuple[float, float]:
    """Mean distance of estimates and readings of known outliers, and the share of readings within the intervals."""
    if not far:
        return math.nan, math.nan
    means, deviations = belief.predict([known.view_of(one) for one in far])
    scores = np.array([one.readings[-1].score for one in far])
    errors = np.array([one.readings[-1].standard_error for one in far])
    values = belief.process.values
    noise = belief.scale.spread * math.hypot(values["trial"], values["nugget"])
    apart = np.abs(means - scores)
    return float(apart.mean()), float((apart <= Z_95 * np.sqrt(deviations**2 + errors**2 + noise**2)).mean())


def _excess(score: float, scores: Sequence[float]) -> float:
    middle = float(np.median(scores))
    spread = _TO_DEVIATION * float(np.median(np.abs(np.array(scores) - middle)))
    return max(middle + KNEE * spread - score, 0.0)


def _are_outliers(trials: Sequence[Observation]) -> np.ndarray:
    scores = [one.readings[-1].score for one in trials]
    return np.array([_excess(score, scores) > 0 for score in scores])


def _short(name: str) -> str:
    task = json.loads(name)["task"]
    return str(
        task.get("name") or str(task.get("folder") or (task.get("hub") or {}).get("name") or "task").rsplit("/", 1)[-1]
    )


if __name__ == "__main__":
    main()
