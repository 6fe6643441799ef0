"""Processor time and memory of the commands that read a large ledger, and of its reading as a history and by a keeper.

    python benchmarks/ledgers.py                      20,000 trials, three passes.
    python benchmarks/ledgers.py --trials 1000
    python benchmarks/ledgers.py --against ../other-checkout    the commands in turns with another checkout.
    python benchmarks/ledgers.py --launched           verify and discover, on a study that was launched, one pass.

The study is that of `proposals.py`, recorded in SQLite: uniform draws over structures, three in five of them pruned at
a rung, each reading with the losses of 400 validation examples. The first command fits the model; the others find its
estimates in the cache. A launched study has trivial trials of random draws, with their files.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from proposals import ROOT, STEPS, ledger_of

sys.path.insert(0, str(ROOT / "tests"))

from support.small_study import small_study
from support.trivial_runner import TrivialFactory

from search_space.backbones import shape_of
from search_space.space.space import SearchSpace
from studies.history.noise import ScoreNoise
from studies.launch.launch import launch
from studies.launch.preparation import plan_of
from studies.launch.study_creation import new_study
from studies.ledger.ledger import Ledger
from studies.records import Reading, TrialRecord, TrialReport
from studies.runtime.keeper import StudyKeeper
from studies.study_file import specification_of
from studies.study_file.recorded_specification import BegunSpecification, recorded_space, recorded_specification
from trial_runner.example_losses import ExampleLosses

BACKBONE = ROOT / "tests/data/backbones/roberta_base"
MEASURED = ExampleLosses(losses=b"\x00\x3c" * 400, correct=b"\xff" * 50)  # of 400 examples, as the ledger holds them
LAUNCHED = ["verify large", "discover large"]
COMMANDS = ["show large", "show large", "best large", "trial large 7", "studies"]
COMMANDS += ["query 'select count(*) from trials'", "query 'select * from leaderboard limit 10'"]


TURNS = 5
WRITE = "import sys; sys.path.append('benchmarks'); import ledgers; ledgers.write(sys.argv[1], int(sys.argv[2]))"

# a small process starts the command: the peak of a process includes that of the one it was forked from
MEASURE = """
import os, sys
quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
_, status, usage = os.wait4(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=quiet), 0)
print(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000)
"""


def write(url: str, trials: int) -> None:
    """Record the study."""
    shape = shape_of(json.loads((BACKBONE / "config.json").read_text()))
    history = ledger_of(SearchSpace(shape=shape, budget=600_000), trials)
    given = {"name": "large", "backbone": str(BACKBONE), "task": {"name": "docstrings"}, "budget": 600_000}
    specification = specification_of({**given, "trials": trials, "training": {"steps": STEPS[-1]}})
    with Ledger.open(url) as ledger:
        study = ledger.create_study(new_study(BegunSpecification.of(specification), shape)).id
        epoch = ledger.take_over(study, "keeper")
        for first in range(0, trials, 500):
            batch = history[first : first + 500]
            ledger.add_trials(study, epoch, batch, worker="worker-0")
            reports = [report for trial in batch for report in reports_of(trial, history.readings(trial.number))]
            ledger.settle_all(study, epoch, reports)


def reports_of(trial: TrialRecord, readings: Sequence[Reading]) -> list[TrialReport]:
    """Return the reports of a trial: one for each reading, the last one with its end."""
    *before, last = [replace(reading, examples=MEASURED) for reading in readings]
    key = {"trial": trial.number, "attempt": 1}
    end = {"state": trial.state, "score": trial.score, "reason": "a benchmark" if trial.score is None else None}
    return [*(TrialReport(**key, reading=reading) for reading in before), TrialReport(**key, reading=last, **end)]


def launch_study(url: str, trials: int, folder: Path) -> None:
    """Launch a study of trivial trials."""
    search = {"sampler": "random", "published": "none", "replicates": 0}
    fleet = {"backend": "inline", "pack": 64}
    pruning = {"first_rung_steps": 2, "rule": "none"}
    study = small_study(folder, name="large", trials=trials, steps=4, pruning=pruning, search=search, fleet=fleet)
    result = launch(study, storage_url=url, factory=TrivialFactory())
    if not result.finished:
        raise SystemExit(f"cannot launch the study to its end: {result.reason}.")


def environment_of(checkout: Path) -> dict[str, str]:
    """Return the environment of a process with the code of a checkout."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(checkout)}


