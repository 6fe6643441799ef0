"""Bottleneck: a two-matrix map with a nonlinearity, which is an adapter."""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from search_space.dimensions import Activation, Heads
from search_space.forms.form import SizedForm, check_reparameterization, check_size


class Init(StrEnum):
    """How the weights of a bottleneck start; biases start at zero except under ``INDUCER``.

    ``LORA``: down uniform in +-1/sqrt(D_in), up zero, so that the edit starts as exactly nothing.
    ``BERT``: both normal with standard deviation 0.02 (plain adapters of He et al. 2022).
    ``HOULSBY``: both normal with standard deviation 0.001, cut off at two of them (Houlsby et al. 2019).
    ``INDUCER``: all of them, biases included, the remainder of N(0, 1) by 2, times 0.01 (Chen et al. 2022).
    """

    LORA = "lora"
    BERT = "bert"
    HOULSBY = "houlsby"
    INDUCER = "inducer"


class OwnNorm(StrEnum):
    """Where a bottleneck has a LayerNorm of its own: nowhere, on what it reads, or on what it computes."""

    NONE = "none"
    INPUT = "in"
    OUTPUT = "out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck(SizedForm):
    """A two-matrix map with a nonlinearity: ``act(N(z) W_down + b_down) W_up + b_up`` (an adapter).

    Attributes:
        width: Hidden width R; `r` of adapters. At least 1.
        widened: How many sublayers, counted from the output, have one hidden unit more.
        activation: Nonlinearity of the hidden units.
        heads: One map, or one per head.
        bias: Whether both projections have a bias.
        norm: Where it has a LayerNorm of its own; it adds 2 D_in on what is read (N), 2 D_out on what is computed.
        init: How the weights start.
        reparameterization: As of a softmax memory, for the multi-head adapter that shares its MLP; None without.

    Raises:
        InvalidEditError: If a size is out of range.
    """

    name: ClassVar[str] = "bottleneck"

    width: int
    widened: int = 0
    activation: Activation = Activation.RELU
    heads: Heads = Heads.SINGLE
    bias: bool = True
    norm: OwnNorm = OwnNorm.NONE
    init: Init = Init.LORA
    reparameterization: int | None = None

    def __post_init__(self) -> None:
        """Check the sizes."""
        check_size(self)
        check_reparameterization(self)
