"""Interface of backends: the watch, the user's signals, and the factory of the workers' runners."""

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import FrameType
from typing import TYPE_CHECKING, Self

from studies.runtime.progress import LaunchStatus, Progress, ProgressCallback, TimeLeft
from studies.runtime.study_plan import StudyPlan
from studies.study_file.sections import Fleet
from studies.study_file.study import Specification
from trial_runner.backbones import BackboneSource
from trial_runner.gc_pause import uncollected
from trial_runner.requests import PackRunner, TrainingPlan
from trial_runner.tasks.input_digest import InputDigest
from trial_runner.tasks.task import Task

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh

    from studies.ledger.ledger import Ledger
    from trial_runner.runner import TorchRunner

RunnerFactory = Callable[[int], PackRunner]
"""Function that creates a worker's runner, given its number of threads; sent between processes."""

OBSERVE_SECONDS = 0.5
SNAPSHOT_SECONDS = 600.0
"""Interval of snapshots between two measurements, which bounds the loss with a machine."""

_GENERATIONS = 4
# reason and grace seconds of each signal; container managers kill 10 s after SIGTERM
_STOP_SIGNALS = {
    signal.SIGINT: ("interrupted by Ctrl-C", 30.0),
    signal.SIGTERM: ("stopped by SIGTERM", 6.0),
    signal.SIGUSR1: ("stopped by SIGUSR1", 60.0),
}
SAME_REQUEST_SECONDS = 1.0
_LONGEST_GRACE_SECONDS = 120.0


def pack_size(options: Fleet, plan: StudyPlan, workers: int) -> tuple[int, TrainingPlan | None]:
    """Return the largest number of slots of a worker, and the training plan for which they must fit in memory, if any.

    A pack bounded by memory alone could take a whole study at once, and no proposal would use the results of another
    trial. So it takes at most a quarter of the worker's share of the trials.
    """
    if options.pack != "auto":
        return int(options.pack) * options.worker.shards, None
    return most_slots(plan.target_trials, workers), plan.training


def most_slots(trials: int, workers: int) -> int:
    """Return the largest number of slots of a pack whose size is bounded by memory."""
    return max(1, trials // (_GENERATIONS * workers))


def allowed_threads() -> int | None:
    """Return the largest number of threads that ``OMP_NUM_THREADS`` allows a worker; None without a limit."""
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(first) or None if first.isdecimal() else None


class Watch:
    """Checks the time budget and stop requests, and shows the progress."""

    def __init__(self, observer: ProgressCallback, interrupts: "Interrupts", time_budget_seconds: float | None) -> None:
        """Start the clock.

        Args:
            observer: Function that receives the progress about twice a second, in the launching process.
        """
        self._observer = observer
        self._interrupts = interrupts
        self._time_budget_seconds = time_budget_seconds
        self._began_at = time.monotonic()
        self._next_check = 0.0

    @property
    def seconds_elapsed(self) -> float:
        """Seconds since the launch began."""
        return time.monotonic() - self._began_at

    @property
    def grace_seconds(self) -> float:
        """Seconds for workers to checkpoint their trials after a stop request."""
        return self._interrupts.grace_seconds

    def is_due(self) -> bool:
        """Return whether to check again: about twice a second, and at once after a stop request."""
        now = time.monotonic()
        if now < self._next_check and not self._interrupts.reason:
            return False
        self._next_check = now + OBSERVE_SECONDS
        return True

    def reason_to_stop(self) -> str:
        """Return the reason why the workers should be stopped; empty if there is none."""
        if self._interrupts.reason:
            return self._interrupts.reason
        if self._time_budget_seconds is not None and self.seconds_elapsed >= self._time_budget_seconds:
            return f"the time budget of {self._time_budget_seconds:g} s is exhausted"
        return ""

    def show(self, progress: Progress) -> None:
        """Show the progress with the time of this launch."""
        left = progress.left
        if self._time_budget_seconds is not None:
            remaining = max(0.0, self._time_budget_seconds - self.seconds_elapsed)
            if left is None or left.seconds > remaining:
                left = TimeLeft(seconds=remaining)
        self._observer(replace(progress, seconds_elapsed=self.seconds_elapsed, left=left))


Backend = Callable[[StudyPlan, RunnerFactory, Fleet, Watch, "Ledger"], LaunchStatus]
"""Function that runs the workers of one study until it is done or they are stopped, and returns the status.

The ledger is that of the launching process; a keeper in another process opens its own.
It raises a `StudiesError` if the launch cannot continue. Nothing is lost: launching again continues.
"""


class Interrupts:
    """Signal handler: while entered, the first Ctrl-C, SIGTERM or SIGUSR1 is recorded, and a second one stops at once.

    Batch systems send SIGUSR1 some time before they end a job. `timeout` and some shells send SIGTERM twice at once,
    to the process and to its group; that counts as one.

    Attributes:
        reason: Reason of the first signal; empty before it.
        grace_seconds: Seconds for workers to checkpoint their trials.
    """

    def __init__(self) -> None:
        """Start without a signal."""
        self.reason = ""
        self.grace_seconds = _LONGEST_GRACE_SECONDS
        self._noted_at = 0.0
        self._earlier: dict[signal.Signals, object] = {}

    def __enter__(self) -> Self:
        """Install the handlers, in the main thread alone."""
        if threading.current_thread() is threading.main_thread():
            self._earlier = {number: signal.signal(number, self._note) for number in _STOP_SIGNALS}
        return self

    def __exit__(self, *raised: object) -> None:
        """Restore the earlier handlers."""
        for number, handler in self._earlier.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._earlier = {}

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.reason:
            if time.monotonic() - self._noted_at < SAME_REQUEST_SECONDS:
                return
            raise KeyboardInterrupt
        self._noted_at = time.monotonic()
        self.reason, self.grace_seconds = _STOP_SIGNALS[signal.Signals(number)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchRunnerFactory:
    """Factory of the torch runner; torch is imported in the worker.

    Attributes:
        backbone: Name of the backbone, or its source with the format of its weights.
        precision: ``auto``, ``fp32`` or ``bf16``.
        shards: Number of processes that share the backbone, with one GPU each; 1 for this process alone.
        inputs: Digest of the data that workers must read; None for any data.
    """

    backbone: str | BackboneSource
    task: Task
    precision: str
    shards: int = 1
    inputs: InputDigest | None = None

    @classmethod
    def of(cls, specification: Specification, inputs: InputDigest | None = None) -> Self:
        """Return the factory for the trials of a study."""
        return cls(
            backbone=specification.backbone,
            task=specification.task,
            precision=specification.training.precision,
            shards=specification.fleet.worker.shards,
            inputs=inputs,
        )

    def __call__(self, threads: int) -> PackRunner:
        """Load backbone and task, here or in the processes that share the backbone.

        Raises:
            RunnerError: If either cannot be loaded.
        """
        if self.shards == 1:
            return self.open(threads=threads)
        from trial_runner.sharding.runner import Shape, ShardedRunner

        return ShardedRunner(self.open, Shape(ranks=self.shards, threads=max(1, threads // self.shards)))

    def open(self, *, threads: int, mesh: "DeviceMesh | None" = None) -> "TorchRunner":
        """Load backbone and task in this process; see `trial_runner.runner.open_runner`."""
        with uncollected():
            from trial_runner.runner import open_runner

            return open_runner(
                backbone=self.backbone,
                task=self.task,
                precision=self.precision,
                threads=threads,
                mesh=mesh,
                inputs=self.inputs,
            )
