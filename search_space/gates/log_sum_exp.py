"""Gates of a joint softmax, whose weights come from the log-sum-exps of attention's logits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from search_space.affine import NO_PARAMETERS, AffineCount
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Heads, Port
from search_space.edit_protocol import EditEndpoints, is_summed
from search_space.gates.gate import Gate, Logits
from search_space.rules import check_positive_integer, rule_error
from search_space.symbols import DeltaFormula, write_symbol


@dataclass(frozen=True, slots=True, kw_only=True)
class TableGate(Gate):
    """``lambda = sigmoid(LSE(prefix logits) - LSE(base logits))``, per head and query (He et al. 2022, eq. 7)."""

    logits: ClassVar[Logits | None] = Logits.TABLE
    search_order: ClassVar[int] = 0

    def check(self, edit: EditEndpoints) -> None:
        """Refuse forms other than tables that read q at the heads."""
        _check_logits(self, edit, Heads.KEY_VALUE, (Port.HEAD,))

    def formula(self, edit: EditEndpoints, delta: DeltaFormula, logit_divisor: str) -> str:
        """Return the weighted sum, with the weight's two log-sum-exps."""
        return f"{_weighted_sum(self, edit, delta)}, λ_i = σ(LSE(prefix) - LSE(keys))"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvexGate(TableGate):
    """``head <- (1 - lambda) head + lambda Delta`` with lambda from the two log-sum-exps (prefix tuning)."""

    name: ClassVar[str] = "lse_convex"
    is_convex: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedGate(TableGate):
    """``head <- head + lambda Delta``, lambda as in the convex gate: the prefix does not reduce the base's weight."""

    name: ClassVar[str] = "lse_add"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryGate(Gate):
    """A gate with one virtual key per query, ``P_k = q + MLP_k(q)`` (Chen et al. 2022).

    Per head and query, lambda is the first entry of ``softmax([q P_k; q K^T + mask] / sqrt(d_h))``.
    Per head, ``MLP_k(q) = tanh(q A + a) B + b``.

    Attributes:
        key_width: Bottleneck of MLP_k; None for P_k = q.

    Raises:
        InvalidEditError: If the bottleneck is out of range.
    """

    logits: ClassVar[Logits | None] = Logits.QUERY
    search_order: ClassVar[int] = 2
    option_keys: ClassVar[Mapping[str, str]] = {"key_width": "key_widths"}

    key_width: int | None = None

    def __post_init__(self) -> None:
        """Check the size."""
        if self.key_width is not None:
            check_positive_integer(self.key_width, "the bottleneck of an inducer's keys")

    def check(self, edit: EditEndpoints) -> None:
        """Refuse forms without one logit per query."""
        _check_logits(self, edit, Heads.QUERY, (Port.HEAD, Port.O))

    def count(self, edit: EditEndpoints, shape: BackboneShape) -> AffineCount:
        """Count the matrices and biases of MLP_k."""
        if self.key_width is None:
            return NO_PARAMETERS
        heads, width = shape.query_heads, shape.head_width
        return AffineCount(weights=heads * 2 * width * self.key_width, biases=heads * (self.key_width + width))

    def inference_weights(self, edit: EditEndpoints, shape: BackboneShape) -> AffineCount:
        """Return the matrices of MLP_k and the key of every query."""
        return AffineCount(weights=self.count(edit, shape).weights + shape.query_width)

    @property
    def qualified_name(self) -> str:
        """Name with the width of the keys."""
        return self.name if self.key_width is None else f"{self.name}:{self.key_width}"

    @property
    def label(self) -> str:
        """Name with its origin."""
        return "convex inducer gate" if self.is_convex else "inducer gate"

    @property
    def key_label(self) -> str:
        """Width of the keys; empty without an MLP."""
        return "" if self.key_width is None else f"keys of {self.key_width}"

    @property
    def variant(self) -> str | None:
        """Formula of the keys."""
        return "keys q" if self.key_width is None else "keys q + MLP"

    def formula(self, edit: EditEndpoints, delta: DeltaFormula, logit_divisor: str) -> str:
        """Return the weighted sum, with the weight's softmax and the key."""
        key = "q_i" if self.key_width is None else "q_i + tanh(q_i A_k + a_k) B_k"
        return f"{_weighted_sum(self, edit, delta)}, λ_i = softmax([q_i k_iᵀ, q_i Kᵀ]{logit_divisor})_1, k_i = {key}"

    def matrices(self, shape: BackboneShape) -> str:
        """Return the shapes of MLP_k."""
        width, hidden = shape.head_width, self.key_width
        return "" if hidden is None else f"; A_k: {width} × {hidden}, B_k: {hidden} × {width} per head"


@dataclass(frozen=True, slots=True, kw_only=True)
class InducerGate(QueryGate):
    """``h <- h + lambda Delta`` (Chen et al. 2022)."""

    name: ClassVar[str] = "inducer"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvexInducerGate(QueryGate):
    """``h <- (1 - lambda) h + lambda Delta`` (Chen et al. 2022, "Gating").

    Where Delta is written to o, h is the base output before its bias.
    """

    name: ClassVar[str] = "inducer_convex"
    is_convex: ClassVar[bool] = True


def _check_logits(gate: Gate, edit: EditEndpoints, heads: Heads, writes: tuple[Port, ...]) -> None:
    fits = edit.form.logits is gate.logits and edit.heads is heads and edit.write in writes
    if not fits or edit.read is not Port.Q:
        got = f"{edit.form.name} reading {edit.read}, writing {edit.write} per {edit.heads}, gate {gate.name}"
        raise rule_error("V1", got, "Use add or a scale.")


def _weighted_sum(gate: Gate, edit: EditEndpoints, delta: DeltaFormula) -> str:
    """Return the weighted sum; the bias of a sum over heads stays unweighted, as in the released code."""
    if is_summed(edit):
        removed = " - Σ_i λ_i head_i W_o" if gate.is_convex else ""
        return f"{write_symbol(edit)}{removed} + Σ_i λ_i ({delta.body}){delta.bias}"
    kept = "(1 - λ_i) " if gate.is_convex else ""
    return f"{kept}{write_symbol(edit)} + λ_i {delta.as_factor}"
