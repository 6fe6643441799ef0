"""Pack runner without torch: scores are a formula of seed and step, snapshots are small JSON files.

The score of a trial at a step is ``quality(seed) * (1 - 2 ** -(step / 8))``, plus a checksum of its state. Only an
uninterrupted or a properly restored trial has the right checksum. Seeds may fail on request.
"""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trial_runner.errors import AttachError, SnapshotError
from trial_runner.requests import Failure, Pack, Reading, Snapshot, TrainingPlan, TrialRequest

BRAKED_SECONDS = 0.5
LEAK_BYTES = 4_500_000_000
BACKBONE = "TRIVIAL_BACKBONE"
"""Environment variable: what a worker has loaded, of nodes that are not alike."""


def quality(seed: int) -> float:
    """Compute a number in [0, 1) from the seed alone."""
    return (seed * 2654435761 % 2**32) / 2**32


def score_at(seed: int, step: int) -> float:
    """Return the score of an undisturbed trial."""
    return quality(seed) * (1 - 2 ** -(step / 8)) + 1e-9 * checksum(seed, step)


def checksum(seed: int, step: int) -> int:
    """State after ``step`` steps of ``state = (31 * state + seed + i) mod 1009``."""
    state = 0
    for index in range(step):
        state = (31 * state + seed + index) % 1009
    return state


@dataclass
class TrivialSlot:
    request: TrialRequest
    step: int = 0
    state: int = 0


@dataclass
class TrivialPack:
    """Trials that count."""

    runner: "TrivialRunner"
    size: int
    slots: dict[int, TrivialSlot] = field(default_factory=dict)

    @property
    def free_slots(self) -> int:
        return self.size - len(self.slots)

    @property
    def steps_to_reading(self) -> int:
        ahead = (slot.request.plan.steps_to_evaluation(slot.step) for slot in self.slots.values())
        return min(filter(None, ahead), default=0)

    def admit(self, request: TrialRequest) -> None:
        if request.trial in self.runner.refused:
            raise AttachError(f"trial {request.trial} cannot be attached.")
        assert self.free_slots > 0
        assert request.trial not in self.slots
        self.slots[request.trial] = TrivialSlot(request)
        self.runner.admitted.append((request.trial, request.attempt))

    def advance(self, steps: int) -> Sequence[Reading | Failure]:
        return [result for slot in list(self.slots.values()) for result in self._advance(slot, steps)]

    def _advance(self, slot: TrivialSlot, steps: int) -> list[Reading | Failure]:
        request = slot.request
        results: list[Reading | Failure] = []
        for _ in range(min(steps, request.plan.steps - slot.step)):
            if self.runner.step_seconds:
                time.sleep(self.runner.step_seconds)
            slot.state = (31 * slot.state + request.seed + slot.step) % 1009
            slot.step += 1
            self.runner.on_step(request, slot.step)
            if self.runner.fails_at.get(request.trial) == slot.step:
                self.evict(request.trial)
                return [*results, Failure(trial=request.trial, step=slot.step, reason="the loss is nan")]
            if slot.step in request.plan.evaluate_at_steps:
                results.append(self.reading(slot))
        return results

    def reading(self, slot: TrivialSlot) -> Reading:
        score = quality(slot.request.seed) * (1 - 2 ** -(slot.step / 8)) + 1e-9 * slot.state
        score = self.runner.scores.get(slot.request.trial, score)
        metrics = {"accuracy": score, "validation_loss": 1 - score}
        return Reading(
            trial=slot.request.trial,
            attempt=slot.request.attempt,
            step=slot.step,
            score=score,
            metrics=metrics,
            train_loss=1 - score,
            seconds=0.001,
        )

    def evict(self, trial: int) -> None:
        del self.slots[trial]

    def snapshot(self, trial: int) -> Snapshot:
        slot = self.slots[trial]
        return Snapshot(trial=trial, step=slot.step, facts={"state": slot.state})

    def restore(self, request: TrialRequest, snapshot: Snapshot) -> None:
        if snapshot.trial != request.trial:
            raise SnapshotError(f"a snapshot of trial {snapshot.trial} is not of trial {request.trial}.")
        self.admit(request)
        state = snapshot.facts["state"]
        assert isinstance(state, int)
        self.slots[request.trial] = TrivialSlot(request, step=snapshot.step, state=state)
        self.runner.restored.append((request.trial, request.attempt, snapshot.step))


