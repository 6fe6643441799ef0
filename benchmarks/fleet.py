"""How large a fleet one keeper can serve: the real keeper and ledger, simulated workers, simulated time.

    python benchmarks/fleet.py                          1, 8, 64 and 512 workers of 32 slots, SQLite and PostgreSQL
    python benchmarks/fleet.py --workers 64 --slots 8 --sampler factored --seconds 120

Every call that a worker would make is made, and takes the time that it really takes here; between two calls a worker
trains for as long as it is said to, which is simulated. So an hour of 512 workers is as many seconds as its keeper is
busy. What Ray adds to a call is measured once and added to each (``--call-ms`` gives it instead). Workers begin within
the first interval; what is printed is from when all have had one interval on. Nothing is trained and no file written,
but the keeper looks after each file as it does in a study.
"""

import argparse
import heapq
import json
import math
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
BACKBONE = ROOT / "tests" / "data" / "backbones" / "roberta_base"
sys.path.insert(0, str(ROOT / "tests"))

import numpy as np  # noqa: E402

import studies.runtime.keeper as keeper_module  # noqa: E402
import studies.runtime.progress as progress_module  # noqa: E402
import studies.runtime.results as results_module  # noqa: E402
import studies.runtime.state as state_module  # noqa: E402
import studies.runtime.trial_queue as queue_module  # noqa: E402
from search_space.backbones import shape_of  # noqa: E402
from search_space.space.space import SearchSpace  # noqa: E402
from studies.launch.preparation import plan_of  # noqa: E402
from studies.launch.study_creation import new_study  # noqa: E402
from studies.ledger.ledger import Ledger  # noqa: E402
from studies.pruning.rungs import Rule  # noqa: E402
from studies.records import ArtefactRecord, TrialReport  # noqa: E402
from studies.runtime.artefacts import attempt_folder  # noqa: E402
from studies.runtime.keeper import StudyKeeper  # noqa: E402
from studies.runtime.messages import Decision, WorkerAnswer  # noqa: E402
from studies.runtime.study_plan import StudyPlan  # noqa: E402
from studies.study_file import specification_from_mapping  # noqa: E402
from studies.study_file.recorded_specification import BegunSpecification  # noqa: E402
from trial_runner.example_losses import ExampleLosses  # noqa: E402
from trial_runner.requests import Reading, TrialRequest  # noqa: E402

TRIALS = 1_000_000
STEPS = 8
BEAT_SECONDS, BEAT_SHARE, LONGEST_SILENCE_SECONDS = 1.0, 0.02, 10.0
PAUSE_SECONDS, JITTER = 0.02, 0.1
EXAMPLES = 400
AIM_IDLE = 0.02


