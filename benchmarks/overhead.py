"""Overhead of the engine: time and bytes per trial, start-up; compared with stock tools.

    python benchmarks/overhead.py            all of it, about two minutes on two cores.
    python benchmarks/overhead.py --no-ray   without the measurements that start Ray.

A trivial trial has one step that takes no time, one reading and one file that is flushed to disk. Times per trial are
from the 20th end to the last, without start-up. Baselines are measured in the same run.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
TRIVIAL = ROOT / "tests"
sys.path.insert(0, str(TRIVIAL))
# the workers of Ray import the trivial runner too
os.environ["PYTHONPATH"] = os.pathsep.join([str(TRIVIAL), os.environ.get("PYTHONPATH", "")])

import optuna  # noqa: E402
from support.small_study import BACKBONE, small_study  # noqa: E402
from support.trivial_runner import TrivialFactory  # noqa: E402

from search_space.backbones import shape_of  # noqa: E402
from search_space.space.space import SearchSpace  # noqa: E402
from studies.launch.launch import launch  # noqa: E402
from studies.ledger.ledger import Ledger  # noqa: E402
from studies.study_file import Specification  # noqa: E402

WARM_UP_TRIALS = 20
STEPS = (1, 2, 4)


@dataclass(frozen=True)
class Line:
    """Line of the table: a measurement, its aim, and the value of the stock tool."""

    title: str
    value: float
    unit: str
    aim: float | None = None
    baseline: float | None = None

    def text(self) -> str:
        """Format the line."""
        aim = "" if self.aim is None else f"≤ {self.aim:g}{'' if self.value <= self.aim else '  MISSED'}"
        ratio = "" if self.baseline is None else f"{self.baseline / self.value:.1f}x less than {self.baseline:.1f}"
        return f"{self.title:<52}{self.value:>10.2f} {self.unit:<6}{aim:<16}{ratio}"


def specification(folder: Path, backend: str, trials: int, steps: int = 1) -> Specification:
    search = {"sampler": "random", "published": "none"}
    fleet = {"backend": backend, "pack": 4}
    rung = None if steps == 1 else 1
    return small_study(folder, name="overhead", trials=trials, steps=steps, first_rung=rung, search=search, fleet=fleet)


def search_space(study: Specification) -> SearchSpace:
    shape = shape_of(json.loads((BACKBONE / "config.json").read_text()))
    budget = study.budget_parameters(shape)
    return SearchSpace(shape=shape, budget=budget, options=study.space_options)


@contextmanager
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="overhead-") as name:
        yield Path(name)


def milliseconds(action: Callable[[], object]) -> float:
    began_at = time.perf_counter()
    action()
    return 1000 * (time.perf_counter() - began_at)


def ms_per_trial(backend: str, trials: int) -> tuple[float, float, float]:
    """Measure steady-state ms per trial, seconds to the end of the first trial, and ledger bytes per trial."""
    with scratch() as folder:
        url = f"sqlite:///{folder / 'ledger.db'}"
        began_at = time.time()
        launch(specification(folder, backend, trials), storage_url=url, factory=TrivialFactory())
        with Ledger.open(url) as ledger:
            ends = sorted(one.ended_at for one in ledger.trials(ledger.study("overhead").id) if one.ended_at)
        steady = (ends[-1] - ends[WARM_UP_TRIALS]).total_seconds() / (len(ends) - WARM_UP_TRIALS - 1)
        size = sum(file.stat().st_size for file in folder.glob("ledger.db*"))
        return 1000 * steady, ends[0].timestamp() - began_at, size / trials


def fsync_ms() -> float:
    """Measure the median time of flushing a small file."""
    with scratch() as folder, (folder / "file").open("wb") as file:

        def flush() -> None:
            file.write(b"x" * 512)
            file.flush()
            os.fsync(file.fileno())

        return statistics.median(milliseconds(flush) for _ in range(50))


def optuna_ms_per_trial(trials: int) -> float:
    """Measure stock Optuna: ask and tell of the same space on its SQLite storage, random sampler."""
    with scratch() as folder:
        space = search_space(specification(folder, "inline", 1))
        sampler = optuna.samplers.RandomSampler(seed=0)
        study = optuna.create_study(storage=f"sqlite:///{folder / 'optuna.db'}", sampler=sampler)

        def run_trial() -> None:
            trial = study.ask()
            space.suggest(trial)
            study.tell(trial, 0.5)

        return statistics.mean(milliseconds(run_trial) for _ in range(trials))


@dataclass
class Suggest:
    """Search space in the form that OptunaSearch calls."""

    space: SearchSpace

    def __call__(self, trial: optuna.Trial) -> None:
        """Suggest, and return nothing."""
        self.space.suggest(trial)


def tune_ms_per_trial(trials: int) -> float:
    """Measure stock Ray Tune with OptunaSearch: each configuration is a Tune trial, two at a time."""
    import ray
    from ray import tune
    from ray.tune.search.optuna import OptunaSearch

    ends: list[float] = []

    class Clock(tune.Callback):  # type: ignore[misc]
        def on_trial_complete(self, iteration: int, trials: object, trial: object, **info: object) -> None:
            ends.append(time.perf_counter())

    os.environ.update({"RAY_AIR_NEW_OUTPUT": "0", "RAY_USAGE_STATS_ENABLED": "0"})
    os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "1"
    with scratch() as folder:
        space = search_space(specification(folder, "inline", 1))
        sampler = optuna.samplers.RandomSampler(seed=0)
        searcher = OptunaSearch(space=Suggest(space), metric="score", mode="max", sampler=sampler)
        ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        try:
            tune.Tuner(
                tune.with_resources(lambda config: {"score": 0.5}, {"cpu": 1}),
                tune_config=tune.TuneConfig(search_alg=searcher, num_samples=trials, max_concurrent_trials=2),
                run_config=tune.RunConfig(storage_path=str(folder), verbose=0, callbacks=[Clock()]),
            ).fit()
        finally:
            ray.shutdown()
    later = ends[2:]
    return 1000 * (later[-1] - later[0]) / (len(later) - 1)


def command_seconds(*command: str) -> float:
    """Measure the best of five runs of a command."""
    run = [sys.executable, *command]
    return min(milliseconds(lambda: subprocess.run(run, check=True, capture_output=True)) for _ in range(5)) / 1000


def lines(trials: int, *, with_ray: bool) -> Iterator[Line]:
    """Measure the lines of the table and yield each one."""
    yield Line("flush of a small file (the disk)", fsync_ms(), "ms")
    optuna_ms = optuna_ms_per_trial(50)
    inline, _, size = ms_per_trial("inline", trials)
    yield Line("inline, per trivial trial (baseline: Optuna RDBStorage)", inline, "ms", 5, optuna_ms)
    yield Line("ledger, per trivial trial", size, "bytes")
    if with_ray:
        tune_ms = tune_ms_per_trial(10)
        ray_ms, first, _ = ms_per_trial("ray", trials)
        yield Line("Ray, per trivial trial (baseline: a Tune trial each)", ray_ms, "ms", 10, tune_ms)
        yield Line("Ray, until the first trial has ended", first, "s")
    help_seconds = command_seconds("-c", "from deltaspace.commands.main import main; main(['--help'])")
    yield Line("deltaspace --help", help_seconds, "s", 0.6)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=400, help="trivial trials per backend (default 400)")
    parser.add_argument("--no-ray", action="store_true", help="leave out the measurements that start Ray")
    arguments = parser.parse_args()
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"{os.cpu_count()} cores, load {load}, {arguments.trials} trials, random sampler")
    for line in lines(arguments.trials, with_ray=not arguments.no_ray):
        print(line.text(), flush=True)


if __name__ == "__main__":
    main()
