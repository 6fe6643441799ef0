"""Fleet of Tune: it grows with its cluster, replaces moved places, and ends with a first worker."""

from collections.abc import Callable
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ray.air.execution._internal.actor_manager import RayActorManager
from ray.exceptions import OutOfMemoryError, RayActorError

from studies.backends.placement import ClusterNode, Share
from studies.backends.scaling_policy import Growth, Places, WorkerFailures, treat_oom_as_actor_error
from studies.backends.tune_worker import MOVES
from studies.errors import LaunchError

OUT_OF_MEMORY = (
    "1 worker(s) were killed due to the node running low on memory. Memory on the node (IP: 192.0.2.2, ID: 009381e0) "
    "was 12.64GB used / 23.54GB limit (0.536867)\nOOM kill reason: Memory usage 12569137152B exceeded threshold"
)
"""What Ray 2.60 says."""


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> list[ClusterNode]:
    """Return the list of the cluster's nodes, to which tests add."""
    found: list[ClusterNode] = []
    monkeypatch.setattr("studies.backends.placement.Nodes.staying", property(lambda self: tuple(found)))
    return found


def one(key: str) -> ClusterNode:
    return ClusterNode(key=key, address="10.0.0.1", cpus=2, gpus=0)


def places(growth: Growth) -> list[str]:
    """Return every place that the fleet suggests."""
    given = []
    while (config := growth.suggest("t")) is not None:
        given.append(config["place"])
    return given


def test_a_node_that_is_added_gives_more_places(nodes):
    growth = Growth(Share(cores=1, gpus=0), None)
    assert (growth.wanted, places(growth)) == (1, ["worker-0"])  # a cluster that is still empty has something to go by
    nodes.append(one("a"))
    assert places(growth) == ["worker-1"]
    nodes.append(one("b"))
    assert places(growth) == ["worker-2", "worker-3"]
    nodes.remove(one("a"))
    assert places(growth) == []


def test_all_requested_workers_are_suggested_at_once(nodes):
    assert len(places(Growth(Share(cores=1, gpus=0), 5))) == 5


def test_moving_worker_is_replaced_and_done_worker_ends_fleet(nodes):
    growth = Growth(Share(cores=1, gpus=0), 2)
    assert len(places(growth)) == 2
    fleet = Places(growth)
    fleet.searcher.on_trial_complete("t", {MOVES: True})
    assert not fleet.is_finished()
    assert places(growth) == ["worker-2"]
    fleet.searcher.on_trial_complete("t", {MOVES: False})
    assert fleet.is_finished()


@pytest.fixture
def failed(tmp_path: Path) -> Callable[..., None]:
    """Report failures of the process at a place, as Tune does."""

    def fail(failures: WorkerFailures, place: str, times: int, error: str = "trace\nImportError: no studies.") -> None:
        file = tmp_path / f"{place}.txt"
        trial: Any = SimpleNamespace(config={"place": place}, error_file=str(file))
        for number in range(times):
            with file.open("a") as log:
                log.write(f"Failure # {number} (occurred at some time)\n{error}\n")
            failures.on_trial_recover(0, [trial], trial)

    return fail


def test_worker_start_failure_ends_launch_with_its_last_line(failed):
    failures = WorkerFailures()
    failed(failures, "worker-1", 4)
    failures.check({"worker-0/a"})
    failed(failures, "worker-1", 1)
    with pytest.raises(LaunchError, match="worker-1 ended 5 times before it began: ImportError: no studies"):
        failures.check({"worker-0/a"})


def test_failures_before_a_worker_began_are_not_counted(failed):
    failures = WorkerFailures()
    for incarnation in "abc":
        failed(failures, "worker-1", 4)
        failures.check({f"worker-1/{incarnation}"})


def test_oom_killed_worker_is_reported_once(failed):
    failures = WorkerFailures()
    failed(failures, "worker-0", 1)
    failed(failures, "worker-1", 1, OUT_OF_MEMORY)
    failed(failures, "worker-1", 1)
    assert list(failures.oom_killed_workers()) == [
        ("worker-1", "ran out of memory: 192.0.2.2 had 12.64GB used / 23.54GB limit")
    ]
    assert list(failures.oom_killed_workers()) == []


def test_tune_treats_oom_killed_worker_as_ended(monkeypatch):
    errors: list[Exception] = []

    def take(manager: Any, tracked_actor_task: Any, exception: Exception) -> None:
        errors.append(exception)

    names = [*signature(RayActorManager._actor_task_failed).parameters]
    assert names == ["self", *[*signature(take).parameters][1:]]
    monkeypatch.setattr(RayActorManager, "_actor_task_failed", take)
    treat_oom_as_actor_error()
    for error in (OutOfMemoryError(OUT_OF_MEMORY), ValueError("another")):
        RayActorManager._actor_task_failed(None, tracked_actor_task=None, exception=error)
    assert [type(error) for error in errors] == [RayActorError, ValueError]
    assert str(errors[0]) == OUT_OF_MEMORY
