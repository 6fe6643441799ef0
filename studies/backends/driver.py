"""Driver of Ray in a process of its own: the keeper is an actor, every worker one long-lived trial of Ray Tune.

Tune places the workers, gives them their cores and GPUs and restarts them when they die. It neither searches nor
schedules, and its run folder is temporary: the ledger holds everything. If Ray hangs or aborts, it takes this process
along; the launching process (`studies.backends.tune`) watches it and ends it.

Started as ``python -m studies.backends.driver FILE_DESCRIPTOR PARENT ORDER``.
"""

import contextlib
import ctypes
import os
import pickle
import signal
import sys
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import ray
from ray import tune
from ray.exceptions import AuthenticationError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from studies.backends.backend import SNAPSHOT_SECONDS, pack_size
from studies.backends.driver_process import DriverOrder, DriverProgress, Ended, not_taken_in
from studies.backends.keeper_actor import FILES, PING, KeeperActor
from studies.backends.keeper_monitor import KeeperWatch
from studies.backends.placement import Nodes, no_gpu, share_of
from studies.backends.scaling_policy import Growth, Places, WorkerFailures, treat_oom_as_actor_error
from studies.backends.tune_worker import Home, PackTrainable
from studies.errors import LaunchError, StudiesError, message_line
from studies.runtime.progress import LaunchStatus
from trial_runner.processes import name_of, session_of

LOOK_SECONDS = 0.1
_LEAVING_SECONDS = 15.0
_PLACE_SECONDS = 30.0
_OBJECT_STORE_BYTES = 100_000_000
_STARTS = 3  # a busy machine may not start Ray within the 30 seconds that Ray waits
_TOO_SLOW = "timed out during startup"
_VITAL = ("gcs_server", "raylet")
_SET_PARENT_DEATH_SIGNAL = 1


