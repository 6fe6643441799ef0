"""Composition functions: how an edit's output joins the tensor it writes (He et al. 2022, "composition function")."""

import math
from dataclasses import dataclass
from typing import ClassVar

from search_space.errors import InvalidEditError

__all__ = ["GATES", "Add", "ConvexGate", "FixedScale", "Gate", "LearnedScale"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Add:
    """``h <- h + Delta``."""

    name: ClassVar[str] = "add"


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedScale:
    """``h <- h + s Delta`` with a fixed s.

    Attributes:
        value: The scale s; finite and above 0.

    Raises:
        InvalidEditError: If the scale is not finite and positive.
    """

    name: ClassVar[str] = "scale"

    value: float

    def __post_init__(self) -> None:
        """Check the range; 4 and 4.0 are one scale, in JSON too."""
        if not (self.value > 0 and math.isfinite(self.value)):
            raise InvalidEditError(f"a fixed scale must be finite and above 0; got {self.value}.", rule="scale")
        object.__setattr__(self, "value", float(self.value))


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedScale:
    """``h <- h + s Delta`` with one trained scalar s per sublayer, which starts at 1."""

    name: ClassVar[str] = "scale_learned"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvexGate:
    """``head <- (1 - lambda) head + lambda Delta`` with lambda from the two log-sum-exps (prefix tuning).

    ``lambda = sigmoid(LSE(prefix logits) - LSE(base logits))``, per head and query (He et al. 2022, eq. 7).
    """

    name: ClassVar[str] = "lse_convex"


Gate = Add | FixedScale | LearnedScale | ConvexGate

GATES: tuple[type[Gate], ...] = (Add, FixedScale, LearnedScale, ConvexGate)
