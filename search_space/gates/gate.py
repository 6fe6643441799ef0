"""Composition functions: how an edit's output joins the tensor it writes (He et al. 2022, "composition function")."""

import math
from dataclasses import dataclass
from typing import ClassVar

from search_space.dimensions import ScalePer
from search_space.errors import InvalidEditError


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
    """``h <- h + s Delta`` with trained s, which starts at 1.

    Attributes:
        per: For what there is an s: the sublayer, a channel of what is written, or a head.
    """

    name: ClassVar[str] = "scale_learned"

    per: ScalePer = ScalePer.SUBLAYER


@dataclass(frozen=True, slots=True, kw_only=True)
class TanhGate:
    """``h <- h + tanh(g) Delta`` with one trained g per sublayer, which starts at 0.

    After the zero-initialised gate of LLaMA-Adapter (Zhang et al. 2024).
    """

    name: ClassVar[str] = "tanh"


@dataclass(frozen=True, slots=True, kw_only=True)
class SigmoidGate:
    """``h <- h + sigmoid(z w + b) Delta``, per token and head, z what the edit reads; w and b start at zero.

    The per-token form of UniPELT's gates (Mao et al. 2022), which average over a sample and so see the future.
    """

    name: ClassVar[str] = "sigmoid"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvexGate:
    """``head <- (1 - lambda) head + lambda Delta`` with lambda from the two log-sum-exps (prefix tuning).

    ``lambda = sigmoid(LSE(prefix logits) - LSE(base logits))``, per head and query (He et al. 2022, eq. 7).
    """

    name: ClassVar[str] = "lse_convex"


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedGate:
    """``head <- head + lambda Delta``, lambda as of the convex gate: the prefix does not push the base aside."""

    name: ClassVar[str] = "lse_add"


def _check_key_width(width: int | None) -> None:
    is_whole = isinstance(width, int) and not isinstance(width, bool)
    if width is not None and not (is_whole and width >= 1):
        raise InvalidEditError(
            f"the bottleneck of an inducer's keys must be a whole number of at least 1; got {width!r}.", rule="width"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class InducerGate:
    """``h <- h + lambda Delta`` with one virtual key per query, ``P_k = q + MLP_k(q)`` (Chen et al. 2022).

    ``lambda = softmax([q P_k; q K^T + mask] / sqrt(d_h))``, its first entry, per head and query;
    ``MLP_k(q) = tanh(q A + a) B + b`` per head.

    Attributes:
        key_width: Bottleneck of MLP_k; None for P_k = q.

    Raises:
        InvalidEditError: If it is out of range.
    """

    name: ClassVar[str] = "inducer"

    key_width: int | None = None

    def __post_init__(self) -> None:
        """Check the size."""
        _check_key_width(self.key_width)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvexInducerGate:
    """``h <- (1 - lambda) h + lambda Delta``, lambda as of the inducer gate (Chen et al. 2022, "Gating").

    Where Delta is written to o, h is the base output before its bias.

    Attributes:
        key_width: Bottleneck of MLP_k; None for P_k = q.

    Raises:
        InvalidEditError: If it is out of range.
    """

    name: ClassVar[str] = "inducer_convex"

    key_width: int | None = None

    def __post_init__(self) -> None:
        """Check the size."""
        _check_key_width(self.key_width)


@dataclass(frozen=True, slots=True, kw_only=True)
class Multiply:
    """``h <- h * l``: the gate of a diagonal that reads what it writes."""

    name: ClassVar[str] = "mul"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepend:
    """The rows come before those that are there: the gate of prompts."""

    name: ClassVar[str] = "prepend"


Gate = (
    Add
    | FixedScale
    | LearnedScale
    | TanhGate
    | SigmoidGate
    | ConvexGate
    | WeightedGate
    | InducerGate
    | ConvexInducerGate
    | Multiply
    | Prepend
)

GATES: tuple[type[Gate], ...] = (
    Add,
    FixedScale,
    LearnedScale,
    TanhGate,
    SigmoidGate,
    ConvexGate,
    WeightedGate,
    InducerGate,
    ConvexInducerGate,
    Multiply,
    Prepend,
)
