"""Requests to a pack and its results: plain values and the protocol. No torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

from search_space.configuration import Configuration
from trial_runner.errors import TrialRequestError
from trial_runner.example_losses import ExampleLosses
from trial_runner.training import Training


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan(Training):
    """Training of every trial of a study, with the steps and the split of its measurements.

    Attributes:
        evaluate_at_steps: Steps after which a split is measured, ascending; the last is ``steps``.
        measured_split: Measured split: ``validation`` in a search, ``test`` in a confirmation.
        rung_examples: Largest number of its examples that are measured before the last step; None for all of them.
    """

    evaluate_at_steps: tuple[int, ...]
    measured_split: str = "validation"
    rung_examples: int | None = None

    def __post_init__(self) -> None:
        """Check the measurements; `Training` checks the rest."""
        if self.measured_split not in ("validation", "test"):
            raise TrialRequestError(f"the measured split must be validation or test; got {self.measured_split!r}.")
        if self.rung_examples is not None and not self.rung_examples >= 1:
            raise TrialRequestError(f"a measurement must be of at least 1 example; got {self.rung_examples}.")
        if not self.evaluate_at_steps or self.evaluate_at_steps[-1] != self.steps:
            raise TrialRequestError(f"the last evaluation must be at step {self.steps}; got {self.evaluate_at_steps}.")
        if list(self.evaluate_at_steps) != sorted(set(self.evaluate_at_steps)) or self.evaluate_at_steps[0] < 1:
            raise TrialRequestError(f"evaluation steps must ascend from 1; got {self.evaluate_at_steps}.")

    def steps_to_evaluation(self, step: int) -> int:
        """Return the number of steps from a step to the next measurement; 0 after the last."""
        return next((at - step for at in self.evaluate_at_steps if at > step), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRequest:
    """Trial to train.

    Attributes:
        trial: Number of the trial in its study.
        attempt: Number of the attempt at it, from 1.
        learning_rates: Peaks of the edits at attention sublayers, of those at FFN sublayers (and of the stack's norms),
            and of the task head; 0 if there are none.
        plan: Plan of the training.
        seed: Seed of initialisation, data order and dropout. The same for every attempt.
    """

    trial: int
    attempt: int
    configuration: Configuration
    learning_rates: tuple[float, float, float]
    plan: TrainingPlan
    seed: int

    def __post_init__(self) -> None:
        """Check the signs; 0, infinity and NaN are accepted so that isolation can be tested."""
        for name, rate in zip(("attention", "ffn", "head"), self.learning_rates, strict=True):
            if rate < 0:
                raise TrialRequestError(f"learning rate of {name} must not be negative; got {rate}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Measurement of one trial, from its pack to its record; one per trial and step.

    Attributes:
        step: Number of optimizer steps done.
        score: Metric of the task on the validation split; higher is better.
        metrics: Every measured metric, the loss among them as ``validation_loss``, and as ``same_prediction`` the
            number of predictions that are the most frequent one.
        train_loss: Mean training loss over the steps since the last reading.
        seconds: Compute time of this trial since the last reading.
        attempt: Attempt at the trial that measured it first.
        rung: Index of the rung of the step; None between rungs, and before it is recorded.
        heard_at: Time of the record, UTC; None before.
        examples: Results by example; None if they were not measured, and once they are recorded apart.
    """

    trial: int
    step: int
    score: float
    metrics: Mapping[str, float] = field(default_factory=dict)
    train_loss: float
    seconds: float
    attempt: int = 1
    rung: int | None = None
    heard_at: datetime | None = field(default=None, compare=False)
    examples: ExampleLosses | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Failure of a trial; it has left its pack.

    Attributes:
        step: Number of optimizer steps done when it failed.
        reason: One line.
    """

    trial: int
    step: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """State from which a trial is continued: opaque named arrays and JSON-able facts.

    Attributes:
        step: Number of optimizer steps done.
        facts: JSON-able; holds the configuration and the counts among others.
        tensors: Named arrays (torch tensors on the CPU in the real runner; anything for others).
    """

    trial: int
    step: int
    facts: Mapping[str, object]
    tensors: Mapping[str, object] = field(default_factory=dict)


class Pack(Protocol):
    """K slots over one frozen backbone, each with a trial of its own, identified by its number.

    A trial in a pack equals the same trial alone, and no slot can disturb another.
    """

    @property
    def free_slots(self) -> int:
        """Number of trials that can still be admitted; negative while memory does not suffice for all that it holds."""

    @property
    def steps_to_reading(self) -> int:
        """Number of steps to the next measurement of one of its trials; 0 if none goes on."""

    def admit(self, request: TrialRequest) -> None:
        """Admit a trial. Raises `RunnerError` if it cannot be built."""

    def advance(self, steps: int) -> Sequence[Reading | Failure]:
        """Train every trial by up to ``steps`` steps; readings fall at the plan's evaluation steps.

        A trial that reaches its last step stays (so that it can be snapshot) until it is evicted.
        """

    def evict(self, trial: int) -> None:
        """Remove a trial; its slot is free again and the frozen backbone is untouched."""

    def snapshot(self, trial: int) -> Snapshot:
        """Return the state of a trial, detached from it."""

    def restore(self, request: TrialRequest, snapshot: Snapshot) -> None:
        """Admit a trial and put it in the state of the snapshot."""


class PackRunner(Protocol):
    """Interface of the runner of a worker: opens packs, and keeps snapshots in files."""

    @property
    def identity(self) -> Mapping[str, str]:
        """Hashes, by name, of the inputs that must be equal on all machines that train trials of a study."""

    def open_pack(self, slots: int, *, fitting: TrainingPlan | None = None) -> Pack:
        """Return an empty pack.

        Args:
            slots: Number of slots.
            fitting: Plan of trials for which memory must suffice: the pack may have fewer slots. None sets no bound.
        """

    def save(self, snapshot: Snapshot, folder: Path) -> Path:
        """Write a snapshot to a new file in ``folder`` (temporary name, fsync, read back, rename); return its path."""

    def load(self, path: Path) -> Snapshot:
        """Read a snapshot. Raises `SnapshotError` if it is damaged."""
