"""Processor time of a proposal by the number of trials, and of a replay of the ledger.

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
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if "--worker" not in sys.argv:
    sys.path.insert(0, str(ROOT))

from search_space.backbones import shape_of  # noqa: E402
from search_space.space.space import SearchSpace  # noqa: E402
from studies.records import Reading, TrialRecord, TrialState  # noqa: E402
from studies.search.candidates import new_trial  # noqa: E402
from studies.search.proposer import Proposer  # noqa: E402
from studies.surrogate.recorded_observations import ObservationModel  # noqa: E402

STEPS, PROPOSALS = (50, 100, 200), 11
FIRST_AT = datetime(2026, 1, 1, tzinfo=UTC)


def proposer_of(space: SearchSpace, sampler: str) -> Proposer:
    model = ObservationModel(steps=STEPS[-1], examples=500)
    return Proposer(space, sampler=sampler, seed=0, model=model)


def ledger_of(space: SearchSpace, trials: int) -> tuple[list[TrialRecord], dict[int, list[Reading]]]:
    """Build a ledger of random draws, whose scores follow from their numbers."""
    proposer, records, readings = proposer_of(space, "random"), [], {}
    for number in range(trials):
        proposal = proposer.propose()
        proposer.end_trial(number, TrialState.PRUNED)
        rungs = STEPS[: (3, 1, 2, 1, 3)[number % 5]]
        score = 0.3 + 0.2 * (number * 37 % 101) / 101
        readings[number] = [
            Reading(
                trial=number, step=step, score=score, metrics={"validation_loss": 2 - score}, train_loss=1.0,
                seconds=1.0, attempt=1, rung=None,
            )
            for step in rungs
        ]  # fmt: skip
        trial = new_trial(proposal, space.shape, number=number, head_parameters=0)
        at, is_complete = FIRST_AT + timedelta(seconds=number), len(rungs) == len(STEPS)
        records.append(
            replace(
                trial, state=TrialState.COMPLETE if is_complete else TrialState.PRUNED,
                score=score if is_complete else None, steps=rungs[-1], last_score=score, attempt=1, created_at=at,
                ended_at=at,
            )
        )  # fmt: skip
    return records, readings


def measure_sampler(sampler: str, space: SearchSpace, trials: int, ledger: Any) -> dict[str, float]:
    """Measure the seconds of the replay, of the first proposal, and the median of the others."""
    proposer, times = proposer_of(space, sampler), []
    began_at = time.process_time()
    proposer.replay(ledger[0][:trials], ledger[1])
    replay = time.process_time() - began_at
    for number in range(trials, trials + PROPOSALS):
        began_at = time.process_time()
        proposer.propose()
        times.append(time.process_time() - began_at)
        proposer.add_reading(number, STEPS[0], 0.4)
        proposer.end_trial(number, TrialState.PRUNED)
    return {"replay": replay, "first": times[0], "proposal": median(times[1:])}


def measure(samplers: Sequence[str], sizes: Sequence[int]) -> Iterator[tuple[str, int, dict[str, float]]]:
    """Measure all times of this checkout."""
    config = json.loads((ROOT / "tests/data/backbones/roberta_base/config.json").read_text())
    space = SearchSpace(shape=shape_of(config), budget=600_000)
    ledger = ledger_of(space, max(sizes))
    for sampler in samplers:
        for size in sizes:
            yield sampler, size, measure_sampler(sampler, space, size, ledger)


def measure_checkout(checkout: Path, arguments: argparse.Namespace) -> list[tuple[str, int, dict[str, float]]]:
    """Measure all times of a checkout in a process of its own."""
    command = [sys.executable, __file__, "--worker", "--samplers", *arguments.samplers, "--sizes"]
    done = subprocess.run(
        [*command, *map(str, arguments.sizes)],
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
