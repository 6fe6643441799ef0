"""Processor time of a proposal by the number of trials, and of building a history of its records.

    python benchmarks/proposals.py                                   factored, tpe and random at 100, 1,000 and 20,000.
    python benchmarks/proposals.py --samplers tpe --sizes 5000
    python benchmarks/proposals.py --against ../other-checkout       in turns with another checkout.

The trials of a study are uniform draws over structures; three in five are pruned at a rung. Each proposal includes the
reading of the one before. The first proposal fits the hyperparameters, so it is left out of the median.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
if "--worker" not in sys.argv:
    sys.path.insert(0, str(ROOT))

from search_space.backbones import shape_of  # noqa: E402
from search_space.space.space import SearchSpace  # noqa: E402
from studies.history.history import StudyHistory  # noqa: E402
from studies.history.noise import ScoreNoise  # noqa: E402
from studies.records import Reading, TrialReport, TrialState  # noqa: E402
from studies.search.candidates import new_trial  # noqa: E402
from studies.search.proposer import Proposer  # noqa: E402

STEPS, PROPOSALS = (50, 100, 200), 11
FIRST_AT = datetime(2026, 1, 1, tzinfo=UTC)


def ledger_of(space: SearchSpace, trials: int) -> StudyHistory:
    """Return a history of random draws, whose scores follow from their numbers."""
    proposer = Proposer(space, sampler="random", seed=0)
    history = StudyHistory(ScoreNoise(steps=STEPS[-1], examples=500))
    for number in range(trials):
        trial = new_trial(proposer.propose(history), space.shape, number=number, head_parameters=0)
        at = FIRST_AT + timedelta(seconds=number)
        rungs = STEPS[: (3, 1, 2, 1, 3)[number % 5]]
        score = 0.3 + 0.2 * (number * 37 % 101) / 101
        history = history.added([replace(trial, state=TrialState.RUNNING, attempt=1, created_at=at)])
        for step in rungs:
            is_last, is_whole = step == rungs[-1], step == STEPS[-1]
            state = TrialState.COMPLETE if is_whole else TrialState.PRUNED if is_last else TrialState.RUNNING
            history = history.reported(report_of(number, step, score, state), at)
    return history


def report_of(number: int, step: int, score: float, state: TrialState = TrialState.RUNNING) -> TrialReport:
    """Return the report of a reading, and of the end if the state is terminal."""
    metrics = {"validation_loss": 2 - score}
    reading = Reading(trial=number, step=step, score=score, metrics=metrics, train_loss=1.0, seconds=1.0)
    end = {"score": score if state is TrialState.COMPLETE else None}
    end["reason"] = "a benchmark" if state is TrialState.PRUNED else None
    return TrialReport(trial=number, attempt=1, reading=reading, state=state, **end)


def measure_sampler(sampler: str, space: SearchSpace, ledger: StudyHistory) -> dict[str, float]:
    """Measure the seconds of building the history, of the first proposal, and the median of the others."""
    proposer, times = Proposer(space, sampler=sampler, seed=0), []
    readings = {trial.number: known for trial, known in ledger.entries()}
    began_at = time.process_time()
    history = StudyHistory.of(list(ledger), readings, ledger.noise)
    replay = time.process_time() - began_at
    for number in range(len(history), len(history) + PROPOSALS):
        began_at = time.process_time()
        candidate = proposer.propose(history)
        times.append(time.process_time() - began_at)
        trial = new_trial(candidate, space.shape, number=number, head_parameters=0)
        at = FIRST_AT + timedelta(seconds=number)
        history = history.added([trial]).reported(report_of(number, STEPS[0], 0.4, TrialState.PRUNED), at)
    return {"replay": replay, "first": times[0], "proposal": median(times[1:])}


def measure(samplers: Sequence[str], sizes: Sequence[int]) -> Iterator[tuple[str, int, dict[str, float]]]:
    """Measure all times of this checkout."""
    config = json.loads((ROOT / "tests/data/backbones/roberta_base/config.json").read_text())
    space = SearchSpace(shape=shape_of(config), budget=600_000)
    ledgers = {size: ledger_of(space, size) for size in sizes}
    for sampler in samplers:
        for size in sizes:
            yield sampler, size, measure_sampler(sampler, space, ledgers[size])


def measure_checkout(checkout: Path, arguments: argparse.Namespace) -> list[tuple[str, int, dict[str, float]]]:
    """Measure all times of a checkout in a process of its own."""
    script, options = checkout / "benchmarks" / "proposals.py", ["--worker", "--samplers", *arguments.samplers]
    done = subprocess.run(
        [sys.executable, script, *options, "--sizes", *map(str, arguments.sizes)],
        env={**os.environ, "PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def main() -> None:
    """Measure, in turns if there are two checkouts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samplers", nargs="+", default=["factored", "tpe", "random"])
    parser.add_argument("--sizes", nargs="+", type=int, default=[100, 1_000, 20_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        json.dump(list(measure(arguments.samplers, arguments.sizes)), sys.stdout)
        return
    checkouts = [ROOT] if arguments.against is None else [arguments.against.resolve(), ROOT]
    rounds = [[measure_checkout(checkout, arguments) for checkout in checkouts] for _ in range(arguments.rounds)]
    for index, (sampler, size, _) in enumerate(rounds[0][0]):
        for part in ("replay", "first", "proposal"):
            each = [median(times[which][index][2][part] for times in rounds) for which in range(len(checkouts))]
            ratio = f"  x {each[1] / each[0]:.2f}" if len(each) > 1 and each[0] > 0 else ""
            times = "".join(f"{1000 * seconds:>11.1f} ms" for seconds in each)
            print(f"{sampler:<10}{size:>8,}  {part:<10}{times}{ratio}")


if __name__ == "__main__":
    main()
