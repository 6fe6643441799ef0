"""Functional forms: what an edit computes of the tensor it reads (He et al. 2022, "functional form").

Shapes use `D_in` for the width that is read, `D_out` for the width that is written and `R` for the bottleneck. A
form with several heads holds one such map per head and works on the head's slice.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from search_space.dimensions import Activation, Heads
from search_space.errors import InvalidEditError

__all__ = ["FORMS", "Bottleneck", "Constant", "Form", "Init", "LowRank", "SizedForm", "SoftmaxMemory"]


class Init(StrEnum):
    """How the weights of a bottleneck start.

    ``LORA``: down uniform in +-1/sqrt(D_in), up zero, so that the edit starts as exactly nothing.
    ``BERT``: both normal with standard deviation 0.02 (plain adapters of He et al. 2022).
    """

    LORA = "lora"
    BERT = "bert"


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_size(form: "SizedForm") -> None:
    if not (_is_whole(form.width) and form.width >= 1):
        raise InvalidEditError(
            f"a bottleneck must be a whole number of at least 1; got {form.width!r}. Raise it or drop the edit.",
            rule="width",
        )
    if not (_is_whole(form.widened) and form.widened >= 0):
        raise InvalidEditError(
            f"the number of widened sublayers must be a whole number of at least 0; got {form.widened!r}.",
            rule="width",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftmaxMemory:
    """Attention over a trained table: ``softmax(z P_k^T / sqrt(D_in)) P_v``, P_k (R, D_in), P_v (R, D_out).

    With the convex gate at the heads this is prefix tuning (Li & Liang 2021; He et al. 2022, eq. 7).

    Attributes:
        width: Rows R of the table; `l` of prefix tuning. At least 1.
        widened: How many sublayers, counted from the output, have one row more.
        heads: One table, or one per head.
        reparameterization: Hidden width of the MLP that produces the table during training; None trains the
            table itself. The MLP is dropped afterwards, so it is in the trained count but not in the stored one.

    Raises:
        InvalidEditError: If a size is out of range.
    """

    name: ClassVar[str] = "softmax_memory"

    width: int
    widened: int = 0
    heads: Heads = Heads.SINGLE
    reparameterization: int | None = None

    def __post_init__(self) -> None:
        """Check the sizes."""
        _check_size(self)
        if self.reparameterization is None:
            return
        if not (_is_whole(self.reparameterization) and self.reparameterization >= 1):
            raise InvalidEditError(
                "the hidden width of the reparameterization must be a whole number of at least 1; "
                f"got {self.reparameterization!r}.",
                rule="width",
            )
        if self.widened:
            raise InvalidEditError(
                f"a reparameterized prefix has one length; got {self.widened} widened sublayers.", rule="V17"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck:
    """A two-matrix map with a nonlinearity: ``act(N(z) W_down + b_down) W_up + b_up`` (an adapter).

    Attributes:
        width: Hidden width R; `r` of adapters. At least 1.
        widened: How many sublayers, counted from the output, have one hidden unit more.
        activation: Nonlinearity of the hidden units.
        heads: One map, or one per head.
        bias: Whether both projections have a bias.
        norm: Whether a LayerNorm of its own comes first (N); it adds 2 D_in.
        init: How the weights start.

    Raises:
        InvalidEditError: If a size is out of range.
    """

    name: ClassVar[str] = "bottleneck"

    width: int
    widened: int = 0
    activation: Activation = Activation.RELU
    heads: Heads = Heads.SINGLE
    bias: bool = True
    norm: bool = False
    init: Init = Init.LORA

    def __post_init__(self) -> None:
        """Check the sizes."""
        _check_size(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class LowRank:
    """A linear map of low rank: ``z A B``, A (D_in, R), B (R, D_out), no bias; B starts at zero (LoRA).

    Attributes:
        width: Rank R. At least 1.
        widened: How many sublayers, counted from the output, have one rank more.
        heads: One map, or one per head.

    Raises:
        InvalidEditError: If a size is out of range.
    """

    name: ClassVar[str] = "lowrank"

    width: int
    widened: int = 0
    heads: Heads = Heads.SINGLE

    def __post_init__(self) -> None:
        """Check the sizes."""
        _check_size(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """A trained vector (D_out) that starts at zero: the change of a bias (BitFit). Reads nothing."""

    name: ClassVar[str] = "const"


SizedForm = SoftmaxMemory | Bottleneck | LowRank
Form = SizedForm | Constant

FORMS: tuple[type[Form], ...] = (SoftmaxMemory, Bottleneck, LowRank, Constant)