class SimulatedTime:
    """Stands where the keeper has the module `time`."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def __getattr__(self, name: str) -> Any:
        """Whatever else the module has."""
        return getattr(time, name)


@dataclass
class Worker:
    """Slots with trials, each of which is measured at the same moment."""

    name: str
    slots: int
    holds: dict[int, tuple[TrialRequest, int]] = field(default_factory=dict)
    asked_at: float = 0.0

    def reports(self, folder: Path) -> list[TrialReport]:
        """What all of its trials have measured since the last time."""
        found = []
        for request, done in self.holds.values():
            step = request.plan.evaluate_at_steps[done]
            quality = (request.seed * 2654435761 % 2**32) / 2**32
            score = quality * (1 - 2.0**-step)
            losses = np.random.default_rng(request.seed % 2**32).exponential(1.5 - score, EXAMPLES)
            reading = Reading(
                trial=request.trial,
                attempt=request.attempt,
                step=step,
                score=score,
                metrics={"accuracy": score, "validation_loss": 1 - score},
                train_loss=1 - score,
                seconds=1.0,
                examples=ExampleLosses.of(losses, losses < score),
            )
            kind = "delta" if step == request.plan.steps else "snapshot"
            path = attempt_folder(folder, request.trial, request.attempt) / f"step-{step:06d}.safetensors"
            file = ArtefactRecord(
                trial=request.trial, kind=kind, step=step, path=str(path), sha256="0" * 64, size_bytes=1_000_000
            )
            found.append(TrialReport(trial=request.trial, attempt=request.attempt, reading=reading, artefact=file))
        return found

    def obey(self, reports: Sequence[TrialReport], answer: WorkerAnswer) -> None:
        """Continue, stop and begin trials as the keeper answered its reports."""
        for report, decision in zip(reports, answer.decisions, strict=True):
            request, done = self.holds.pop(report.trial)
            if decision is Decision.GO_ON:
                self.holds[report.trial] = (request, done + 1)
        for request in answer.requests:
            self.holds[request.trial] = (request, 0)


@dataclass
class Tally:
    """What was seen after every worker had had its first interval.

    Attributes:
        waits: Of workers, seconds from each exchange to its answer.
        busy: Seconds that the keeper served calls; of those, the ones of its processor; and seconds that passed.
    """

    waits: list[float] = field(default_factory=list)
    readings: int = 0
    begun: int = 0
    busy: float = 0.0
    processor: float = 0.0
    passed: float = 0.0


@dataclass(frozen=True)
class Fleet:
    """What is simulated."""

    workers: int
    slots: int
    interval: float
    call_seconds: float
    intervals: int
    real_seconds: float
    by_processor: bool = False


def simulate(fleet: Fleet, keeper: StudyKeeper, plan: StudyPlan, clock: SimulatedTime) -> tuple[Tally, bool]:
    """Run a fleet; whether it came to its end in the time that there is."""
    draws, order, tally = random.Random(0), count(), Tally()
    crew = [Worker(f"worker-{number}/1", fleet.slots) for number in range(fleet.workers)]
    calls = [(draws.uniform(0, fleet.interval), next(order), "join", worker) for worker in crew]
    heapq.heapify(calls)
    free_at, until = 0.0, (2 + fleet.intervals) * fleet.interval
    measured_from = 2 * fleet.interval
    stop_at = time.monotonic() + fleet.real_seconds
    while calls[0][0] < until:
        if time.monotonic() > stop_at:
            return tally, False
        free_at = prepared(keeper, clock, free_at, until=calls[0][0], by_processor=fleet.by_processor, tally=tally)
        arrived, _, what, worker = heapq.heappop(calls)
        clock.now = max(arrived, free_at)
        reports = worker.reports(plan.artefacts) if what == "exchange" else []
        began, began_processor = time.perf_counter(), time.process_time()
        if what == "join":
            keeper.join(worker.name)
        elif what == "beat":
            keeper.heartbeat(worker.name)
        else:
            answer = keeper.exchange(worker.name, reports, worker.slots - len(worker.holds))
        processor = time.process_time() - began_processor + fleet.call_seconds
        took = processor if fleet.by_processor else time.perf_counter() - began + fleet.call_seconds
        free_at = clock.now + took
        if arrived > measured_from:
            tally.busy, tally.processor = tally.busy + took, tally.processor + processor
            tally.passed = free_at - measured_from
        if what == "exchange":
            worker.obey(reports, answer)
            if arrived > measured_from:
                tally.waits.append(free_at - arrived)
                tally.readings += len(reports)
                tally.begun += len(answer.requests)
            trains = fleet.interval * draws.uniform(1 - JITTER, 1 + JITTER)
            heapq.heappush(calls, (free_at + trains, next(order), "exchange", worker))
        elif what == "join":
            heapq.heappush(calls, (free_at, next(order), "exchange", worker))
            heapq.heappush(calls, (free_at + BEAT_SECONDS, next(order), "beat", worker))
        else:
            pause = min(max(BEAT_SECONDS, (free_at - arrived) / BEAT_SHARE), LONGEST_SILENCE_SECONDS)
            heapq.heappush(calls, (free_at + pause, next(order), "beat", worker))
    return tally, True


def prepared(
    keeper: StudyKeeper, clock: SimulatedTime, free_at: float, *, until: float, by_processor: bool, tally: "Tally"
) -> float:
    """Let the keeper propose ahead of need while nobody calls; when it is free."""
    while free_at < until:
        clock.now = free_at
        began, began_processor = time.perf_counter(), time.process_time()
        is_one = keeper.prepare()
        processor = time.process_time() - began_processor
        took = processor if by_processor else time.perf_counter() - began
        if tally.passed:
            tally.busy, tally.processor = tally.busy + took, tally.processor + processor
        if not is_one:
            return free_at
        free_at += took + PAUSE_SECONDS
    return free_at


@contextmanager
def kept_study(
    url: str, folder: Path, sampler: str, clock: SimulatedTime, *, rule: str = "chance"
) -> Iterator[tuple[StudyKeeper, StudyPlan]]:
    """A new study and its keeper, who lives in simulated time."""
    specification = specification_from_mapping(
        {
            "name": "fleet",
            "backbone": str(BACKBONE),
            "task": {"name": "docstrings"},
            "budget": "0.5%",
            "trials": TRIALS,
            "training": {"steps": STEPS},
            "pruning": {"first_rung_steps": 1, "rule": rule},
            "search": {"sampler": sampler, "published": "none", "replicates": 0},
            "fleet": {"artefacts": str(folder / "artefacts")},
        }
    )
    shape = shape_of(json.loads((BACKBONE / "config.json").read_text()))
    space = SearchSpace(shape=shape, budget=specification.budget_parameters(shape))
    with Ledger.open(url) as ledger:
        study = ledger.create_study(new_study(specification, shape))
    plan = plan_of(BegunSpecification.of(specification), study, space, storage_url=url)
    plan = replace(plan, rungs=specification.rung_plan(EXAMPLES))
    for module in (keeper_module, progress_module, queue_module, results_module, state_module):
        module.time = clock  # type: ignore[attr-defined]
    keeper = StudyKeeper(plan)
    try:
        yield keeper, plan
    finally:
        keeper.close()
        for module in (keeper_module, progress_module, queue_module, results_module, state_module):
            module.time = time  # type: ignore[attr-defined]


def call_seconds(calls: int = 2000) -> float:
    """What a call of an actor costs the actor's process, by the calls that it serves in a second."""
    import ray

    ray.init("local", num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        actor: Any = ray.remote(num_cpus=0)(_Nothing).remote()
        ray.get([actor.call.remote("exchange", ()) for _ in range(calls)])
        began = time.perf_counter()
        ray.get([actor.call.remote("exchange", ()) for _ in range(calls)])
        return (time.perf_counter() - began) / calls
    finally:
        ray.shutdown()


class _Nothing:
    def call(self, method: str, *arguments: object) -> None:
        """Do nothing."""


HEAD = (
    f"{'storage':<11}{'sampler':<10}{'workers':>7}{'slots':>6}{'exch./s':>9}{'most':>7}{'read./s':>9}{'new/s':>7}"
    f"{'median':>10}{'p99':>10}{'keeper':>8}{'idle':>7}"
)


def line(storage: str, sampler: str, fleet: Fleet, tally: Tally, *, is_whole: bool) -> str:
    """A fleet as it is printed."""
    begin = f"{storage:<11}{sampler:<10}{fleet.workers:>7}{fleet.slots:>6}"
    if not tally.waits:
        return f"{begin}  not all had an interval after {fleet.real_seconds:g} s of the keeper: it cannot fill them"
    waited = sum(tally.waits)
    idle = waited / (waited + len(tally.waits) * fleet.interval)
    quantiles = statistics.quantiles([*tally.waits, *tally.waits], n=100)
    most = len(tally.waits) / tally.busy
    verdict = "" if idle <= AIM_IDLE else "  > 2%"
    cut = "" if is_whole else f"  (cut after {tally.passed:.0f} s)"
    return (
        f"{begin}{len(tally.waits) / tally.passed:>9.2f}{most:>7.1f}{tally.readings / tally.passed:>9.1f}"
        f"{tally.begun / tally.passed:>7.1f}{1000 * quantiles[49]:>7.0f} ms{1000 * quantiles[98]:>7.0f} ms"
        f"{tally.processor / tally.passed:>8.1%}{idle:>7.2%}{verdict}{cut}"
    )


@contextmanager
def storages(names: Sequence[str], folder: Path) -> Iterator[Callable[[str], str]]:
    """Makes the URL of a new database of a name."""
    from support.postgres import PostgresServer

    server, numbers = PostgresServer() if "postgresql" in names else None, count()
    try:
        yield (
            lambda name: (
                f"sqlite:///{folder / f'{next(numbers)}.db'}"
                if server is None or name == "sqlite"
                else server.url(server.new_database())
            )
        )
    finally:
        if server is not None:
            server.remove()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 8, 64, 512])
    parser.add_argument("--slots", type=int, default=32, help="trials of a worker (default 32)")
    parser.add_argument("--interval", type=float, default=60.0, help="seconds between two measurements (default 60)")
    parser.add_argument("--intervals", type=int, default=3, help="how many are measured (default 3)")
    parser.add_argument("--sampler", nargs="+", default=["random", "factored"])
    parser.add_argument(
        "--rule", default="chance", choices=[rule.value for rule in Rule], help="of pruning (default chance)"
    )
    parser.add_argument("--storage", nargs="+", default=["sqlite", "postgresql"], choices=["sqlite", "postgresql"])
    parser.add_argument("--seconds", type=float, default=60.0, help="real seconds of each line at most (default 60)")
    parser.add_argument(
        "--by-processor",
        action="store_true",
        help="count only what the keeper's processor does, as where others use the machine; no waits for disks",
    )
    parser.add_argument("--call-ms", type=float, default=math.nan, help="what Ray adds to a call; else measured")
    given = parser.parse_args()
    call = call_seconds() if math.isnan(given.call_ms) else given.call_ms / 1000
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"a call of Ray: {1000 * call:.2f} ms; load of the machine {load}\n{HEAD}", flush=True)
    with tempfile.TemporaryDirectory(prefix="fleet-") as name, storages(given.storage, Path(name)) as new:
        for sampler in given.sampler:
            for workers in given.workers:
                for storage in given.storage:
                    fleet = Fleet(
                        workers, given.slots, given.interval, call, given.intervals, given.seconds, given.by_processor
                    )
                    clock = SimulatedTime()
                    made = Path(tempfile.mkdtemp(dir=name))
                    with kept_study(new(storage), made, sampler, clock, rule=given.rule) as (keeper, plan):
                        tally, is_whole = simulate(fleet, keeper, plan, clock)
                    print(line(storage, sampler, fleet, tally, is_whole=is_whole), flush=True)


if __name__ == "__main__":
    main()
