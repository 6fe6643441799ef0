"""Gates that a softmax gives, whose weights come from the log-sum-exps of attention's logits."""

from dataclasses import dataclass
from typing import ClassVar

from search_space.errors import InvalidEditError
from search_space.gates.gate import Gate


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvexGate(Gate):
    """``head <- (1 - lambda) head + lambda Delta`` with lambda from the two log-sum-exps (prefix tuning).

    ``lambda = sigmoid(LSE(prefix logits) - LSE(base logits))``, per head and query (He et al. 2022, eq. 7).
    """

    name: ClassVar[str] = "lse_convex"


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedGate(Gate):
    """``head <- head + lambda Delta``, lambda as of the convex gate: the prefix does not push the base aside."""

    name: ClassVar[str] = "lse_add"


def _check_key_width(width: int | None) -> None:
    is_whole = isinstance(width, int) and not isinstance(width, bool)
    if width is not None and not (is_whole and width >= 1):
        raise InvalidEditError(
            f"the bottleneck of an inducer's keys must be a whole number of at least 1; got {width!r}.", rule="width"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class InducerGate(Gate):
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
class ConvexInducerGate(Gate):
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
