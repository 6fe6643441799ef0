"""Protocol of training objectives."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray
from torch import Tensor, nn

from trial_runner.attachment.frozen_model import FrozenModel, Pass
from trial_runner.backbones import Backbone
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.example_losses import ExampleLosses


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainingBatch:
    """Examples of all slots of a pass.

    Attributes:
        tensors: Tensors on the device, by name.
        has_fixed_shapes: Whether batches come in few shapes and the loss depends on the tensors alone.
        units: Number of losses of each example in the mean of its slot, ``(K B,)``. None where the loss is no such
            mean, so that a step cannot be split into parts.
        totals: Number of losses in all parts of a step, ``(K,)``; the losses of a part are sums divided by it. None
            where the step is one part.
    """

    tensors: Mapping[str, Tensor]
    has_fixed_shapes: bool
    units: NDArray[Any] | None = None
    totals: Tensor | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveMeasurement:
    """Result of one slot on a split.

    Attributes:
        metrics: Values by name, the mean loss as ``validation_loss``.
        examples: Loss of each example.
    """

    metrics: Mapping[str, float]
    examples: ExampleLosses


class Objective(ABC):
    """Training objective of the trials of a study, and its measurement. Shapes: `K` slots, `B` examples of a slot.

    Attributes:
        metric: Name of the metric that gives the final score, among those of `measure`.
        labels: Names of the classes; empty where there are none.
        frozen_modules: Frozen modules outside the backbone that losses are computed with.
    """

    metric: str
    labels: Sequence[str] = ()
    frozen_modules: Sequence[nn.Module] = ()

    @abstractmethod
    def check(self, deltas: DeltaSet) -> None:
        """Check that deltas can be trained on this objective.

        Raises:
            AttachError: If they cannot.
        """

    @abstractmethod
    def head(self, *, seed: int) -> nn.Module:
        """Return a new task head, counted apart; without parameters where the backbone's own head is used."""

    @abstractmethod
    def lengths(self, split: str) -> NDArray[Any]:
        """Return the number of tokens of each example of a split, ``(examples,)``."""

    @abstractmethod
    def batch(self, split: str, indices: NDArray[Any]) -> TrainingBatch:
        """Return training examples as a batch.

        Args:
            split: Name of the split.
            indices: Examples of each slot, slot by slot, ``(K B,)``.
        """

    @abstractmethod
    def losses(self, together: Pass, batch: TrainingBatch) -> Tensor:
        """Compute the mean training loss of each slot, ``(K,)``, or the part of it from these examples."""

    @abstractmethod
    def score(self, metrics: Mapping[str, float]) -> float:
        """Return the score of a slot from its metrics of `measure`; higher is better."""

    @abstractmethod
    def measure(
        self, together: Pass, split: str, *, is_final: bool, most: int | None = None
    ) -> Sequence[ObjectiveMeasurement]:
        """Measure each slot on a split.

        Args:
            split: Name of the split.
            is_final: Whether this is the measurement after the last step, which has every metric. An earlier one may
                have a cheap proxy of the metric, the same for all trials.
            most: Maximum number of examples, the same ones each time; None for all.
        """

    def dry_run(self, together: Pass, split: str) -> None:  # noqa: B027 - most objectives compute losses alone
        """Run the largest pass of a final measurement, apart from its losses, on tensors without memory.

        Args:
            split: Name of the measured split.
        """

    def written_tokens(self, slots: int) -> int:
        """Return the number of tokens read and generated in one measuring pass, over all rows; 0 without generation.

        Args:
            slots: Number K of slots.
        """
        return 0

    def measure_robust(self, alone: Pass, deltas: DeltaSet, split: str, *, seed: int) -> ObjectiveMeasurement:
        """Measure one slot whose robust prefixes are tuned for every batch.

        Args:
            split: Name of the split.
            seed: Seed of the order of the training examples.
        """
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveFactory:
    """Factory of the objective of a prepared task.

    Attributes:
        load: Function that loads the backbone, with or without its own head.
        make: Function of a prepared task and the frozen backbone that returns the objective.

    Raises:
        TrialRequestError: If ``make`` gets a backbone that does not fit the task.
    """

    load: Callable[..., Backbone]
    make: Callable[[Any, FrozenModel], Objective]
