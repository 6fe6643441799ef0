"""The protocol of what is learned."""

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
        tensors: On the device, by name.
        has_fixed_shapes: Whether batches come in few shapes, and computing one needs nothing but the tensors.
        units: How many losses of each example the mean of a slot is over, ``(K B,)``; None where it is no such mean, so
            that a step cannot be computed in parts.
        totals: How many there are in all parts of a step, ``(K,)``, which losses are then sums over these examples
            divided by; None where the step is one part.
    """

    tensors: Mapping[str, Tensor]
    has_fixed_shapes: bool
    units: NDArray[Any] | None = None
    totals: Tensor | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveMeasurement:
    """What a pass over a split found of a slot.

    Attributes:
        metrics: By name, the mean loss as ``validation_loss``.
        examples: The same example by example.
    """

    metrics: Mapping[str, float]
    examples: ExampleLosses


class Objective(ABC):
    """What the trials of a study learn, and how that is measured. Shapes: `K` slots, `B` examples of a slot.

    Attributes:
        metric: Name of what a trial is scored by in the end, among what `measure` returns.
        labels: Names of the classes; empty where there are none.
        frozen_modules: Frozen modules beside the backbone that losses are computed with.
    """

    metric: str
    labels: Sequence[str] = ()
    frozen_modules: Sequence[nn.Module] = ()

    @abstractmethod
    def check(self, deltas: DeltaSet) -> None:
        """Refuse deltas that cannot learn this.

        Raises:
            AttachError: If they cannot.
        """

    @abstractmethod
    def head(self, *, seed: int) -> nn.Module:
        """A new task head, trained and counted apart; without parameters where the backbone's own is used."""

    @abstractmethod
    def lengths(self, split: str) -> NDArray[Any]:
        """Tokens of each example of a split, ``(examples,)``."""

    @abstractmethod
    def batch(self, split: str, indices: NDArray[Any]) -> TrainingBatch:
        """Examples to learn from.

        Args:
            split: Where they are.
            indices: Examples of each slot, slot by slot, ``(K B,)``.
        """

    @abstractmethod
    def losses(self, together: Pass, batch: TrainingBatch) -> Tensor:
        """Mean training loss of each slot on a batch of its examples, ``(K,)``, or these examples' part of it."""

    @abstractmethod
    def score(self, metrics: Mapping[str, float]) -> float:
        """The score of what `measure` returned of a slot; higher is better."""

    @abstractmethod
    def measure(
        self, together: Pass, split: str, *, is_final: bool, most: int | None = None
    ) -> Sequence[ObjectiveMeasurement]:
        """What each slot does on a split.

        Args:
            split: Where they are measured.
            is_final: Whether this is the measurement after the last step, which has every metric; an earlier one may
                have a cheap stand-in for the metric, the same for all trials.
            most: Of so many examples at most, the same each time; None for all of them.
        """

    def rehearse(self, together: Pass, split: str) -> None:  # noqa: B027 - most compute nothing else
        """What a measurement after the last step computes beside losses, of tensors that have no memory, at its widest.

        Args:
            split: Where slots are measured.
        """

    def written_tokens(self, slots: int) -> int:
        """Of what is read and written in one pass of a measurement, all rows together; 0 where nothing is written.

        Args:
            slots: K.
        """
        return 0

    def measure_robust(self, alone: Pass, deltas: DeltaSet, split: str, *, seed: int) -> ObjectiveMeasurement:
        """The same of one slot, whose robust prefixes are tuned for every batch.

        Args:
            split: Where it is measured.
            seed: Of the order in which training examples are looked at.
        """
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveFactory:
    """How a worker gets the objective of a prepared task.

    Attributes:
        load: Loads the backbone that it learns on, with its own head or without.
        make: Of a prepared task, and the backbone with its hooks.

    Raises:
        RequestError: By ``make``, if what was loaded is not what the task needs.
    """

    load: Callable[..., Backbone]
    make: Callable[[Any, FrozenModel], Objective]
