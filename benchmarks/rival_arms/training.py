"""Trials that are trained once: a runner whose readings are kept on disk, whoever asks for the trial again."""

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


class OutOfTime(Exception):  # noqa: N818 - no error: the same command continues
    """A trial would have to be trained, and the time is up."""


class CachedRunner:
    """See `trial_runner.requests.PackRunner`: what was trained before is read from a folder.

    A trial is known by its configuration, learning rates, training plan and seed. One that was stopped is read as far
    as it came, and trained again from its beginning where more of it is needed.

    Args:
        backbone: Folder or name.
        task: What is learned.
        folder: Of the readings.
        until: When no trial is begun any more, on the monotonic clock.
    """

    def __init__(self, *, backbone: str, task: Task, folder: Path, until: float) -> None:
        """Load nothing before a trial must be trained."""
        self.until = until
        self._backbone, self._task, self._folder = backbone, task, folder

    @cached_property
    def inner(self) -> PackRunner:
        """The runner that trains."""
        return open_runner(backbone=self._backbone, task=self._task)

    @property
    def identity(self) -> Mapping[str, str]:
        """See `PackRunner`."""
        return self.inner.identity

    def open_pack(self, slots: int, *, fitting: TrainingPlan | None = None) -> "CachedPack":
        """A pack of one slot."""
        return CachedPack(self)

    def save(self, snapshot: Snapshot, folder: Path) -> Path:
        """See `PackRunner`."""
        return self.inner.save(snapshot, folder)

    def load(self, path: Path) -> Snapshot:
        """See `PackRunner`."""
        return self.inner.load(path)

    def known(self, request: TrialRequest) -> list[Reading]:
        """The readings of a trial that were kept."""
        path = self._path(request)
        return pickle.loads(path.read_bytes()) if path.exists() else []

    def keep(self, request: TrialRequest, readings: Sequence[Reading]) -> None:
        """Keep the readings of a trial."""
        path = self._path(request)
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{time.monotonic_ns()}")
        unfinished.write_bytes(pickle.dumps(list(readings)))
        unfinished.replace(path)

    def readings(self, request: TrialRequest) -> Iterator[Reading]:
        """The readings of a trial, trained as far as the caller asks.

        Raises:
            OutOfTime: If it would have to be trained, and the time is up.
        """
        pack, done = self.open_pack(1), 0
        pack.admit(request)
        for step in request.plan.evaluate_at_steps:
            for found in pack.advance(step - done):
                if isinstance(found, Failure):
                    return
                yield found
            done = step

    def _path(self, request: TrialRequest) -> Path:
        told = [
            self._backbone,
            asdict(self._task),
            configuration_to_json(request.configuration),
            request.learning_rates,
            asdict(request.plan),
            request.seed,
        ]
        digest = hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()
        return self._folder / digest[:2] / f"{digest[2:24]}.pickle"


class CachedPack:
    """See `trial_runner.requests.Pack`: one trial, read as far as it is known and trained from there on."""

    def __init__(self, runner: CachedRunner) -> None:
        """Begin empty."""
        self._runner = runner
        self._request: TrialRequest | None = None
        self._step = 0
        self._known: list[Reading] = []
        self._inner: Pack | None = None

    @property
    def free_slots(self) -> int:
        """See `Pack`."""
        return int(self._request is None)

    @property
    def steps_to_reading(self) -> int:
        """See `Pack`."""
        return 0 if self._request is None else self._request.plan.steps_to_evaluation(self._step)

    def admit(self, request: TrialRequest) -> None:
        """See `Pack`."""
        self._request, self._step, self._known, self._inner = request, 0, self._runner.known(request), None

    def advance(self, steps: int) -> list[Reading | Failure]:
        """See `Pack`."""
        if (request := self._request) is None:
            return []
        before, self._step = self._step, min(self._step + steps, request.plan.steps)
        failures: list[Failure] = []
        if self._step > max((one.step for one in self._known), default=0):
            failures = self._train(request, before)
        found = [one for one in self._known if before < one.step <= self._step]
        if failures:
            self.evict(request.trial)
        return [replace(one, trial=request.trial) for one in (*found, *failures)]

    def evict(self, trial: int) -> None:
        """See `Pack`."""
        self._request = self._inner = None

    def snapshot(self, trial: int) -> Snapshot:
        """The step alone: a trial continues from its readings, or from its beginning."""
        return Snapshot(trial=trial, step=self._step, facts={})

    def restore(self, request: TrialRequest, snapshot: Snapshot) -> None:
        """See `Pack`."""
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
        steps = {one.step for one in self._known}
        fresh = [one for one in results if isinstance(one, Reading) and one.step not in steps]
        if fresh:
            self._known += fresh
            self._runner.keep(request, self._known)
        return [one for one in results if isinstance(one, Failure)]
