"""Gates with one number per sample, the mean over its tokens; for encoders only, as decoders cannot attend ahead."""

from dataclasses import dataclass
from typing import ClassVar

from search_space.affine import AffineCount
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Port, Positions, StackKind
from search_space.edit_protocol import EditEndpoints, block_widths
from search_space.gates.gate import Gate
from search_space.gates.log_sum_exp import TableGate
from search_space.gates.squashed import LogisticGate
from search_space.rules import rule_error
from search_space.symbols import DeltaFormula


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleGate(LogisticGate):
    """``h <- h + g Delta``, g the mean of ``sigmoid(z w + b)`` over a sample's tokens (UniPELT, Mao et al. 2022).

    z is the form's input without padding; w and b start at zero. A form per head has one g per head.
    """

    name: ClassVar[str] = "sigmoid_sample"
    label: ClassVar[str] = "sample gate"
    weight: ClassVar[str] = "mean_t σ({read} w + b)"

    def check_on(self, edit: EditEndpoints, shape: BackboneShape) -> None:
        """Refuse backbones other than encoders."""
        _check_encoder(self, shape)

    def inference_weights(self, edit: EditEndpoints, shape: BackboneShape) -> AffineCount:
        """Return the vector w of every block."""
        return AffineCount(weights=shape.heads(edit.heads) * block_widths(edit, shape)[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvexSampleGate(TableGate):
    """Prefix tuning whose keys and values are multiplied with g, the mean of ``sigmoid(x_attn w + b)`` over a sample.

    As in UniPELT (Mao et al. 2022): a closed gate leaves rows of zeros among the keys, not none.
    """

    name: ClassVar[str] = "lse_convex_sample"
    label: ClassVar[str] = "sample gate"
    is_convex: ClassVar[bool] = True

    def check_on(self, edit: EditEndpoints, shape: BackboneShape) -> None:
        """Refuse backbones other than encoders."""
        _check_encoder(self, shape)

    def count(self, edit: EditEndpoints, shape: BackboneShape) -> AffineCount:
        """Count the vector w and the number b."""
        return AffineCount(extras=shape.port_width(Port.X_ATTN) + 1)

    def inference_weights(self, edit: EditEndpoints, shape: BackboneShape) -> AffineCount:
        """Return the vector w."""
        return AffineCount(weights=shape.port_width(Port.X_ATTN))

    def formula(self, edit: EditEndpoints, delta: DeltaFormula, logit_divisor: str) -> str:
        """Return the formula of a prefix, with the factor of its rows."""
        return f"{TableGate.formula(self, edit, delta, logit_divisor)}, P <- g P, g = mean_t σ(x_attn w + b)"


def _check_encoder(gate: Gate, shape: BackboneShape) -> None:
    """Refuse decoders, and DeBERTa, whose projections also read rows of relative positions that belong to no sample."""
    if shape.kind is not StackKind.ENCODER or shape.positions is Positions.RELATIVE:
        raise rule_error("sample", f"gate {gate.name} on {shape.family}", "Use sigmoid, whose gates are of a token.")
