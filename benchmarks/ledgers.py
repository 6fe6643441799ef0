"""Processor time and memory of the commands that read a large ledger.

    python benchmarks/ledgers.py                      20,000 trials, three passes
    python benchmarks/ledgers.py --trials 1000

The study is that of `proposals.py`, recorded in SQLite: draws uniform over structures, three in five of them pruned at
a rung, the losses of 400 validation examples beside every reading. The first command fits the model; the others find
its estimates in the cache.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from proposals import ROOT, STEPS, ledger_of

from search_space.backbones import shape_of
from search_space.space.space import SearchSpace
from studies.launch.study_creation import new_study
from studies.ledger.ledger import Ledger
from studies.ledger.reports import ReportEntry
from studies.records import ExampleRecord, NewTrial, Outcome, TrialRecord, TrialState
from studies.study_file import specification_of
from studies.study_file.recorded_specification import BegunSpecification

BACKBONE = ROOT / "tests/data/backbones/roberta_base"
LOSSES, CORRECT = b"\x00\x3c" * 400, b"\xff" * 50  # of 400 examples, as the ledger holds them
COMMANDS = (
    ["show", "large"],
    ["show", "large"],
    ["best", "large"],
    ["trial", "large", "7"],
    ["studies"],
    ["query", "select count(*) from trials"],
    ["query", "select * from leaderboard limit 10"],
)


def write(url: str, trials: int) -> None:
    """Record the study."""
    shape = shape_of(json.loads((BACKBONE / "config.json").read_text()))
    records, readings = ledger_of(SearchSpace(shape=shape, budget=600_000), trials)
    told = {"name": "large", "backbone": str(BACKBONE), "task": {"name": "docstrings"}, "budget": 600_000}
    specification = specification_of({**told, "trials": trials, "training": {"steps": STEPS[-1]}})
    with Ledger.open(url) as ledger:
        study = ledger.create_study(new_study(BegunSpecification.of(specification), shape)).id
        epoch = ledger.take_over(study, "keeper")
        for first in range(0, trials, 500):
            some = records[first : first + 500]
            ledger.add_trials(study, epoch, [_new(one) for one in some], worker="worker-0")
            entries = [
                ReportEntry(
                    number=one.number, attempt=1, readings=readings[one.number], outcome=_outcome(one),
                    examples=[
                        ExampleRecord(trial=one.number, step=read.step, losses=LOSSES, correct=CORRECT)
                        for read in readings[one.number]
                    ],
                )
                for one in some
            ]  # fmt: skip
            ledger.settle_all(study, epoch, entries)


def _new(record: TrialRecord) -> NewTrial:
    return NewTrial(**{name: getattr(record, name) for name in NewTrial.__dataclass_fields__})


def _outcome(record: TrialRecord) -> Outcome:
    reason = "a benchmark" if record.state is TrialState.PRUNED else None
    return Outcome(state=record.state, score=record.score, reason=reason)


def cost(command: list[str], url: str, cache: Path) -> tuple[float, float]:
    """Processor seconds and peak megabytes of a command."""
    environment = {**os.environ, "DELTASPACE_CACHE": str(cache), "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-m", "deltaspace", *command, "--storage", url], env=environment, stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"deltaspace {' '.join(command)} must end with 0; got {os.waitstatus_to_exitcode(status)}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20_000)
    parser.add_argument("--passes", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'large.db'}"
        write(url, arguments.trials)
        passes = [[cost(one, url, Path(folder) / str(each)) for one in COMMANDS] for each in range(arguments.passes)]
        for command, *costs in zip(COMMANDS, *passes, strict=True):
            seconds, memory = (median(one[which] for one in costs) for which in (0, 1))
            spread = "–".join(f"{pick(one[0] for one in costs):.2f}" for pick in (min, max))
            print(f"| `deltaspace {' '.join(command)}` | {seconds:.2f} s ({spread}) | {memory:.0f} MB |")


if __name__ == "__main__":
    main()
