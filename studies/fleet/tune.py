"""The fleet on Ray: the keeper an actor, every worker one long-lived trial of Ray Tune.

Tune places the workers, gives them their cores and GPUs and restarts them where they die. It searches nothing and
schedules nothing, and its run folder is thrown away: the ledger is the truth.
"""

import contextlib
import fcntl
import logging
import os
import shutil
import tempfile
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
from ray import tune

from studies.errors import LaunchError
from studies.fleet.backend import FleetOptions, RunnerFactory, Watch, asked_threads, pack_size
from studies.fleet.keeper_actor import KeeperActor, KeeperClient
from studies.fleet.tune_worker import PackTrainable
from studies.keeping.plan import StudyPlan
from studies.keeping.progress import Standing

_LOOK_SECONDS = 0.1
_OBJECT_STORE_BYTES = 100_000_000
_FOLDER_PREFIX = "deltaspace-"
_LOCK = "launch.lock"
_LONGEST_FOLDER_NAME = 30  # sockets lie below it, and their paths are limited to 107 bytes
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_worker_niceness": "0",  # else any other process of the machine would starve the workers
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_AUTO_INIT": "1",
    "TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "3600",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    """How many workers, and what each is given.

    Attributes:
        workers: Their number.
        cores: Of each.
        gpus: Of each: one, or none.
    """

    workers: int
    cores: int
    gpus: int


def run_tune(plan: StudyPlan, factory: RunnerFactory, options: FleetOptions, watch: Watch) -> Standing:
    """Run the fleet until the study is done or the watch says stop. See `studies.fleet.backend.Backend`."""
    asked = asked_threads()
    with _cluster(options) as folder:
        watch.take_signals()
        places = _places(options)
        name = f"launch {uuid.uuid4().hex[:12]}"
        actor = ray.remote(KeeperActor)
        limits = {"num_cpus": 0, "max_restarts": -1, "max_task_retries": -1}
        handle = actor.options(name=name, **limits).remote(plan, name)
        keeper = KeeperClient(handle)
        slots, fitting = pack_size(options, plan, places.workers)
        trainable = tune.with_parameters(
            PackTrainable,
            plan=plan,
            factory=factory,
            slots=slots,
            fitting=fitting,
            threads=min(places.cores, asked or places.cores),
            keeper=name,
            namespace=ray.get_runtime_context().namespace,
        )
        fleet = _Fleet(_tuner(trainable, places, folder))
        standing = _watch_over(fleet, keeper, watch)
        if standing.halted is None:
            keeper.finish(standing.summary)
        return standing


class _Fleet(threading.Thread):
    """Tune's own loop, beside the one that looks after the launch."""

    def __init__(self, tuner: tune.Tuner) -> None:
        super().__init__(daemon=True)
        self._tuner = tuner
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self._tuner.fit()
        except Exception as error:  # noqa: BLE001 - raised again by the launching thread
            self.error = error


def _watch_over(fleet: _Fleet, keeper: KeeperClient, watch: Watch) -> Standing:
    """Show the progress until the last worker has left."""
    fleet.start()
    while fleet.is_alive():
        if watch.is_due():
            reason = watch.reason_to_stop()
            if reason:
                keeper.drain(reason)
            watch.show(keeper.standing().progress)
        fleet.join(_LOOK_SECONDS)
    standing = keeper.standing()
    watch.show(standing.progress)
    if fleet.error is not None and not standing.is_done and standing.halted is None:
        raise LaunchError(f"Ray Tune must keep the workers running; it stopped: {fleet.error}") from fleet.error
    return standing


def _tuner(trainable: Any, places: _Places, folder: Path) -> tune.Tuner:
    resources = {"cpu": places.cores, "gpu": places.gpus}
    return tune.Tuner(
        tune.with_resources(trainable, resources),
        param_space={"place": tune.grid_search([f"worker-{index}" for index in range(places.workers)])},
        tune_config=tune.TuneConfig(num_samples=1),
        run_config=tune.RunConfig(
            name="fleet",
            storage_path=str(folder / "tune"),
            failure_config=tune.FailureConfig(max_failures=-1),
            verbose=0,
        ),
    )


def _places(options: FleetOptions) -> _Places:
    """Divide what the cluster has.

    Raises:
        LaunchError: If there are fewer GPUs than workers.
    """
    resources = ray.cluster_resources()
    cpus, gpus = int(resources.get("CPU", 1)), int(resources.get("GPU", 0))
    workers = options.workers or gpus or cpus
    if gpus and workers > gpus:
        raise LaunchError(f"every worker has a GPU of its own; got {workers} workers and {gpus} GPUs. Ask for fewer.")
    return _Places(workers=workers, cores=max(1, cpus // workers), gpus=1 if gpus else 0)


@contextmanager
def _cluster(options: FleetOptions) -> Iterator[Path]:
    """A Ray of this launch's own, or the cluster at ``RAY_ADDRESS``; and a folder that lives as long."""
    cpus = len(os.sched_getaffinity(0))
    cores = max(1, cpus // (options.workers or cpus))
    threads = min(cores, asked_threads() or cores)
    with (
        _temporary_folder() as folder,
        _environment(_ENVIRONMENT | {"OMP_NUM_THREADS": str(threads)}),
        _silence(),
    ):
        quiet = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": True}
        address = os.environ.get("RAY_ADDRESS")
        try:
            if address:
                ray.init(address, **quiet)
            else:
                ray.init(
                    "local",
                    num_cpus=max(cpus, options.workers or 1),
                    include_dashboard=False,
                    object_store_memory=_OBJECT_STORE_BYTES,
                    _temp_dir=str(folder),
                    **quiet,
                )
            yield folder
        finally:
            ray.shutdown()


@contextmanager
def _silence() -> Iterator[None]:
    """Keep what Ray and Tune say of dead workers out of the output: they are replaced, and the ledger has it.

    ``log_to_driver`` does not reach the messages of the raylet, and there is no public switch for them.
    """
    tune_logger = logging.getLogger("ray.tune")
    level, was_enabled = tune_logger.level, getattr(ray._private.worker, "_worker_logs_enabled", True)
    tune_logger.setLevel(logging.CRITICAL + 1)
    ray._private.worker._worker_logs_enabled = False
    try:
        yield
    finally:
        ray._private.worker._worker_logs_enabled = was_enabled
        tune_logger.setLevel(level)


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    """A folder for Ray that lives as long as this launch; those of launches that were killed are removed.

    A launch holds a lock on a file in its folder; the system lets go of it when the process dies.
    """
    usual = Path(tempfile.gettempdir())
    parent = usual if len(str(usual)) <= _LONGEST_FOLDER_NAME else Path("/tmp")
    for lock in parent.glob(f"{_FOLDER_PREFIX}*/{_LOCK}"):
        with contextlib.suppress(OSError), lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=_FOLDER_PREFIX, dir=parent))
    try:
        with (folder / _LOCK).open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _environment(settings: dict[str, str]) -> Iterator[None]:
    """Settings that this process and those it starts see; what the user has set stands."""
    missing = {name: value for name, value in settings.items() if name not in os.environ}
    os.environ.update(missing)
    try:
        yield
    finally:
        for name in missing:
            os.environ.pop(name, None)
