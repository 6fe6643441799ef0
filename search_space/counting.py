"""Exact parameter counts by formula, without weights.

The count of an edit is affine in its width at every sublayer, which is what makes budgets solvable in closed form.
"""

from dataclasses import dataclass

from search_space.backbone_shape import BackboneShape, Sublayer
from search_space.configuration import Configuration
from search_space.dimensions import Heads, Port, Site
from search_space.edit import Edit
from search_space.form import Bottleneck, Constant, LowRank, SoftmaxMemory
from search_space.gate import LearnedScale
from search_space.validity import check_on

__all__ = ["AffineCount", "Counts", "affine_count", "count", "count_edits", "widths"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AffineCount:
    """Parameters of one edit at one sublayer, as a function of its width R.

    Attributes:
        weights_per_width: Matrix entries per unit of R.
        biases_per_width: Bias entries per unit of R.
        weights: Matrix entries (or constants) whatever R is.
        biases: Bias entries whatever R is.
        extras: Entries of own LayerNorms and learned scales.
    """

    weights_per_width: int = 0
    biases_per_width: int = 0
    weights: int = 0
    biases: int = 0
    extras: int = 0

    @property
    def slope(self) -> int:
        """Parameters per unit of R."""
        return self.weights_per_width + self.biases_per_width

    @property
    def intercept(self) -> int:
        """Parameters whatever R is."""
        return self.weights + self.biases + self.extras


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Parameters of a configuration on a backbone, by counting convention.

    Attributes:
        weights_only: Matrices (and constants) of the stored deltas, the accounting of He et al. 2022, appendix B.
        with_bias: ``weights_only`` plus the biases of the forms.
        stored: All that must be kept after training. The budget binds it.
        trained: All that is trained: a reparameterized prefix counts its MLP instead of its table.
    """

    weights_only: int
    with_bias: int
    stored: int
    trained: int


def affine_count(edit: Edit, shape: BackboneShape) -> AffineCount:
    """Parameters of an edit at one of its sublayers (for ``stack``: at one of its norms)."""
    out_width = shape.port_width(edit.write)
    if isinstance(edit.form, Constant):
        return AffineCount(weights=out_width)
    scalars = int(isinstance(edit.gate, LearnedScale))
    blocks = shape.heads(edit.form.heads)
    in_block, out_block = block_widths(edit, shape)
    per_width = blocks * (in_block + out_block)
    match edit.form:
        case SoftmaxMemory() | LowRank():
            return AffineCount(weights_per_width=per_width, extras=scalars)
        case Bottleneck(bias=bias, norm=norm):
            norms = 2 * blocks * in_block if norm else 0
            return AffineCount(
                weights_per_width=per_width,
                biases_per_width=blocks if bias else 0,
                biases=blocks * out_block if bias else 0,
                extras=norms + scalars,
            )


def block_widths(edit: Edit, shape: BackboneShape) -> tuple[int, int]:
    """Widths that one block of an edit's form reads and writes: the head's slice, or the whole port."""
    if edit.read is None:
        return 0, shape.port_width(edit.write)
    if edit.heads is Heads.SINGLE:
        return shape.port_width(edit.read), shape.port_width(edit.write)
    is_sliced = edit.read in (Port.Q, Port.HEAD)
    return shape.head_width if is_sliced else shape.port_width(edit.read), shape.head_width


def widths(edit: Edit, shape: BackboneShape) -> dict[Sublayer, int]:
    """Width of an edit's form at each of its sublayers; 0 for forms without one."""
    sublayers = shape.sublayers(edit.site)
    form = edit.sized_form
    if form is None:
        return dict.fromkeys(sublayers, 0)
    first_widened = len(sublayers) - form.widened
    return {sublayer: form.width + (index >= first_widened) for index, sublayer in enumerate(sublayers)}


def count(configuration: Configuration, shape: BackboneShape) -> Counts:
    """Count a configuration on a backbone.

    Raises:
        InvalidEditError: If the configuration is not valid on it.
    """
    check_on(configuration.edits, shape)
    return count_edits(configuration.edits, shape)


def count_edits(edits: tuple[Edit, ...], shape: BackboneShape) -> Counts:
    """Count some edits on a backbone they are valid on."""
    totals = [0, 0, 0, 0]
    for edit in edits:
        cost = affine_count(edit, shape)
        places = shape.stack_norms if edit.site is Site.STACK else len(shape.sublayers(edit.site))
        total_width = sum(widths(edit, shape).values())
        weights = places * cost.weights + total_width * cost.weights_per_width
        biases = places * cost.biases + total_width * cost.biases_per_width
        stored = weights + biases + places * cost.extras
        totals[0] += weights
        totals[1] += weights + biases
        totals[2] += stored
        totals[3] += stored + _reparameterization_surplus(edit, shape)
    return Counts(weights_only=totals[0], with_bias=totals[1], stored=totals[2], trained=totals[3])


def _reparameterization_surplus(edit: Edit, shape: BackboneShape) -> int:
    """Trained minus stored parameters of a prefix with an MLP: one stack of (l, d) -> mid -> 2 L d_kv per kind."""
    if not isinstance(edit.form, SoftmaxMemory) or edit.form.reparameterization is None:
        return 0
    length, hidden = edit.form.width, edit.form.reparameterization
    kinds = [Site.ENCODER_SELF, Site.DECODER_SELF, Site.CROSS] if edit.site is Site.ATTENTION else [edit.site]
    surplus = 0
    for kind in kinds:
        layers = len(shape.sublayers(kind))
        if layers:
            outputs = 2 * layers * shape.key_value_width
            surplus += length * shape.width + hidden * (shape.width + 1) + (hidden + 1) * outputs - length * outputs
    return surplus
