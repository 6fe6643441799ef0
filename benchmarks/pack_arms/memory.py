"""What a pack needs: one backbone, and for every slot its deltas, head, optimiser state and activations."""

from collections.abc import Mapping
from dataclasses import dataclass

BYTES_PER_PARAMETER = 16
"""Of what is trained: the number, its gradient and two moments, 4 bytes each."""

_HIDDEN_TENSORS = 3
"""How many tensors of the FFN's hidden width live at once on the way back, beside what is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """``common + K each``, in bytes.

    Attributes:
        common: Whatever the number of slots.
        each: Of every slot.
    """

    common: float
    each: float

    def at(self, slots: int) -> float:
        """What so many slots need."""
        return self.common + slots * self.each


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotMemory:
    """The parts of what one slot needs.

    Attributes:
        state_bytes: Deltas and head, their gradients and moments.
        kept_bytes: Activations that are kept for the way back.
        passing_bytes: Tensors of a sublayer that come and go on the way back.
    """

    state_bytes: float
    kept_bytes: float
    passing_bytes: float

    @classmethod
    def scaled(cls, kept: tuple[int, int], rows: int, *, trained: int, hidden_bytes: int) -> "SlotMemory":
        """A slot of many rows, from slots of one row and of two.

        Args:
            kept: Bytes that one row and two rows keep.
            rows: Of the slot.
            trained: Its parameters.
            hidden_bytes: Of the FFN's hidden units, of one row.
        """
        return cls(
            state_bytes=BYTES_PER_PARAMETER * trained,
            kept_bytes=kept[0] + (rows - 1) * (kept[1] - kept[0]),
            passing_bytes=_HIDDEN_TENSORS * rows * hidden_bytes,
        )

    @property
    def total(self) -> float:
        """Sum of the parts."""
        return self.state_bytes + self.kept_bytes + self.passing_bytes


def fitted(peaks: Mapping[int, float]) -> Fit:
    """Least squares over peaks by number of slots, at least two of them."""
    mean_slots, mean_peak = sum(peaks) / len(peaks), sum(peaks.values()) / len(peaks)
    above = sum((slots - mean_slots) * (peak - mean_peak) for slots, peak in peaks.items())
    each = above / sum((slots - mean_slots) ** 2 for slots in peaks)
    return Fit(common=mean_peak - each * mean_slots, each=each)
