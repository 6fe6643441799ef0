"""The symbols of formulas: what an edit reads and writes, and what it adds before its gate."""

from dataclasses import dataclass

from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Heads, NormPlacement, Port, Positions
from search_space.edit_protocol import EditEndpoints, block_widths


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaFormula:
    """A contribution before its gate.

    Attributes:
        body: Without the bias of its output.
        matrices: Their shapes.
        bias: ``" + b"`` of the output, or nothing.
        is_closed: Whether the body needs no brackets.
    """

    body: str
    matrices: str
    bias: str = ""
    is_atomic: bool = False

    @property
    def as_factor(self) -> str:
        """With its bias, as a factor."""
        return self.body if self.is_atomic else f"({self.body}{self.bias})"


def write_symbol(edit: EditEndpoints) -> str:
    """What is written; of each head with its index."""
    return f"{edit.write}_i" if edit.write is Port.HEAD else edit.write.value


def read_symbol(edit: EditEndpoints) -> str:
    """The tensor that is read; of each head with its index."""
    is_sliced = edit.heads is not Heads.SINGLE and edit.read in (Port.Q, Port.HEAD)
    return f"{edit.read}_i" if is_sliced else f"{edit.read}"


def normed_read_symbol(edit: EditEndpoints, shape: BackboneShape) -> str:
    """What the form is computed of: on post-LN backbones the sum goes through the frozen LayerNorm that follows it."""
    is_before_norm = edit.read is Port.SUM and shape.norm is NormPlacement.POST
    return f"LN({read_symbol(edit)})" if is_before_norm else read_symbol(edit)


def logit_divisor(edit: EditEndpoints, shape: BackboneShape) -> str:
    """The divisor of attention's logits, where there is one: T5 has its scale in its weights."""
    if edit.read is Port.Q and edit.heads is not Heads.SINGLE and shape.positions is Positions.BIAS:
        return ""
    times = 3 if shape.positions is Positions.RELATIVE else 1  # contents and positions meet in three ways
    return f" / √{times * block_widths(edit, shape)[0]}"


def per_head_suffix(edit: EditEndpoints, shape: BackboneShape) -> str:
    """What matrices are there for each of, in words after their shapes."""
    if edit.heads is Heads.SINGLE:
        return ""
    is_few = edit.heads is Heads.KEY_VALUE and shape.key_value_heads != shape.query_heads
    return " per key/value head" if is_few else " per head"


def matrix_shapes(edit: EditEndpoints, shape: BackboneShape, size: str) -> str:
    """The shapes of a bottleneck's projections."""
    in_width, out_width = block_widths(edit, shape)
    return f"W_down: {in_width} × {size}, W_up: {size} × {out_width}"
