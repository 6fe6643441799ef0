"""Bottleneck: a two-matrix map with a nonlinearity, which is an adapter."""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from search_space.affine import AffineCount
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Activation, Heads, Port
from search_space.edit_protocol import EditEndpoints, block_widths
from search_space.forms.form import (
    SizedForm,
    activation_prefix,
    composed_formula,
    insertion_word,
    reads_query_at_heads,
    reparameterization_surplus,
)
from search_space.gates.gate import Logits
from search_space.rules import rule_error
from search_space.symbols import DeltaFormula, logit_divisor, matrix_shapes, normed_read_symbol


class Init(StrEnum):
    """Initialisation of a bottleneck's weights; biases start at zero except under ``INDUCER``.

    ``LORA``: down uniform in +-1/sqrt(D_in), up zero, so that the edit starts as exactly nothing.
    ``BERT``: both normal with standard deviation 0.02 (plain adapters of He et al. 2022).
    ``HOULSBY``: both normal with standard deviation 0.001, truncated at two of them (Houlsby et al. 2019).
    ``INDUCER``: weights and biases the remainder of N(0, 1) by 2, times 0.01 (Chen et al. 2022).
    """

    LORA = "lora"
    BERT = "bert"
    HOULSBY = "houlsby"
    INDUCER = "inducer"


class OwnNorm(StrEnum):
    """Place of a bottleneck's own LayerNorm: none, at its input, or at its output."""

    NONE = "none"
    INPUT = "in"
    OUTPUT = "out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck(SizedForm):
    """A two-matrix map with a nonlinearity: ``act(N(z) W_down + b_down) W_up + b_up`` (an adapter).

    Attributes:
        width: Hidden width R; `r` of adapters. At least 1.
        widened: Number of sublayers, counted from the output, with one more hidden unit.
        activation: Nonlinearity of the hidden units.
        heads: One map, or one per head.
        bias: Whether both projections have a bias.
        norm: Place of the own LayerNorm; it adds 2 D_in at the input (N), 2 D_out at the output.
        init: Initialisation of the weights.
        reparameterization: Hidden width of the MLP that makes the matrices, as for a softmax memory; for the multi-head
            adapter that shares its MLP. None without.

    Raises:
        InvalidEditError: If a size is out of range.
    """

    name: ClassVar[str] = "bottleneck"
    learning_rates: ClassVar[tuple[float, float]] = (1e-3, 2e-2)
    unmergeable_reason: ClassVar[str | None] = "its activation is not linear"
    logits: ClassVar[Logits | None] = Logits.QUERY
    per_head: ClassVar[Heads | None] = Heads.QUERY
    dimensions: ClassVar[tuple[str, ...]] = ("activation", "norm", "bias", "init", "reparameterization")

    width: int
    widened: int = 0
    activation: Activation = Activation.RELU
    heads: Heads = Heads.SINGLE
    bias: bool = True
    norm: OwnNorm = OwnNorm.NONE
    init: Init = Init.LORA
    reparameterization: int | None = None

    @property
    def starts_at_zero(self) -> bool:
        """Whether the second matrix starts at zero."""
        return self.init is Init.LORA and self.reparameterization is None

    @property
    def variant(self) -> str | None:
        """Place of the own norm; None without one."""
        return {OwnNorm.NONE: None, OwnNorm.INPUT: "own norm", OwnNorm.OUTPUT: "own norm of the output"}[self.norm]

    def check_heads(self, edit: EditEndpoints) -> None:
        """Refuse an own LayerNorm per head: it goes over the whole width."""
        if self.norm is not OwnNorm.NONE and self.heads is not Heads.SINGLE:
            raise rule_error("norm", f"{self.heads} with a norm", "Leave the norm out.")

    def check(self, edit: EditEndpoints) -> None:
        """Refuse matrices from an MLP that are not the keys and values of a prefix."""
        if self.reparameterization is None:
            return
        if not reads_query_at_heads(edit) or self.bias or self.norm is not OwnNorm.NONE:
            raise rule_error("V17", f"{self.name} reading {edit.read}, writing {edit.write} per {self.heads}")

    def count(self, edit: EditEndpoints, shape: BackboneShape) -> AffineCount:
        """Count two matrices, their biases and a norm; per head into o, the summed output has one bias."""
        blocks = shape.heads(self.heads)
        in_block, out_block = block_widths(edit, shape)
        norms = {OwnNorm.NONE: 0, OwnNorm.INPUT: 2 * in_block, OwnNorm.OUTPUT: 2 * out_block}[self.norm]
        return AffineCount(
            weights_per_width=blocks * (in_block + out_block),
            biases_per_width=blocks if self.bias else 0,
            biases=(out_block if edit.write is Port.O else blocks * out_block) if self.bias else 0,
            extras=norms,
        )

    def training_surplus(self, edit: EditEndpoints, shape: BackboneShape) -> int:
        """Count the MLP that makes the matrices, if there is one."""
        if self.reparameterization is None:
            return 0
        per_layer = 2 * shape.heads(self.heads) * shape.head_width
        return reparameterization_surplus(
            edit, shape, length=self.width, hidden=self.reparameterization, per_layer=per_layer
        )

    def display_name(self, edit: EditEndpoints) -> str:
        """Return ``adapter``, or ``inducer`` under an inducer's gate, with its variant."""
        if edit.gate.logits is Logits.QUERY:
            convex = "convex " if edit.gate.is_convex else ""
            return f"{convex}{activation_prefix(self.activation, Activation.TANH)}inducer"
        kind = "multi-head " if self.heads is not Heads.SINGLE else ""
        return f"{activation_prefix(self.activation, Activation.RELU)}{kind}{insertion_word(edit)} adapter"

    def gate_label(self, edit: EditEndpoints) -> str:
        """Return the gate's label; empty for inducers, whose name implies the gate."""
        return "" if edit.gate.logits is Logits.QUERY else edit.gate.label

    def formula(self, edit: EditEndpoints, shape: BackboneShape) -> str:
        """Return two matrices around the activation.

        An inducer reads q unscaled, other forms as attention scales it.
        """
        source, scaling = normed_read_symbol(edit, shape), logit_divisor(edit, shape)
        is_scaled = self.heads is not Heads.SINGLE and edit.read is Port.Q and edit.gate.logits is not Logits.QUERY
        source = f"({source}{scaling})" if is_scaled and scaling else source
        source = f"LN({source})" if self.norm is OwnNorm.INPUT else source
        down, up = (" + b_down", " + b_up") if self.bias else ("", "")
        body, matrices = f"{self.activation}({source} W_down{down}) W_up", matrix_shapes(edit, shape, self.size)
        if self.norm is OwnNorm.OUTPUT:
            return composed_formula(
                edit, shape, DeltaFormula(body=f"LN({body}{up})", matrices=matrices, is_atomic=True)
            )
        return composed_formula(edit, shape, DeltaFormula(body=body, bias=up, matrices=matrices))
