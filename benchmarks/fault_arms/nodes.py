"""A machine of a cluster that is lost."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from support.cluster import Cluster, has_own_disks, is_under_way
from support.killed_study import finish, start, wait_for

from fault_arms.bench import Bench, Case, Outcome, met

_TRIALS = 16


@contextmanager
def _cluster(bench: Bench) -> Iterator[Cluster]:
    """A head, which is the launching machine; launches of this process find it."""
    folder = bench.folder / "cluster"
    folder.mkdir()
    cluster, before = Cluster(folder), dict(os.environ)
    try:
        cluster.start()
        os.environ.update(cluster.settings)
        yield cluster
    finally:
        os.environ.clear()
        os.environ.update(before)
        cluster.stop()


def _lost(bench: Bench, *, database: str, own_disk: bool) -> Outcome:
    """Trials of a node that dies go on at the one that is left."""
    with _cluster(bench) as cluster:
        brake = bench.folder / "brake"
        brake.touch()
        study = bench.study(database, "ray", _TRIALS, workers="auto", brake=str(brake))
        study.start = start  # a process that finds the cluster
        study.folder.mkdir()
        doomed = cluster.add(hidden=study.folder if own_disk and has_own_disks() else None)
        process = study.launch()
        wait_for(lambda: is_under_way(study, 2), process, study)
        before = {trial.number: trial.attempt for trial in study.recorded()}
        lost_at = time.monotonic()
        doomed.kill()
        wait_for(lambda: any(one.attempt > before.get(one.number, 1) for one in study.recorded()), process, study)
        seconds = time.monotonic() - lost_at
        brake.unlink()
        finish(study, process)
        return met(study, [seconds])


NODES = tuple(
    Case(
        f"node killed, {'disks of their own' if own else 'one disk'}, {database}",
        partial(_lost, database=database, own_disk=own),
    )
    for database, own in (("sqlite", False), ("postgres", True))
)