def main() -> None:
    """Run the order of the launching process and send it the outcome."""
    connection, parent = Connection(int(sys.argv[1])), int(sys.argv[2])
    os.set_inheritable(connection.fileno(), False)  # children must not keep it open after this process ends
    _end_with(parent)
    order: DriverOrder = pickle.loads(Path(sys.argv[3]).read_bytes())
    try:
        ended: Ended = _driven(order, connection)
    except StudiesError as error:
        ended = error
    except (EOFError, BrokenPipeError):
        os._exit(1)  # the launching process is gone
    except Exception as error:  # noqa: BLE001 - Ray fails in many ways
        ended = _explained(error)
    connection.send(ended)
    if order.address is not None:
        ray.shutdown()
    # the launching process ends the remains of a private Ray
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _end_with(parent: int) -> None:
    """End this process when its parent ends; Linux does so even if it hangs."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _explained(error: BaseException) -> LaunchError:
    return LaunchError(
        f"cannot run the workers: Ray stopped with {type(error).__name__}: {message_line(error)}. "
        "Nothing is lost: launch again to continue."
    )


def _driven(order: DriverOrder, connection: Connection) -> LaunchStatus:
    """Run the fleet until the study is done or a stop is requested."""
    connection.send(start_ray(order))
    plan, options = order.plan, order.options
    nodes = Nodes()
    share = share_of(nodes.staying, options, is_own=order.address is None)
    if waits_for := no_gpu(share.gpus, nodes.staying):
        connection.send(DriverProgress(progress=None, waits_for=waits_for))
    workers = None if options.workers == "auto" else int(options.workers)
    growth = Growth(share, workers)
    context, name = ray.get_runtime_context(), f"launch {uuid.uuid4().hex[:12]}"
    actor: Any = ray.remote(concurrency_groups={PING: 2, FILES: 2})(KeeperActor)
    # on this machine: the database may be a local file, and the study's folder is local
    here = NodeAffinitySchedulingStrategy(context.get_node_id(), soft=False)
    limits = {"num_cpus": 0, "max_restarts": -1, "max_task_retries": -1}
    handle = actor.options(name=name, scheduling_strategy=here, **limits).remote(plan, name)
    slots, fitting = pack_size(options, plan, growth.wanted)
    trainable = tune.with_parameters(
        PackTrainable,
        plan=plan,
        factory=order.factory,
        slots=slots,
        fitting=fitting,
        snapshot_seconds=SNAPSHOT_SECONDS,
        threads=max(1, min(share.cores, order.allowed_threads or share.cores)),
        home=Home(keeper=name, namespace=context.namespace, node=context.get_node_id(), mark=order.mark),
    )
    treat_oom_as_actor_error()
    failures = WorkerFailures()
    # the loop of Tune runs in a thread beside the one that watches the launch
    fleet = ThreadPoolExecutor(1).submit(_tuner(trainable, growth, failures, order.folder).fit)
    keeper = KeeperWatch(handle, plan)
    missing = partial(_missing_resources, keeper, growth, failures, nodes, time.monotonic())
    return watch_over(fleet, keeper, connection, missing)


def start_ray(order: DriverOrder) -> dict[str, int]:
    """Start Ray, or connect to the cluster at an address; return the processes that must stay alive.

    Raises:
        LaunchError: If the cluster does not accept this machine.
    """
    quiet = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": True}
    if order.address is not None:
        try:
            ray.init(order.address, **quiet)
        except (ConnectionError, AuthenticationError) as error:
            raise LaunchError(
                f"cannot run the workers: {not_taken_in(order.address)}. Nothing is lost: launch again to continue."
            ) from error
        return {}
    for start in range(_STARTS):
        try:
            ray.init(
                "local",
                num_cpus=order.cores
                if order.options.workers == "auto"
                else max(order.cores, int(order.options.workers)),
                include_dashboard=False,
                object_store_memory=_OBJECT_STORE_BYTES,
                **quiet,
            )
            break
        except Exception as error:
            if _TOO_SLOW not in str(error) or start == _STARTS - 1:
                raise
    return {name: pid for pid in session_of(os.getpid()) if (name := name_of(pid)) in _VITAL}


def _missing_resources(
    keeper: KeeperWatch, growth: Growth, failures: WorkerFailures, nodes: Nodes, since: float
) -> str:
    """Return the resources that workers lack as a sentence; empty if workers begin or have not had the time.

    The keeper receives the places whose process ran out of memory.

    Raises:
        LaunchError: If workers end before they have begun.
    """
    for place, why in failures.oom_killed_workers():
        keeper.call("ended", place, why)
    failures.check(keeper.workers)
    if not keeper.workers and (waits_for := no_gpu(growth.share.gpus, nodes.staying)):
        return waits_for
    if keeper.workers or time.monotonic() - since < _PLACE_SECONDS:
        return ""
    return f"no node has {growth.share.words} free for a worker; waiting for one"


def watch_over(
    fleet: Future[Any], keeper: KeeperWatch, connection: Connection, missing: Callable[[], str]
) -> LaunchStatus:
    """Send the progress until the last worker has left, or does not leave although nothing is left to do."""
    over_since: float | None = None
    while not fleet.done():
        _exchange_status(keeper, connection, missing())
        if not _is_over(keeper.status):
            over_since = None
        elif over_since is None:
            over_since = time.monotonic()
        elif not keeper.workers or time.monotonic() - over_since > _LEAVING_SECONDS:
            break
        wait([fleet], LOOK_SECONDS)
    keeper.discard_pending_status()  # an earlier answer may lack the reason why the last worker left
    while not _exchange_status(keeper, connection):
        time.sleep(LOOK_SECONDS)
    status = keeper.status
    if status is None:
        raise LaunchError("the keeper did not report the status of the study. Launch again to continue.")
    error = fleet.exception() if fleet.done() else None
    if error is not None and not status.is_done and status.halted is None:
        raise _explained(error) from error
    if status.halted is None:
        is_recorded = keeper.call("finish", status.summary)
        while not is_recorded():
            _exchange_status(keeper, connection)
            time.sleep(LOOK_SECONDS)
    return status


def _exchange_status(keeper: KeeperWatch, connection: Connection, missing: str = "") -> bool:
    """Exchange messages between the launching process and the keeper; return whether there is a new status."""
    while connection.poll():
        keeper.stop_reason = connection.recv()
    is_new = keeper.poll()
    progress = None if keeper.status is None else keeper.status.progress
    connection.send(DriverProgress(progress=progress, waits_for=keeper.waits_for or missing))
    return is_new


def _is_over(status: LaunchStatus | None) -> bool:
    """Return whether the workers have nothing left to do but to leave."""
    if status is None:
        return False
    return status.is_done or status.halted is not None or bool(status.drained and not status.progress.running)


def _tuner(trainable: Any, growth: Growth, failures: WorkerFailures, folder: Path) -> tune.Tuner:
    return tune.Tuner(
        tune.with_resources(trainable, tune.PlacementGroupFactory([growth.share.bundle])),
        tune_config=tune.TuneConfig(search_alg=Places(growth), num_samples=-1),
        run_config=tune.RunConfig(
            name="fleet",
            storage_path=str(folder / "tune"),
            failure_config=tune.FailureConfig(max_failures=-1),
            callbacks=[failures],
            verbose=0,
        ),
    )


if __name__ == "__main__":
    main()
