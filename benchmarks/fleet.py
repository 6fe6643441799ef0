"""Capacity of one keeper: the real keeper and ledger with simulated workers in simulated time.

    python benchmarks/fleet.py                          1, 8, 64 and 512 workers of 32 slots, SQLite and PostgreSQL.
    python benchmarks/fleet.py --workers 64 --slots 8 --sampler factored --seconds 120

Each call of a worker is executed and takes its real time; the training between two calls is simulated. So the
simulation of an hour takes only the time in which the keeper is busy. The overhead of a call of Ray is measured once
and added to each call (``--call-ms`` sets it). Workers start within the first interval; the printed values begin after
the first interval of the last one. Nothing is trained and no file written, but the keeper manages each file as in a
study.
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
sys.path.insert(0, str(ROOT / "tests"))

import numpy as np  # noqa: E402
from support.small_study import BACKBONE, small_study  # noqa: E402

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
    """Clock of the keeper, in seconds."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


@dataclass
class SimulatedWorker:
    """Slots with trials, all of which are measured at the same time."""

    name: str
    slots: int
    running: dict[int, tuple[TrialRequest, int]] = field(default_factory=dict)

    def reports(self, folder: Path) -> list[TrialReport]:
        """Return the next report of each running trial."""
        reports = []
        for request, done in self.running.values():
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
            reports.append(TrialReport(trial=request.trial, attempt=request.attempt, reading=reading, artefact=file))
        return reports

    def obey(self, reports: Sequence[TrialReport], answer: WorkerAnswer) -> None:
        """Continue, stop and begin trials according to the answer of the keeper."""
        for report, decision in zip(reports, answer.decisions, strict=True):
            request, done = self.running.pop(report.trial)
            if decision is Decision.GO_ON:
                self.running[report.trial] = (request, done + 1)
        for request in answer.requests:
            self.running[request.trial] = (request, 0)


@dataclass
class Tally:
    """Measurements after the first interval of every worker.

    Attributes:
        waits: Seconds from each exchange of a worker to its answer.
        readings: Number of reported readings.
        begun: Number of trials that began.
        busy: Seconds in which the keeper served calls.
        processor: Processor seconds of the keeper among them.
        passed: Simulated seconds.
    """

    waits: list[float] = field(default_factory=list)
    readings: int = 0
    begun: int = 0
    busy: float = 0.0
    processor: float = 0.0
    passed: float = 0.0


@dataclass(frozen=True)
class SimulatedFleet:
    """Settings of a simulation."""

    workers: int
    slots: int
    interval: float
    call_seconds: float
    intervals: int
    real_seconds: float
    by_processor: bool = False


def simulate(fleet: SimulatedFleet, keeper: StudyKeeper, plan: StudyPlan, clock: SimulatedTime) -> tuple[Tally, bool]:
    """Run a fleet; return its tally and whether it reached its end within the real seconds."""
    draws, order, tally = random.Random(0), count(), Tally()
    workers = [SimulatedWorker(f"worker-{number}/1", fleet.slots) for number in range(fleet.workers)]
    calls = [(draws.uniform(0, fleet.interval), next(order), "join", worker) for worker in workers]
    heapq.heapify(calls)
    free_at, until = 0.0, (2 + fleet.intervals) * fleet.interval
    measured_from = 2 * fleet.interval
    stop_at = time.monotonic() + fleet.real_seconds
    while calls[0][0] < until:
        if time.monotonic() > stop_at:
            return tally, False
        free_at = prepare(keeper, clock, free_at, until=calls[0][0], by_processor=fleet.by_processor, tally=tally)
        arrived, _, call, worker = heapq.heappop(calls)
        clock.now = max(arrived, free_at)
        reports = worker.reports(plan.artefacts) if call == "exchange" else []
        began, began_processor = time.perf_counter(), time.process_time()
        if call == "join":
            keeper.join(worker.name)
        elif call == "beat":
            keeper.heartbeat(worker.name)
        else:
            answer = keeper.exchange(worker.name, reports, worker.slots - len(worker.running))
        processor = time.process_time() - began_processor + fleet.call_seconds
        duration = processor if fleet.by_processor else time.perf_counter() - began + fleet.call_seconds
        free_at = clock.now + duration
        if arrived > measured_from:
            tally.busy, tally.processor = tally.busy + duration, tally.processor + processor
            tally.passed = free_at - measured_from
        if call == "exchange":
            worker.obey(reports, answer)
            if arrived > measured_from:
                tally.waits.append(free_at - arrived)
                tally.readings += len(reports)
                tally.begun += len(answer.requests)
            training = fleet.interval * draws.uniform(1 - JITTER, 1 + JITTER)
            heapq.heappush(calls, (free_at + training, next(order), "exchange", worker))
        elif call == "join":
            heapq.heappush(calls, (free_at, next(order), "exchange", worker))
            heapq.heappush(calls, (free_at + BEAT_SECONDS, next(order), "beat", worker))
        else:
            pause = min(max(BEAT_SECONDS, (free_at - arrived) / BEAT_SHARE), LONGEST_SILENCE_SECONDS)
            heapq.heappush(calls, (free_at + pause, next(order), "beat", worker))
    return tally, True