def cost(command: str, url: str, cache: Path, checkout: Path = ROOT) -> tuple[float, float]:
    """Measure the processor seconds of a command, and its peak memory in MB."""
    environment = {**environment_of(checkout), "DELTASPACE_CACHE": str(cache)}
    words = [sys.executable, "-m", "deltaspace", *shlex.split(command), "--storage", url]
    command_line = [sys.executable, "-S", "-c", MEASURE, *words]
    measured = subprocess.check_output(command_line, env=environment, cwd=checkout, text=True)
    status, seconds, megabytes = measured.split()
    if status != "0":
        raise SystemExit(f"cannot run deltaspace {command}: it ended with {status}.")
    return float(seconds), float(megabytes)


def comparison_lines(against: Path, trials: int, folder: Path) -> Iterator[str]:
    """Yield a line for each command: processor seconds of another checkout and of this one, in turns, with ratios."""
    arms = [(against.resolve(), folder / "before"), (ROOT, folder / "after")]
    for checkout, place in arms:
        place.mkdir()
        write_there = [sys.executable, "-c", WRITE, f"sqlite:///{place}/large.db", str(trials)]
        subprocess.run(write_there, env=environment_of(checkout), cwd=checkout, check=True)

    def turn(command: str, number: int) -> list[float]:
        return [
            cost(command, f"sqlite:///{place}/large.db", place / str(number), checkout)[0] for checkout, place in arms
        ]

    turns = [[turn(command, number) for command in COMMANDS] for number in range(TURNS)]
    for command, *pairs in zip(COMMANDS, *turns, strict=True):
        before, after = (median(seconds) for seconds in zip(*pairs, strict=True))
        ratios = sorted(after / before for before, after in pairs)
        spread = f"{median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        yield f"| `deltaspace {command}` | {before:.2f} s | {after:.2f} s | {spread} |"


def replay_costs(url: str) -> dict[str, float]:
    """Measure the processor seconds of reading the history, and of a takeover by a keeper."""
    with Ledger.open(url) as ledger:
        study = ledger.study("large")
        specification, space = recorded_specification(study), recorded_space(study)
        plan = plan_of(specification, study, space, storage_url=url)
        began_at = time.process_time()
        ledger.history(study.id, ScoreNoise(steps=STEPS[-1]))
        replay = time.process_time() - began_at
    began_at = time.process_time()
    with Ledger.open(url, create=False) as ledger:
        StudyKeeper(plan, ledger)
    return {"replay": replay, "takeover": time.process_time() - began_at}


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20_000)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--launched", action="store_true", help="launch the study, then verify and discover")
    kind.add_argument("--against", type=Path, metavar="CHECKOUT", help="another checkout, to be compared with")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if arguments.against:
            for line in comparison_lines(arguments.against, arguments.trials, Path(folder)):
                print(line, flush=True)
            return
        url = f"sqlite:///{Path(folder) / 'large.db'}"
        if arguments.launched:
            launch_study(url, arguments.trials, Path(folder))
        else:
            write(url, arguments.trials)
        commands, times = (LAUNCHED, 1) if arguments.launched else (COMMANDS, 3)
        passes = [[cost(command, url, Path(folder) / str(number)) for command in commands] for number in range(times)]
        for command, *costs in zip(commands, *passes, strict=True):
            seconds, megabytes = sorted(one for one, _ in costs), max(one for _, one in costs)
            print(
                f"| `deltaspace {command}` | {seconds[times // 2]:.2f} s ({seconds[0]:.2f} to {seconds[-1]:.2f}), "
                f"{megabytes:,.0f} MB |",
                flush=True,
            )
        for part, seconds in replay_costs(url).items():
            print(f"| {part} | {seconds:.2f} s |")


if __name__ == "__main__":
    main()
