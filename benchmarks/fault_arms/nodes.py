"""Machines of a cluster that are lost or run out of memory."""

import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from support.cluster import Cluster, Node, has_own_disks, is_under_way
from support.killed_study import CLUSTER, LaunchedStudy, finish, start, wait_for

from fault_arms.bench import Bench, Case, Outcome, failed_alone, fault_outcome, new_bench
from studies.ledger.ledger import Ledger
from studies.records import EventKind, EventRecord, TrialState

_TRIALS = 16
_FEW_TRIALS = 6
_LOSSES = 5
_SLOW_STEP_SECONDS = "3"
"""Seconds of a step while machines are lost, so that no reading falls between two losses."""

_FAULTY = 3
_ATTEMPTS = 3
_MEMORY = Path("/proc/meminfo")
_ROOM_KILOBYTES = 2_500_000
"""Free memory of a node for its workers."""

_Braked = tuple[Cluster, LaunchedStudy]


@contextmanager
def _cluster(bench: Bench, *, cpus: int = 1) -> Iterator[Cluster]:
    """Start a head with some cores on the launching machine; launches of this process find it."""
    folder = bench.folder / "cluster"
    folder.mkdir()
    cluster, before = Cluster(folder), dict(os.environ)
    try:
        cluster.start(cpus=cpus)
        os.environ.update(cluster.settings)
        yield cluster
    finally:
        os.environ.clear()
        os.environ.update(before)
        cluster.stop()


@contextmanager
def shared_cluster(nodes: int) -> Iterator[None]:
    """Start a cluster for all studies; with 0 nodes each study starts its own."""
    if not nodes:
        yield
        return
    with new_bench() as bench, _cluster(bench) as cluster:
        for _ in range(nodes - 1):
            cluster.add()
        CLUSTER.extend(node.process.pid for node in cluster.nodes)
        yield


@contextmanager
def _braked(bench: Bench, database: str, trials: int, *, cpus: int, **options: str) -> Iterator[_Braked]:
    """Yield a cluster and a study on it, which does not end before its brake is deleted."""
    with _cluster(bench, cpus=cpus) as cluster:
        brake = bench.folder / "brake"
        brake.touch()
        study = bench.study(database, "ray", trials, brake=str(brake), **options)
        study.start = start  # a process that finds the cluster
        study.folder.mkdir()
        yield cluster, study


def _lose(study: LaunchedStudy, node: Node, cluster: Cluster | None = None) -> float:
    """Kill a node, and add another one if a cluster is given; return the seconds until a trial begins again."""
    before = {trial.number: trial.attempt for trial in study.recorded()}
    study.count_fault()
    lost_at = time.monotonic()
    node.kill()
    if cluster is not None:
        cluster.add()
    wait_for(lambda: _has_new_attempt(study, before), study.launches[-1], study)
    return time.monotonic() - lost_at


def _lost(bench: Bench, *, database: str, own_disk: bool) -> Outcome:
    """Kill a node; its trials must continue on the other one."""
    with _braked(bench, database, _TRIALS, cpus=1, workers="auto") as (cluster, study):
        doomed = cluster.add(hidden=study.folder if own_disk and has_own_disks() else None)
        wait_for(lambda: is_under_way(study, 2), study.launch(), study)
        seconds = _lose(study, doomed)
        study.release()
        finish(study, study.launches[-1])
        return fault_outcome(study, [seconds])


def _repeatedly_lost(bench: Bench) -> Outcome:
    """Kill one node after another; no trial must fail, however often its machine is lost."""
    options = {"workers": "1", "braked": _SLOW_STEP_SECONDS}
    with _braked(bench, "sqlite", _FEW_TRIALS, cpus=0, **options) as (cluster, study):
        cluster.add()
        wait_for(lambda: is_under_way(study, 1), study.launch(), study)
        seconds = [_lose(study, cluster.nodes[-1], cluster) for _ in range(_LOSSES)]
        study.release()
        finish(study, study.launches[-1])
        lost = Counter(event.trial for event in _events(study) if "its machine was lost" in event.text)
        most = max(lost.values(), default=0)
        problems = [] if most >= _LOSSES else [f"a trial must lose its machine {_LOSSES} times; got {most}"]
        return fault_outcome(study, seconds, problems)


def _has_new_attempt(study: LaunchedStudy, before: Mapping[int, int]) -> bool:
    """Return whether a trial runs in a later attempt than before."""
    running = [trial for trial in study.recorded() if trial.state is TrialState.RUNNING]
    return any(trial.attempt > before.get(trial.number, 1) for trial in running) and is_under_way(study, 1)


def _events(study: LaunchedStudy) -> list[EventRecord]:
    with Ledger.open(study.url, read_only=True) as ledger:
        return ledger.events(ledger.study(study.name).id)


def _out_of_memory(bench: Bench) -> Outcome:
    """Let a trial use all memory of a node; it alone must fail, with an event for each end of its worker."""
    with _cluster(bench, cpus=0) as cluster:
        study = bench.study("sqlite", "ray", _FEW_TRIALS, workers="1", leaks_memory=str(_FAULTY))
        study.start = start
        study.folder.mkdir()
        lines = (line.partition(":") for line in _MEMORY.read_text().splitlines())
        memory = {name: int(rest.split()[0]) for name, _, rest in lines}
        used = 1 - memory["MemAvailable"] / memory["MemTotal"]
        share = used + _ROOM_KILOBYTES / memory["MemTotal"]
        cluster.add(RAY_memory_usage_threshold=f"{share:.3f}", RAY_memory_monitor_refresh_ms="100")
        began_at = time.monotonic()
        finish(study)
        seconds = time.monotonic() - began_at
        problems = failed_alone(study, _FAULTY, "memory")
        texts = [event.text for event in _events(study) if event.kind == EventKind.MACHINE and "memory" in event.text]
        problems += [] if len(texts) >= _ATTEMPTS else [f"each end of a worker must have an event; got {texts}"]
        study.in_training = len(texts)  # the trial eats the memory in a step
        return fault_outcome(study, [seconds], problems, times=len(texts), given_up=1)


NODES = (
    *(
        Case(
            f"node killed, {'disks of their own' if own else 'one disk'}, {database}",
            partial(_lost, database=database, own_disk=own),
        )
        for database, own in (("sqlite", False), ("postgres", True))
    ),
    Case(f"{_LOSSES} nodes killed one after another, sqlite", _repeatedly_lost),
    Case("node out of memory, sqlite", _out_of_memory),
)