def prepare(
    keeper: StudyKeeper, clock: SimulatedTime, free_at: float, *, until: float, by_processor: bool, tally: "Tally"
) -> float:
    """Let the keeper propose ahead of need until the next call; return the time when it is free."""
    while free_at < until:
        clock.now = free_at
        began, began_processor = time.perf_counter(), time.process_time()
        has_proposed = keeper.prepare()
        processor = time.process_time() - began_processor
        duration = processor if by_processor else time.perf_counter() - began
        if tally.passed:
            tally.busy, tally.processor = tally.busy + duration, tally.processor + processor
        if not has_proposed:
            return free_at
        free_at += duration + PAUSE_SECONDS
    return free_at


@contextmanager
def kept_study(
    url: str, folder: Path, sampler: str, clock: SimulatedTime, *, rule: str = "median"
) -> Iterator[tuple[StudyKeeper, StudyPlan]]:
    """Yield the keeper of a new study, in simulated time, and its plan."""
    search = {"sampler": sampler, "published": "none", "replicates": 0}
    pruning = {"first_rung_steps": 1, "rule": rule}
    specification = small_study(folder, name="fleet", trials=TRIALS, steps=STEPS, pruning=pruning, search=search)
    shape = shape_of(json.loads((BACKBONE / "config.json").read_text()))
    space = SearchSpace(shape=shape, budget=specification.budget_parameters(shape))
    with Ledger.open(url) as ledger:
        study = ledger.create_study(new_study(specification, shape))
    plan = plan_of(BegunSpecification.of(specification), study, space, storage_url=url)
    plan = replace(plan, rungs=specification.rung_plan(EXAMPLES))
    with Ledger.open(url, create=False) as ledger:
        yield StudyKeeper(plan, ledger, clock=clock.monotonic), plan


def call_seconds(calls: int = 2000) -> float:
    """Measure the seconds of a call of an actor of Ray from its calls per second."""
    import ray

    ray.init("local", num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        actor: Any = ray.remote(num_cpus=0)(_EmptyActor).remote()
        ray.get([actor.call.remote("exchange", ()) for _ in range(calls)])
        began = time.perf_counter()
        ray.get([actor.call.remote("exchange", ()) for _ in range(calls)])
        return (time.perf_counter() - began) / calls
    finally:
        ray.shutdown()


class _EmptyActor:
    def call(self, method: str, *arguments: object) -> None:
        """Return at once."""


HEAD = (
    f"{'storage':<11}{'sampler':<10}{'workers':>7}{'slots':>6}{'exch./s':>9}{'most':>7}{'read./s':>9}{'new/s':>7}"
    f"{'median':>10}{'p99':>10}{'keeper':>8}{'idle':>7}"
)


def line(storage: str, sampler: str, fleet: SimulatedFleet, tally: Tally, *, is_whole: bool) -> str:
    """Format the tally of a fleet."""
    begin = f"{storage:<11}{sampler:<10}{fleet.workers:>7}{fleet.slots:>6}"
    if not tally.waits:
        return f"{begin}  some workers had no interval after {fleet.real_seconds:g} s: the keeper is too slow"
    waiting = sum(tally.waits)
    idle = waiting / (waiting + len(tally.waits) * fleet.interval)
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
    """Yield a function that returns the URL of a new database of a kind."""
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
    parser.add_argument("--intervals", type=int, default=3, help="measured intervals (default 3)")
    parser.add_argument("--sampler", nargs="+", default=["random", "factored"])
    parser.add_argument(
        "--rule", default="median", choices=[rule.value for rule in Rule], help="rule of pruning (default median)"
    )
    parser.add_argument("--storage", nargs="+", default=["sqlite", "postgresql"], choices=["sqlite", "postgresql"])
    parser.add_argument("--seconds", type=float, default=60.0, help="most real seconds of a line (default 60)")
    parser.add_argument(
        "--by-processor",
        action="store_true",
        help="count only processor time of the keeper, for a machine with other load; without waits for disks",
    )
    parser.add_argument("--call-ms", type=float, default=math.nan, help="overhead of a call of Ray (default: measured)")
    options = parser.parse_args()
    call = call_seconds() if math.isnan(options.call_ms) else options.call_ms / 1000
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"a call of Ray: {1000 * call:.2f} ms; load of the machine {load}\n{HEAD}", flush=True)
    with tempfile.TemporaryDirectory(prefix="fleet-") as name, storages(options.storage, Path(name)) as new:
        for sampler in options.sampler:
            for workers in options.workers:
                for storage in options.storage:
                    times = options.interval, call, options.intervals, options.seconds
                    fleet = SimulatedFleet(workers, options.slots, *times, options.by_processor)
                    clock = SimulatedTime()
                    folder = Path(tempfile.mkdtemp(dir=name))
                    with kept_study(new(storage), folder, sampler, clock, rule=options.rule) as (keeper, plan):
                        tally, is_whole = simulate(fleet, keeper, plan, clock)
                    print(line(storage, sampler, fleet, tally, is_whole=is_whole), flush=True)


if __name__ == "__main__":
    main()
