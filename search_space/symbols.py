"""Symbols in formulas: the tensors that an edit reads and writes, and its contribution before the gate."""

from dataclasses import dataclass

from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Heads, NormPlacement, Port, Positions
from search_space.edit_protocol import EditEndpoints, block_widths


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaFormula:
    """Formula of a contribution before its gate.

    Attributes:
        body: Formula without the bias of the output.
        matrices: Shapes of the matrices.
        bias: ``" + b"`` for a bias of the output, or an empty text.
        is_atomic: Whether the body needs no brackets as a factor.
    """

    body: str
    matrices: str
    bias: str = ""
    is_atomic: bool = False

    @property
    def as_factor(self) -> str:
        """Formula with its bias, in brackets if it needs them as a factor."""
        return self.body if self.is_atomic else f"({self.body}{self.bias})"


def write_symbol(edit: EditEndpoints) -> str:
    """Return the symbol of the tensor written, with an index for tensors per head."""
    return f"{edit.write}_i" if edit.write is Port.HEAD else edit.write.value


def read_symbol(edit: EditEndpoints) -> str:
    """Return the symbol of the tensor read, with an index for tensors per head."""
    is_sliced = edit.heads is not Heads.SINGLE and edit.read in (Port.Q, Port.HEAD)
    return f"{edit.read}_i" if is_sliced else f"{edit.read}"


def normed_read_symbol(edit: EditEndpoints, shape: BackboneShape) -> str:
    """Return the symbol of the form's input.

    On post-LN backbones the sum goes through the frozen LayerNorm that follows it.
    """
    is_before_norm = edit.read is Port.SUM and shape.norm is NormPlacement.POST
    return f"LN({read_symbol(edit)})" if is_before_norm else read_symbol(edit)


def logit_divisor(edit: EditEndpoints, shape: BackboneShape) -> str:
    """Return the divisor of attention's logits; an empty text for T5, whose weights contain the scale."""
    if edit.read is Port.Q and edit.heads is not Heads.SINGLE and shape.positions is Positions.BIAS:
        return ""
    times = 3 if shape.positions is Positions.RELATIVE else 1  # three logits are summed, of contents and positions
    return f" / √{times * block_widths(edit, shape)[0]}"


def per_head_suffix(edit: EditEndpoints, shape: BackboneShape) -> str:
    """Return `` per head`` or `` per key/value head`` for matrices of each head, else an empty text."""
    if edit.heads is Heads.SINGLE:
        return ""
    is_few = edit.heads is Heads.KEY_VALUE and shape.key_value_heads != shape.query_heads
    return " per key/value head" if is_few else " per head"


def matrix_shapes(edit: EditEndpoints, shape: BackboneShape, size: str) -> str:
    """Return the shapes of a bottleneck's two projections."""
    in_width, out_width = block_widths(edit, shape)
    return f"W_down: {in_width} × {size}, W_up: {size} × {out_width}"
