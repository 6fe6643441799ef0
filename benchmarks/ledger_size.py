"""What a large ledger costs to read: CPU seconds of commands, with their limits.

    python benchmarks/ledger_size.py                     20,000 trials, about two minutes
    python benchmarks/ledger_size.py --trials 2000
    python benchmarks/ledger_size.py --keep large.db     keeps the ledger; measures it again if it is there

The trials are random proposals of the default space on RoBERTa-base; scores are a formula with noise, and three rungs
prune half of the trials each.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from search_space.backbones import shape_of
from search_space.space.space import SearchSpace
from studies.launching.beginning import new_study
from studies.search.candidates import new_trial
from studies.search.proposer import Proposer
from studies.specification import Specification, specification_from_mapping
from studies.store.ledger import Ledger
from studies.store.records import NewTrial, Outcome, ReadingRecord, TrialState

BACKBONE = Path(__file__).parents[1] / "tests" / "data" / "backbones" / "roberta_base"
STUDY = "large"
RUNGS = (50, 100, 200)
STEPS = 400
BATCH = 500


@dataclass(frozen=True)
class Line:
    """One line of the table: what was measured, and the limit."""

    what: str
    value: float
    unit: str
    limit: float | None = None

    def text(self) -> str:
        """The line as it is printed."""
        limit = "" if self.limit is None else f"≤ {self.limit:g}{'' if self.value <= self.limit else '  MISSED'}"
        return f"{self.what:<60}{self.value:>10.2f} {self.unit:<6}{limit}"


def specification(trials: int) -> Specification:
    return specification_from_mapping(
        {
            "name": STUDY,
            "backbone": str(BACKBONE),
            "task": {"name": "docstrings"},
            "budget": "0.5%",
            "trials": trials,
            "training": {"steps": STEPS},
            "search": {"sampler": "random", "published": "none"},
        }
    )


def fill(file: Path, trials: int) -> None:
    """Make the ledger, through the verbs of a keeper."""
    study = specification(trials)
    shape = shape_of(json.loads((BACKBONE / "config.json").read_text()))
    space = SearchSpace(shape=shape, budget=study.parameter_budget().parameters(shape), options=study.search)
    proposer = Proposer(space, sampler="random", seed=0)
    with Ledger.open(f"sqlite:///{file}") as ledger:
        record = ledger.create_study(new_study(study, shape))
        epoch = ledger.take_over(record.id, "benchmark")
        for first in range(0, trials, BATCH):
            proposals = [proposer.propose() for _ in range(min(BATCH, trials - first))]
            rows = [new_trial(one, space.shape, study_seed=0, head_parameters=1538) for one in proposals]
            ledger.add_trials(record.id, epoch, rows, worker="w/1")
            for row in rows:
                readings, outcome = measured(row)
                ledger.settle(record.id, epoch, row.number, 1, readings=readings, outcome=outcome)


def measured(trial: NewTrial) -> tuple[list[ReadingRecord], Outcome]:
    """Readings up to the rung that prunes the trial, or to the end, and how it ends."""
    chance = random.Random(trial.number)
    sides = [side for side in (trial.attention, trial.ffn) if side is not None]
    truth = 0.6 + 0.05 * len(sides) + 0.1 * sum(side.form != "const" for side in sides)
    stop = next((index for index in range(len(RUNGS)) if chance.random() < 0.5), None)
    steps = (*RUNGS, STEPS) if stop is None else RUNGS[: stop + 1]
    readings = [
        ReadingRecord(
            trial=trial.number,
            step=step,
            attempt=1,
            score=truth * (1 - 2 ** (-step / 60)) + chance.gauss(0, 0.01),
            metrics={"accuracy": truth, "validation_loss": 1 - truth},
            train_loss=0.7,
            seconds=1.0,
            rung=RUNGS.index(step) if step in RUNGS else None,
        )
        for step in steps
    ]
    if stop is None:
        return readings, Outcome(state=TrialState.COMPLETE, score=readings[-1].score)
    return readings, Outcome(state=TrialState.PRUNED, reason=f"rung {stop}: below the cut")


def cpu_seconds(*command: str) -> float:
    """CPU time of a command of its own, start-up included."""

    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = used()
    run = [sys.executable, "-c", "import sys; from deltaspace.commands.main import main; sys.exit(main())", *command]
    subprocess.run(run, check=True, capture_output=True)
    return used() - before


def lines(file: Path, trials: int) -> Iterator[Line]:
    """Every line of the table, as it is measured."""
    storage = ("--storage", f"sqlite:///{file}")
    yield Line(f"ledger of {trials:,} trials", file.stat().st_size / 2**20, "MiB")
    yield Line("deltaspace show", cpu_seconds("show", STUDY, *storage), "s", 3)
    for answer in ("SELECT * FROM trials", "SELECT * FROM readings"):
        yield Line(
            f'deltaspace query "{answer}" --format csv',
            cpu_seconds("query", answer, "--format", "csv", *storage),
            "s",
            5,
        )
    with tempfile.TemporaryDirectory(prefix="ledger-size-") as folder:
        export = cpu_seconds("export", STUDY, f"{folder}/optuna.db", "--format", "optuna", *storage)
    yield Line("deltaspace export --format optuna", export, "s", 20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20_000, help="trials of the ledger (default 20000)")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="where the ledger is, or shall be")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ledger-size-") as folder:
        file = arguments.keep or Path(folder) / "ledger.db"
        if not file.exists():
            fill(file, arguments.trials)
        load = " ".join(f"{one:.1f}" for one in os.getloadavg())
        print(f"{os.cpu_count()} cores, load {load}")
        for line in lines(file, arguments.trials):
            print(line.text(), flush=True)


if __name__ == "__main__":
    main()
