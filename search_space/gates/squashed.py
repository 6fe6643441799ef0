"""Gates that squash the contribution, by one trained number or by one per token."""

from dataclasses import dataclass
from typing import ClassVar

from search_space.affine import AffineCount
from search_space.backbones.shape import BackboneShape
from search_space.edit_protocol import EditEndpoints, block_widths, is_summed, query_heads_per_block
from search_space.gates.gate import Gate
from search_space.rules import rule_error
from search_space.symbols import DeltaFormula, read_symbol, write_symbol


@dataclass(frozen=True, slots=True, kw_only=True)
class TanhGate(Gate):
    """``h <- h + tanh(g) Delta`` with one trained g per sublayer, which starts at 0.

    After the zero-initialised gate of LLaMA-Adapter (Zhang et al. 2024).
    """

    name: ClassVar[str] = "tanh"
    is_closing: ClassVar[bool] = True
    starts_closed: ClassVar[bool] = True
    label: ClassVar[str] = "tanh gate"
    _factor: ClassVar[str] = "tanh(g) "

    def check(self, edit: EditEndpoints) -> None:
        """Refuse forms that start at zero: of two factors that start at zero neither gets a gradient."""
        if edit.form.starts_at_zero:
            raise rule_error("dead", f"{edit.form.name} with gate {self.name}", "Use another init or gate.")

    def count(self, edit: EditEndpoints, shape: BackboneShape) -> AffineCount:
        """Count the number g."""
        return AffineCount(extras=1)


class LogisticGate(Gate):
    """A gate with weights ``sigmoid(z w + b)``, z the form's input.

    Attributes:
        weight: Weight in formulas.
    """

    __slots__ = ()

    is_closing: ClassVar[bool] = True
    weight: ClassVar[str]

    def count(self, edit: EditEndpoints, shape: BackboneShape) -> AffineCount:
        """Count the vector w and the number b of every block."""
        return AffineCount(extras=shape.heads(edit.heads) * (block_widths(edit, shape)[0] + 1))

    def formula(self, edit: EditEndpoints, delta: DeltaFormula, logit_divisor: str) -> str:
        """Return the weighted sum; each head's summand has a weight of its own."""
        weight = self.weight.format(read=read_symbol(edit))
        if is_summed(edit):
            return f"{write_symbol(edit)} + (Σ_i {weight} {delta.body}{delta.bias})"
        return f"{write_symbol(edit)} + {weight} {delta.as_factor}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SigmoidGate(LogisticGate):
    """``h <- h + sigmoid(z w + b) Delta``, per token and head, z the form's input; w and b start at zero.

    The per-token form of UniPELT's gates (Mao et al. 2022), which average over a sample: see ``sigmoid_sample``.
    """

    name: ClassVar[str] = "sigmoid"
    label: ClassVar[str] = "sigmoid gate"
    weight: ClassVar[str] = "σ({read} w + b)"

    def inference_weights(self, edit: EditEndpoints, shape: BackboneShape) -> AffineCount:
        """Return the vector w of every block."""
        blocks = shape.heads(edit.heads) * query_heads_per_block(edit, shape)
        return AffineCount(weights=blocks * block_widths(edit, shape)[0])
