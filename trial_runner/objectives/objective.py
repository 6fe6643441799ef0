"""The protocol of what is learned."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray
from torch import Tensor, nn

from trial_runner.delta_set import DeltaSet
from trial_runner.frozen_model import Pass

__all__ = ["Objective"]


class Objective(Protocol):
    """What the trials of a study learn, and how that is measured. Shapes: `K` slots, `B` examples of a slot."""

    @property
    def metric(self) -> str:
        """Name of the score among what `measure` returns; higher is better."""
        ...

    @property
    def labels(self) -> Sequence[str]:
        """Names of the classes; empty where there are none."""
        ...

    def head(self, *, seed: int) -> nn.Module:
        """A new task head, trained and counted apart; without parameters where the backbone's own is used."""
        ...

    def examples(self, split: str) -> int:
        """How many examples a split has."""
        ...

    def lengths(self, split: str) -> NDArray[Any]:
        """Tokens of each example of a split, ``(examples,)``."""
        ...

    def losses(self, together: Pass, split: str, indices: NDArray[Any]) -> Tensor:
        """Mean training loss of each slot, ``(K,)``.

        Args:
            together: The slots.
            split: Where the examples are.
            indices: Examples of each slot, slot by slot, ``(K B,)``.
        """
        ...

    def measure(self, together: Pass, split: str) -> Sequence[Mapping[str, float]]:
        """Every metric of each slot on a split, the mean loss as ``validation_loss``."""
        ...

    def measure_robust(self, alone: Pass, deltas: DeltaSet, split: str, *, seed: int) -> Mapping[str, float]:
        """The same of one slot, whose robust prefixes are tuned for every batch.

        Args:
            alone: The slot.
            deltas: Its deltas.
            split: Where it is measured.
            seed: Of the order in which training examples are looked at.
        """
        ...
