"""Functional forms: what an edit computes of the tensor it reads (He et al. 2022, "functional form").

Shapes use `D_in` for the width that is read, `D_out` for the width that is written and `R` for the bottleneck. A
form with several heads holds one such map per head and works on the head's slice.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from search_space.dimensions import Activation, Heads
from search_space.errors import InvalidEditError


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


class PromptEncoder(StrEnum):
    """The network that produces a prompt while it is trained (P-tuning)."""

    MLP = "mlp"
    LSTM = "lstm"


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


def _check_reparameterization(form: "SoftmaxMemory | Bottleneck") -> None:
    hidden = form.reparameterization
    if hidden is None:
        return
    if not (_is_whole(hidden) and hidden >= 1):
        raise InvalidEditError(
            f"the hidden width of the reparameterization must be a whole number of at least 1; got {hidden!r}.",
            rule="width",
        )
    if form.widened:
        raise InvalidEditError(
            f"a reparameterized table has one length; got {form.widened} widened sublayers.", rule="V17"
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
        robust: Whether a second table, added to the first and tuned anew for every batch that is predicted, pulls
            the layers' activations towards those of correctly predicted training examples (Yang & Liu 2022).

    Raises:
        InvalidEditError: If a size is out of range.
    """

    name: ClassVar[str] = "softmax_memory"

    width: int
    widened: int = 0
    heads: Heads = Heads.SINGLE
    reparameterization: int | None = None
    robust: bool = False

    def __post_init__(self) -> None:
        """Check the sizes."""
        _check_size(self)
        _check_reparameterization(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck:
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
        _check_size(self)
        _check_reparameterization(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Phm:
    """A bottleneck of sums of Kronecker products: ``W = sum_i C_i (x) B_i``, C_i (n, n), B_i (D_in/n, D_out/n).

    Compacter (Karimi Mahabadi et al. 2021): C shared by the whole model and ``B_i = s_i t_i^T`` of low rank.

    Attributes:
        width: Hidden width R, a multiple of ``n``.
        widened: How many sublayers, counted from the output, have ``n`` hidden units more.
        n: Number of products, and size of C_i.
        factor_rank: Rank of B_i; None for full matrices.
        shared: Whether all edits of the configuration with this ``n`` share one C; else each projection has one.
        activation: Nonlinearity of the hidden units.
        bias: Whether both projections have a bias.

    Raises:
        InvalidEditError: If a size is out of range.
    """

    name: ClassVar[str] = "phm"

    width: int
    widened: int = 0
    n: int = 4
    factor_rank: int | None = 1
    shared: bool = True
    activation: Activation = Activation.GELU
    bias: bool = True

    def __post_init__(self) -> None:
        """Check the sizes."""
        _check_size(self)
        if not (_is_whole(self.n) and self.n >= 1 and self.width % self.n == 0):
            raise InvalidEditError(
                f"a phm bottleneck must be a multiple of n, at least 1; got {self.width} and n {self.n!r}.", rule="V15"
            )
        if self.factor_rank is not None and not (_is_whole(self.factor_rank) and self.factor_rank >= 1):
            raise InvalidEditError(
                f"the rank of phm factors must be a whole number of at least 1; got {self.factor_rank!r}.",
                rule="width",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class LowRank:
    """A linear map of low rank: ``z A B``, A (D_in, R), B (R, D_out); B starts at zero (LoRA).

    Attributes:
        width: Rank R. At least 1.
        widened: How many sublayers, counted from the output, have one rank more.
        heads: One map, or one per head.
        bias: Whether the output has a bias (the code of Chen et al. 2022 for generation).

    Raises:
        InvalidEditError: If a size is out of range.
    """

    name: ClassVar[str] = "lowrank"

    width: int
    widened: int = 0
    heads: Heads = Heads.SINGLE
    bias: bool = False

    def __post_init__(self) -> None:
        """Check the sizes."""
        _check_size(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """A trained vector (D_out) that starts at zero: the change of a bias (BitFit). Reads nothing."""

    name: ClassVar[str] = "const"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagonal:
    """One trained factor per channel.

    With the gate ``mul``, ``h * l`` with l = 1 at the start ((IA)^3, Liu et al. 2022); with an additive gate,
    ``z * w`` with w = 0 at the start.
    """

    name: ClassVar[str] = "diag"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """Trained rows before the embedded input (Lester et al. 2021). They are tokens in every layer.

    Attributes:
        width: Number of rows, the prompt length l. At least 1.

    Raises:
        InvalidEditError: If it is out of range.
    """

    name: ClassVar[str] = "prompt"

    width: int
    widened: ClassVar[int] = 0

    def __post_init__(self) -> None:
        """Check the size."""
        _check_size(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedPrompt:
    """A prompt that a small network produces while it is trained; only the rows are stored (Liu et al. 2021, P-tuning).

    ``MLP``: Linear(d, h), ReLU, Linear(h, h), ReLU, Linear(h, d). ``LSTM``: two bidirectional layers (d -> h per
    direction), Linear(2h, 2h), ReLU, Linear(2h, d).

    Attributes:
        width: Number of rows, the prompt length l. At least 1.
        encoder: Which network.
        hidden: Its hidden width h.

    Raises:
        InvalidEditError: If a size is out of range.
    """

    name: ClassVar[str] = "encoded_prompt"

    width: int
    encoder: PromptEncoder = PromptEncoder.MLP
    hidden: int = 128
    widened: ClassVar[int] = 0

    def __post_init__(self) -> None:
        """Check the sizes."""
        _check_size(self)
        if not (_is_whole(self.hidden) and self.hidden >= 1):
            raise InvalidEditError(
                f"the hidden width of a prompt encoder must be a whole number of at least 1; got {self.hidden!r}.",
                rule="width",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Full:
    """A free change of every weight of the backbone: full fine-tuning. Starts at zero."""

    name: ClassVar[str] = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparse:
    """A sparse change of the backbone's weights, whose places are learned: diff pruning (Guo et al. 2021).

    ``theta = theta_0 + z w`` with hard-concrete gates z per weight and per tensor; then the ``width`` largest changes
    are kept and trained on.

    Attributes:
        width: Number of weights that are changed in the end.

    Raises:
        InvalidEditError: If it is out of range.
    """

    name: ClassVar[str] = "sparse"

    width: int
    widened: ClassVar[int] = 0

    def __post_init__(self) -> None:
        """Check the size."""
        _check_size(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Intrinsic:
    """A change of all weights within a fixed random subspace (Aghajanyan et al. 2021): ``theta = theta_0 + P(z)``.

    P is a Fastfood transform per tensor.

    Attributes:
        width: Dimension of the subspace, d_int.
        per_tensor: Whether every parameter tensor has a trained factor of its own, taken from the ``width`` (SAID);
            else there is none (DID).

    Raises:
        InvalidEditError: If it is out of range.
    """

    name: ClassVar[str] = "intrinsic"

    width: int
    per_tensor: bool = False
    widened: ClassVar[int] = 0

    def __post_init__(self) -> None:
        """Check the size."""
        _check_size(self)


def width_step(form: "SizedForm") -> int:
    """By how much the width of a form grows at a time: its ``n`` for Kronecker products, else 1."""
    return form.n if isinstance(form, Phm) else 1


SizedForm = SoftmaxMemory | Bottleneck | LowRank | Phm | Prompt | EncodedPrompt | Sparse | Intrinsic
GlobalForm = Full | Sparse | Intrinsic
Form = SizedForm | Constant | Diagonal | Full

FORMS: tuple[type[Form], ...] = (
    SoftmaxMemory,
    Bottleneck,
    LowRank,
    Phm,
    Diagonal,
    Constant,
    Prompt,
    EncodedPrompt,
    Full,
    Sparse,
    Intrinsic,
)
