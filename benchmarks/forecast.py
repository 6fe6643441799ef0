"""What `deltaspace check` says that a study takes, against what its launch takes.

    python benchmarks/forecast.py --work OUT                               docstrings, which is embedded
    python benchmarks/forecast.py --work OUT --data FOLDER FOLDER          and data of your own
    python benchmarks/forecast.py --work OUT --clock cpu                   where others compute: seconds of this process

Studies are what `deltaspace init` writes, with few trials that all run to the end, launched in one process. Seconds are
from the first trial's begin to the last one's end, without the start of the worker, which a forecast leaves out; disk
is what the launch leaves in the folder of its trials. A ratio is what it took over what was foreseen.
"""

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import deltaspace
from studies.checking import check
from studies.foresight import speed
from studies.keeping.progress import Progress
from studies.launching.launch import launch
from studies.specification import Specification, specification_of

EMBEDDED_TASK = "docstrings"
CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Of a study: all steps of its trials over the seconds, measuring included; the seconds; the disk."""

    steps_per_second: float
    seconds: float
    megabytes: float


class Stopwatch:
    """From the first trial's begin on."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._began_at: float | None = None

    def __call__(self, progress: Progress) -> None:
        if self._began_at is None and progress.running:
            self._began_at = self._clock()

    def seconds(self) -> float:
        return self._clock() - (self._began_at or self._clock())


def foreseen(study: Specification) -> Taken:
    """What check says."""
    found = check(study).forecast
    if found is None:
        raise SystemExit(f"a check of {study.name} must take steps")
    return _taken(study, found.most_seconds, found.disk_bytes)


def launched(study: Specification, folder: Path, clock: Callable[[], float]) -> Taken:
    """What a launch takes."""
    watch = Stopwatch(clock)
    result = launch(study, storage_url=f"sqlite:///{folder / 'ledger.db'}", observer=watch)
    seconds = watch.seconds()
    if not result.finished:
        raise SystemExit(f"{study.name} did not come to its end: {result.reason}")
    files = [file for file in Path(study.fleet.artefacts).rglob("*") if file.is_file()]
    return _taken(study, seconds, sum(file.stat().st_size for file in files))


def _taken(study: Specification, seconds: float, disk_bytes: float) -> Taken:
    steps = study.trials * study.training.steps
    return Taken(steps_per_second=steps / max(seconds, 1e-9), seconds=seconds, megabytes=disk_bytes / 1e6)


def study_of(source: str, folder: Path, *, trials: int, steps: int) -> Specification:
    """The shipped study, or what init writes of a folder of data; few trials, none of them pruned."""
    file: str | Path = source
    if source != EMBEDDED_TASK:
        file = deltaspace.init(source, takes_steps=False, output=folder / f"{Path(source).name}.yaml")
    settings: dict[str, object] = {
        "trials": trials,
        "training.steps": steps,
        "pruning.first_rung_steps": None,
        "fleet.backend": "inline",
        "fleet.artefacts": str(folder / "trials" / Path(source).name),
    }
    return specification_of(file, settings)


def arguments_of(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--work", type=Path, required=True, metavar="OUT", help="a new folder")
    add("--data", nargs="*", default=[], metavar="FOLDER", help="as init takes them")
    add("--trials", type=int, default=8, metavar="N", help="of a study (default 8)")
    add("--steps", type=int, default=60, metavar="N", help="of a trial (default 60)")
    add("--clock", choices=CLOCKS, default="wall", help="default wall")
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> None:
    given = arguments_of(words)
    given.work.mkdir(parents=True)
    clock = speed.clock = CLOCKS[given.clock]
    print(f"{'study':<16} {'':<9} {'trial-steps/s':>13} {'seconds':>9} {'disk, MB':>9}", flush=True)
    for source in (EMBEDDED_TASK, *given.data):
        study = study_of(source, given.work, trials=given.trials, steps=given.steps)
        said = foreseen(study)
        was = launched(study, given.work, clock)
        _line(study.name, "forecast", said)
        _line("", "real", was)
        ratio = Taken(
            steps_per_second=was.steps_per_second / said.steps_per_second,
            seconds=was.seconds / said.seconds,
            megabytes=was.megabytes / said.megabytes,
        )
        _line("", "ratio", ratio)


def _line(name: str, what: str, taken: Taken) -> None:
    numbers = (taken.steps_per_second, taken.seconds, taken.megabytes)
    print(f"{name[:16]:<16} {what:<9} {numbers[0]:>13.2f} {numbers[1]:>9.2f} {numbers[2]:>9.2f}", flush=True)


if __name__ == "__main__":
    main()
