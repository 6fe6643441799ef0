"""What every backend is given and what it returns: the clock, the user's signals, how workers get their runner."""

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import FrameType
from typing import TYPE_CHECKING, Self

from studies.runtime.progress import Observer, Progress, Standing, TimeLeft
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

    from trial_runner.runner import TorchRunner

RunnerFactory = Callable[[int], PackRunner]
"""Makes a worker's runner, given its number of threads. Travels between processes."""

OBSERVE_SECONDS = 0.5
SNAPSHOT_SECONDS = 600.0
"""Between two measurements, after which trials are snapshot, so that no more is lost with a machine."""

_GENERATIONS = 4
# why a launch stops, and for how long its workers have; container managers kill 10 s after SIGTERM
_WISHES = {
    signal.SIGINT: ("interrupted by Ctrl-C", 30.0),
    signal.SIGTERM: ("told to stop by SIGTERM", 6.0),
    signal.SIGUSR1: ("told to stop by SIGUSR1", 60.0),
}
_ONE_BREATH_SECONDS = 1.0
_LONGEST_GRACE_SECONDS = 120.0


def pack_size(options: Fleet, plan: StudyPlan, workers: int) -> tuple[int, TrainingPlan | None]:
    """How many slots a worker opens at most, and the training plan that they must fit in memory with, if any.

    Left to memory alone, a pack could take a whole study in at once, and no trial would be proposed from what another
    has shown; so it takes a quarter of the worker's share of the trials at most.
    """
    if options.pack != "auto":
        return int(options.pack) * options.worker.shards, None
    return most_slots(plan.target_trials, workers), plan.training


def most_slots(trials: int, workers: int) -> int:
    """The most slots of a pack that is left to memory."""
    return max(1, trials // (_GENERATIONS * workers))


def asked_threads() -> int | None:
    """The most threads that the user lets a worker compute with, by ``OMP_NUM_THREADS``; None if they do not say."""
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(first) or None if first.isdecimal() else None


class Watch:
    """Looks at the clock and at the user's wishes, and shows the progress."""

    def __init__(self, observer: Observer, interrupts: "Interrupts", time_budget_seconds: float | None) -> None:
        """Start the clock.

        Args:
            observer: Shown the study's progress about twice a second, in the launching process.
        """
        self._observer = observer
        self._interrupts = interrupts
        self._time_budget_seconds = time_budget_seconds
        self._began_at = time.monotonic()
        self._next_look = 0.0

    @property
    def seconds_elapsed(self) -> float:
        """Since the launch began."""
        return time.monotonic() - self._began_at

    @property
    def grace_seconds(self) -> float:
        """How long the workers have to lay their trials aside once there is a reason to stop."""
        return self._interrupts.grace_seconds

    def is_due(self) -> bool:
        """Whether it is time to look again; about twice a second, and at once when the user wants to stop."""
        now = time.monotonic()
        if now < self._next_look and not self._interrupts.reason:
            return False
        self._next_look = now + OBSERVE_SECONDS
        return True

    def reason_to_stop(self) -> str:
        """Why the workers should be sent away; empty while they should not."""
        if self._interrupts.reason:
            return self._interrupts.reason
        if self._time_budget_seconds is not None and self.seconds_elapsed >= self._time_budget_seconds:
            return f"the time budget of {self._time_budget_seconds:g} s is used up"
        return ""

    def show(self, progress: Progress) -> None:
        """Show the progress, with the time of this launch."""
        left = progress.left
        if self._time_budget_seconds is not None:
            remaining = max(0.0, self._time_budget_seconds - self.seconds_elapsed)
            if left is None or left.seconds > remaining:
                left = TimeLeft(seconds=remaining)
        self._observer(replace(progress, seconds_elapsed=self.seconds_elapsed, left=left))


Backend = Callable[[StudyPlan, RunnerFactory, Fleet, Watch], Standing]
"""Runs the workers of one study until it is done or they are sent away, and returns where it stands in the end.

It raises a `StudiesError` if the launch cannot go on. Nothing is lost: launching again continues.
"""


class Interrupts:
    """While entered, the first of Ctrl-C, SIGTERM and SIGUSR1 is only noted; a second one stops at once.

    Batch systems send SIGUSR1 a while before they end a job. `timeout` and some shells send SIGTERM twice in one
    breath, to the process and to its group: that is one wish.

    Attributes:
        reason: What was noted; empty before the first signal.
        grace_seconds: How long whoever must stop has to lay its work aside.
    """

    def __init__(self) -> None:
        """Note nothing yet."""
        self.reason = ""
        self.grace_seconds = _LONGEST_GRACE_SECONDS
        self._noted_at = 0.0
        self._earlier: dict[signal.Signals, object] = {}

    def __enter__(self) -> Self:
        """Take the signals over; outside the main thread there are none to take."""
        if threading.current_thread() is threading.main_thread():
            self._earlier = {number: signal.signal(number, self._note) for number in _WISHES}
        return self

    def __exit__(self, *raised: object) -> None:
        """Give the signals back."""
        for number, handler in self._earlier.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._earlier = {}

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.reason:
            if time.monotonic() - self._noted_at < _ONE_BREATH_SECONDS:
                return
            raise KeyboardInterrupt
        self._noted_at = time.monotonic()
        self.reason, self.grace_seconds = _WISHES[signal.Signals(number)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchRunnerFactory:
    """Orders the real runner. Torch is loaded in the worker, not where the runner is ordered.

    Attributes:
        backbone: Which one, and how its weights are held; or its name alone.
        precision: ``auto``, ``fp32`` or ``bf16``.
        shards: Processes that share the backbone, on a GPU each; 1 for this one.
        inputs: Digest of what workers must read; None lets them read anything.
    """

    backbone: str | BackboneSource
    task: Task
    precision: str
    shards: int = 1
    inputs: InputDigest | None = None

    @classmethod
    def of(cls, specification: Specification, inputs: InputDigest | None = None) -> Self:
        """The runner that trains the trials of a study."""
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
            RunnerError: If either cannot be had.
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