def eat() -> None:
    """Take memory, a little at a time so that a machine can notice, and hold it for a while."""
    taken = []
    while len(taken) * 50_000_000 < LEAK_BYTES:
        taken.append(b"x" * 50_000_000)
        time.sleep(0.02)
    time.sleep(10)


def no_action(request: TrialRequest, step: int) -> None:
    """Leave a step unchanged."""


@dataclass
class TrivialRunner:
    """Runner that opens packs of counters and records its calls."""

    step_seconds: float = 0.0
    fails_at: Mapping[int, int] = field(default_factory=dict)
    refused: frozenset[int] = frozenset()
    scores: Mapping[int, float] = field(default_factory=dict)
    on_step: Callable[[TrialRequest, int], None] = no_action
    admitted: list[tuple[int, int]] = field(default_factory=list)
    restored: list[tuple[int, int, int]] = field(default_factory=list)

    @property
    def identity(self) -> Mapping[str, str]:
        return {"backbone": os.environ.get(BACKBONE, "trivial")}

    def open_pack(self, slots: int, *, fitting: TrainingPlan | None = None) -> Pack:
        return TrivialPack(self, slots)

    def save(self, snapshot: Snapshot, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"step-{snapshot.step}.json"
        temporary = path.with_suffix(".tmp")
        with temporary.open("w") as file:
            json.dump({"trial": snapshot.trial, "step": snapshot.step, "facts": dict(snapshot.facts)}, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        return path

    def load(self, path: Path) -> Snapshot:
        try:
            return Snapshot(**json.loads(path.read_text()))
        except (ValueError, TypeError) as error:
            raise SnapshotError(f"{path} is damaged.") from error


@dataclass(frozen=True)
class TrivialFactory:
    """Factory of runners that can be pickled.

    Attributes:
        fails_at: Steps at which trials, by number, have values that are not finite.
        raises_at: Steps at which trials raise.
        dies_at: Steps at which trials end their process.
        steps_folder: Folder of a file with a byte per step, which survives a kill; empty for none.
        leaks_memory_at: Steps from which trials take ever more memory, up to ``LEAK_BYTES``.
        brake: File that slows all steps while it exists; empty for none.
        braked_seconds: Duration of a slowed step.
    """

    step_seconds: float = 0.0
    fails_at: Mapping[int, int] = field(default_factory=dict)
    raises_at: Mapping[int, int] = field(default_factory=dict)
    dies_at: Mapping[int, int] = field(default_factory=dict)
    leaks_memory_at: Mapping[int, int] = field(default_factory=dict)
    steps_folder: str = ""
    brake: str = ""
    braked_seconds: float = BRAKED_SECONDS

    def __call__(self, threads: int) -> TrivialRunner:
        return TrivialRunner(step_seconds=self.step_seconds, fails_at=self.fails_at, on_step=self._on_step)

    def _on_step(self, request: TrialRequest, step: int) -> None:
        if self.steps_folder:
            with Path(self.steps_folder, str(os.getpid())).open("ab") as file:
                file.write(b".")
        if self.brake and Path(self.brake).exists():
            time.sleep(self.braked_seconds)
        if self.raises_at.get(request.trial) == step:
            raise MemoryError(f"trial {request.trial} is too large")
        if self.dies_at.get(request.trial) == step:
            os._exit(9)
        if self.leaks_memory_at.get(request.trial) == step:
            eat()
