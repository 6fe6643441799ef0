"""Runner with a cache on disk, so that equal trials are trained once."""

import hashlib
import json
import pickle
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path

from search_space.codec import configuration_to_json
from trial_runner.requests import Failure, Pack, PackRunner, Reading, Snapshot, TrainingPlan, TrialRequest
from trial_runner.runner import open_runner
from trial_runner.tasks import Task


class OutOfTime(Exception):  # noqa: N818 - not an error: the same command continues
    """A trial must be trained after the time is up."""


class CachedRunner:
    """Implementation of `trial_runner.requests.PackRunner` that reads earlier trainings from a folder.

    The key of a trial is its configuration, learning rates, training plan and seed. If more steps of a stopped trial
    are needed than its readings have, it is trained again from the first step.

    Args:
        backbone: Folder or name.
        folder: Folder of the readings.
        until: Time on the monotonic clock after which no trial begins.
    """

    def __init__(self, *, backbone: str, task: Task, folder: Path, until: float) -> None:
        """Store the arguments; load nothing before a trial must be trained."""
        self.until = until
        self._backbone, self._task, self._folder = backbone, task, folder

    @cached_property
    def inner(self) -> PackRunner:
        """Runner that trains."""
        return open_runner(backbone=self._backbone, task=self._task)

    @property
    def identity(self) -> Mapping[str, str]:
        """Identity of the inner runner."""
        return self.inner.identity

    def open_pack(self, slots: int, *, fitting: TrainingPlan | None = None) -> "CachedPack":
        """Open a pack of one slot."""
        return CachedPack(self)

    def save(self, snapshot: Snapshot, folder: Path) -> Path:
        """Save with the inner runner."""
        return self.inner.save(snapshot, folder)

    def load(self, path: Path) -> Snapshot:
        """Load with the inner runner."""
        return self.inner.load(path)

    def stored_readings(self, request: TrialRequest) -> list[Reading]:
        """Return the stored readings of a trial."""
        path = self._path(request)
        return pickle.loads(path.read_bytes()) if path.exists() else []

    def store(self, request: TrialRequest, readings: Sequence[Reading]) -> None:
        """Store the readings of a trial."""
        path = self._path(request)
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{time.monotonic_ns()}")
        unfinished.write_bytes(pickle.dumps(list(readings)))
        unfinished.replace(path)

    def readings(self, request: TrialRequest) -> Iterator[Reading]:
        """Yield the readings of a trial; train it only as far as they are consumed.

        Raises:
            OutOfTime: If it must be trained and the time is up.
        """
        pack, done = self.open_pack(1), 0
        pack.admit(request)
        for step in request.plan.evaluate_at_steps:
            for result in pack.advance(step - done):
                if isinstance(result, Failure):
                    return
                yield result
            done = step

    def _path(self, request: TrialRequest) -> Path:
        key = [
            self._backbone,
            asdict(self._task),
            configuration_to_json(request.configuration),
            request.learning_rates,
            asdict(request.plan),
            request.seed,
        ]
        digest = hashlib.sha256(json.dumps(key, sort_keys=True, default=str).encode()).hexdigest()
        return self._folder / digest[:2] / f"{digest[2:24]}.pickle"


class CachedPack:
    """Implementation of `trial_runner.requests.Pack` with one trial, whose stored readings are not trained again."""

    def __init__(self, runner: CachedRunner) -> None:
        """Start with an empty slot."""
        self._runner = runner
        self._request: TrialRequest | None = None
        self._step = 0
        self._stored: list[Reading] = []
        self._inner: Pack | None = None

    @property
    def free_slots(self) -> int:
        """Number of free slots, 0 or 1."""
        return int(self._request is None)

    @property
    def steps_to_reading(self) -> int:
        """Number of steps to the next reading; 0 without one."""
        return 0 if self._request is None else self._request.plan.steps_to_evaluation(self._step)

    def admit(self, request: TrialRequest) -> None:
        """Admit a trial and read its stored readings."""
        stored = self._runner.stored_readings(request)
        self._request, self._step, self._stored, self._inner = request, 0, stored, None

    def advance(self, steps: int) -> list[Reading | Failure]:
        """Return the readings of the next steps; train those that are not stored."""
        if (request := self._request) is None:
            return []
        before, self._step = self._step, min(self._step + steps, request.plan.steps)
        failures: list[Failure] = []
        if self._step > max((reading.step for reading in self._stored), default=0):
            failures = self._train(request, before)
        readings = [reading for reading in self._stored if before < reading.step <= self._step]
        if failures:
            self.evict(request.trial)
        return [replace(result, trial=request.trial) for result in (*readings, *failures)]

    def evict(self, trial: int) -> None:
        """Evict the trial."""
        self._request = self._inner = None

    def snapshot(self, trial: int) -> Snapshot:
        """Return the step alone: a trial continues from its stored readings or from the first step."""
        return Snapshot(trial=trial, step=self._step, facts={})

    def restore(self, request: TrialRequest, snapshot: Snapshot) -> None:
        """Admit a trial at the step of a snapshot."""
        self.admit(request)
        self._step = snapshot.step

    def _train(self, request: TrialRequest, before: int) -> list[Failure]:
        results: list[Reading | Failure] = []
        if self._inner is None:
            if time.monotonic() > self._runner.until:
                raise OutOfTime
            self._inner = self._runner.inner.open_pack(1)
            self._inner.admit(request)
            results += self._inner.advance(before) if before else ()
        results += self._inner.advance(self._step - before)
        steps = {reading.step for reading in self._stored}
        fresh = [result for result in results if isinstance(result, Reading) and result.step not in steps]
        if fresh:
            self._stored += fresh
            self._runner.store(request, self._stored)
        return [result for result in results if isinstance(result, Failure)]
