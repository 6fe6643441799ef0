"""Results of a measurement by example, in the few bytes that a ledger keeps."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

_LOSS = np.dtype("<f2")
_LARGEST = float(np.finfo(_LOSS).max)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleLosses:
    """Loss of every example of a split, in its order, and its correctness if the score is accuracy.

    Attributes:
        losses: Half floats, little-endian; their mean is the measured loss, up to rounding.
        correct: One bit per example, the highest of a byte first; None unless the score is the share of ones.

    Raises:
        ValueError: If the two differ in their number of examples, or have none.
    """

    losses: bytes
    correct: bytes | None = None

    def __post_init__(self) -> None:
        """Check the lengths."""
        count, rest = divmod(len(self.losses), _LOSS.itemsize)
        if rest or not count:
            raise ValueError(f"losses must be of whole examples, at least one; got {len(self.losses)} bytes.")
        if self.correct is not None and len(self.correct) != -(-count // 8):
            raise ValueError(f"{count} examples must have {-(-count // 8)} bytes of bits; got {len(self.correct)}.")

    @classmethod
    def of(cls, losses: NDArray[Any], correct: NDArray[Any] | None = None) -> Self:
        """Pack measured values.

        Args:
            losses: Loss of each example, ``(B,)``; one that a half float cannot hold becomes the largest.
            correct: Whether each prediction was right, ``(B,)``; None unless the score is the share of those that were.
        """
        rounded = np.minimum(np.asarray(losses, dtype=np.float64), _LARGEST).astype(_LOSS)
        bits = None if correct is None else np.packbits(np.asarray(correct, dtype=bool)).tobytes()
        return cls(losses=rounded.tobytes(), correct=bits)

    def __len__(self) -> int:
        """Return the number of examples."""
        return len(self.losses) // _LOSS.itemsize

    @property
    def negated_losses(self) -> NDArray[np.float64]:
        """The loss of each example with a minus sign, ``(B,)``: higher is better."""
        return -np.frombuffer(self.losses, dtype=_LOSS).astype(np.float64)

    @property
    def scores(self) -> NDArray[np.float64]:
        """Contribution of each example to the score, ``(B,)``: 1 or 0 if that is accuracy, else its negated loss."""
        if self.correct is None:
            return self.negated_losses
        bits = np.unpackbits(np.frombuffer(self.correct, dtype=np.uint8), count=len(self))
        return bits.astype(np.float64)
