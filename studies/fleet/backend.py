"""What every backend is given and what it returns."""

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from studies.fleet.interrupts import Interrupts
from studies.keeping.plan import StudyPlan
from studies.keeping.progress import Progress, Standing, TimeLeft
from studies.specification.sections import Fleet
from trial_runner.requests import PackRunner, TrainingPlan

Observer = Callable[[Progress], None]
"""Shown the study's progress about twice a second, in the launching process."""

RunnerFactory = Callable[[int], PackRunner]
"""Makes a worker's runner, given its number of threads. Travels between processes."""

OBSERVE_SECONDS = 0.5

_GENERATIONS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetOptions:
    """How much work is done at a time.

    Attributes:
        workers: How many workers; None is one per GPU, else one per core.
        pack: Trials that a worker, or each of its shards, trains in one pass; None is as many as its memory holds, see
            `pack_size`.
        time_budget_seconds: After so long the running trials are laid aside; None for no limit.
        gpus: Of each worker, or of each of its shards, 0 or 1; None is one where the machines have any.
        cpus: Cores of each worker; None is as many as every worker can have.
        accelerator: The kind of its GPU, as Ray names it; None for any.
        shards: GPUs of a worker that share one backbone.
        snapshot_seconds: Between two measurements trials are snapshot so often.
    """

    workers: int | None = None
    pack: int | None = 1
    time_budget_seconds: float | None = None
    gpus: int | None = None
    cpus: int | None = None
    accelerator: str | None = None
    shards: int = 1
    snapshot_seconds: float = math.inf


def options_of(fleet: Fleet) -> FleetOptions:
    """The same as a study file has it."""
    return FleetOptions(
        workers=None if fleet.workers == "auto" else int(fleet.workers),
        pack=None if fleet.pack == "auto" else int(fleet.pack),
        time_budget_seconds=fleet.time_budget,
        gpus=None if fleet.gpus == "auto" else int(fleet.gpus),
        cpus=None if fleet.cpus == "auto" else int(fleet.cpus),
        accelerator=fleet.accelerator,
        shards=fleet.shards,
        snapshot_seconds=fleet.snapshot_every or math.inf,
    )


def pack_size(options: FleetOptions, plan: StudyPlan, workers: int) -> tuple[int, TrainingPlan | None]:
    """How many slots a worker opens at most, and the training plan that they must fit in memory with, if any.

    Left to memory alone, a pack could take a whole study in at once, and no trial would be proposed from what another
    has shown; so it takes a quarter of the worker's share of the trials at most.
    """
    if options.pack is not None:
        return options.pack * options.shards, None
    return most_slots(plan.target_trials, workers), plan.training


def most_slots(trials: int, workers: int) -> int:
    """The most slots of a pack that is left to memory."""
    return max(1, trials // (_GENERATIONS * workers))


def asked_threads() -> int | None:
    """The most threads that the user lets a worker compute with, by ``OMP_NUM_THREADS``; None if they do not say."""
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(first) or None if first.isdecimal() else None


class Backend(Protocol):
    """Runs the workers of one study until it is done or they are sent away."""

    def __call__(self, plan: StudyPlan, factory: RunnerFactory, options: FleetOptions, watch: "Watch") -> Standing:
        """Run, and return where the study stands in the end.

        Raises:
            StudiesError: If the launch cannot go on. Nothing is lost: launching again continues.
        """
        ...


class Watch:
    """Looks at the clock and at the user's wishes, and shows the progress."""

    def __init__(self, observer: Observer, interrupts: Interrupts, time_budget_seconds: float | None) -> None:
        """Start the clock."""
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
