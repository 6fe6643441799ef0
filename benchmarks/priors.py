"""How well the model of the search foretells trials that it was not told of, by the priors of its hyper-parameters.

    python benchmarks/priors.py sqlite:///STUDIES.db …            all studies there, those of one task together
    python benchmarks/priors.py --draws 20 sqlite:///STUDIES.db

Of all complete trials of a task some are drawn and told, the scores of the others are foretold. Studies are of one task
where task, backbone, budget and training are the same; `benchmarks/real_studies.py` makes such. Correlations are of
scores foretold and read; densities are negative logarithms, so lower is better. Differences are to the first priors,
draw by draw, with the standard error of their mean over draws; trials that collapsed count in neither.
"""

import argparse
import json
import os
import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from studies.queries.estimates import RecordedViews, history_of, recorded_error
from studies.records import StudyKind, StudyRecord, TrialState
from studies.search.factored.belief import Believer
from studies.search.factored.hyperparameters import PRIORS, PriorsOf
from studies.search.factored.observation import Observation
from studies.search.factored.view import View
from studies.store.ledger import Ledger

TOLD = (12, 25, 50, 100)
_MOST_TOLD = 0.7
_COLLAPSED = 3.5
"""Robust standard deviations below the median."""

_TO_DEVIATION = 1.4826
_ONE_TASK = ("task", "backbone", "training", "metric")


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The complete trials of a task and what the model sees of them, by the same numbers."""

    trials: tuple[Observation, ...]
    views: dict[int, View]

    def view_of(self, observation: Observation) -> View:
        """What the model sees of a trial."""
        return self.views[observation.number]


def main() -> None:
    """Print a line for every task, number of trials told, and priors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("storages", nargs="+", metavar="STORAGE")
    parser.add_argument("--draws", type=int, default=12, help="of the trials that are told (default 12)")
    arguments = parser.parse_args()
    tasks = known_of(arguments.storages)
    if not tasks:
        sys.exit("there must be a study with complete trials; got none. Name the storage of one.")
    for line in lines_of(tasks, arguments.draws):
        print(line, flush=True)


def known_of(storages: Sequence[str]) -> dict[str, Known]:
    """The complete trials of every task of some storages, each configuration and seed once; by a name of the task."""
    trials: dict[str, list[Observation]] = defaultdict(list)
    views: dict[str, dict[int, View]] = defaultdict(dict)
    seen: set[tuple[str, str, int]] = set()
    for storage in storages:
        with Ledger.open(storage, read_only=True) as ledger:
            for study in ledger.studies():
                task = _task(study)
                for number, observation, view in _trials(ledger, study):
                    if (task, observation.fingerprint, number) not in seen:
                        seen.add((task, observation.fingerprint, number))
                        views[task][len(trials[task])] = view
                        trials[task].append(replace(observation, number=len(trials[task])))
    return {task: Known(trials=tuple(of_task), views=views[task]) for task, of_task in trials.items()}


def _task(study: StudyRecord) -> str:
    same = {key: study.specification.get(key) for key in _ONE_TASK} | {"budget": study.budget_parameters}
    return json.dumps(same, sort_keys=True, default=str)


def _trials(ledger: Ledger, study: StudyRecord) -> Iterator[tuple[int, Observation, View]]:
    """Seeds, observations and views of the complete trials of a search."""
    trials = ledger.trials(study.id)
    complete = [one for one in trials if one.state is TrialState.COMPLETE and one.replicate_of is None]
    if study.kind is not StudyKind.SEARCH or not complete:
        return
    seen = RecordedViews(study, trials)
    history = history_of(study, trials, ledger.readings_by_trial(study.id), recorded_error(ledger, study))
    by_number = {one.number: one for one in history}
    for trial in complete:
        observation = by_number[trial.number]
        if observation.readings:
            yield trial.seed, observation, seen.view_of(observation)


def lines_of(tasks: dict[str, Known], draws: int) -> Iterator[str]:
    """The table."""
    heads = f"{'correlation':>12} {'difference':>16} {'density':>9} {'difference':>18}"
    yield f"{'task':<24} {'trials':>6} {'told':>5} {'priors':<12} {heads}"
    for name, known in tasks.items():
        edited = [one for one in known.trials if one.configuration.edits]
        for told in TOLD:
            if told > _MOST_TOLD * len(known.trials):
                continue
            found = {priors: foretold(known, edited, told, draws, priors) for priors in PriorsOf}
            first = found[PriorsOf.ONE_TASK]
            for priors, measured in found.items():
                middle, apart = measured.mean(axis=0), measured - first
                error = apart.std(axis=0) / np.sqrt(draws)
                gain = apart.mean(axis=0)
                yield (
                    f"{_short(name):<24} {len(known.trials):>6} {told:>5} {priors.value:<12} {middle[0]:>12.3f}"
                    f" {gain[0]:>+8.3f} ± {error[0]:.3f} {middle[1]:>9.3f} {gain[1]:>+10.3f} ± {error[1]:.3f}"
                )


def foretold(known: Known, edited: Sequence[Observation], told: int, draws: int, priors: PriorsOf) -> np.ndarray:
    """Correlation and mean negative log density of scores that were not told, (draws, 2)."""
    rows = []
    for number in range(draws):
        chosen = random.Random(f"{told}/{number}").sample(known.trials, told)
        fingerprints = {one.fingerprint for one in chosen}
        others = [one for one in edited if one.fingerprint not in fingerprints]
        belief = Believer(known, priors=PRIORS[priors]).belief(chosen)
        means, deviations = belief.predict([known.view_of(one) for one in others])
        scores = np.array([one.readings[-1].score for one in others])
        errors = np.array([one.readings[-1].standard_error for one in others])
        middle = np.median(scores)
        learned = scores > middle - _COLLAPSED * _TO_DEVIATION * np.median(np.abs(scores - middle))
        variances = deviations**2 + errors**2
        densities = 0.5 * (np.log(2 * np.pi * variances) + (scores - means) ** 2 / variances)
        rows.append((np.corrcoef(means[learned], scores[learned])[0, 1], densities[learned].mean()))
    return np.array(rows)


def _short(name: str) -> str:
    task = json.loads(name)["task"]
    return str(task.get("name") or str(task.get("folder") or task.get("hub") or "task").rsplit("/", 1)[-1])


if __name__ == "__main__":
    main()
