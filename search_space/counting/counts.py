"""Exact parameter counts by formula, without weights.

The count of an edit is affine in its width at every sublayer, which is what makes budgets solvable in closed form.
"""

from dataclasses import dataclass

from search_space.backbones.shape import BackboneShape, Sublayer
from search_space.configuration import Configuration
from search_space.dimensions import Heads, Port, ScalePer, Site
from search_space.edit import Edit
from search_space.forms import (
    Bottleneck,
    Constant,
    Diagonal,
    EncodedPrompt,
    Form,
    Full,
    Intrinsic,
    LowRank,
    OwnNorm,
    Phm,
    Prompt,
    PromptEncoder,
    SoftmaxMemory,
    Sparse,
)
from search_space.gates import ConvexInducerGate, InducerGate, LearnedScale, SigmoidGate, TanhGate
from search_space.validity import check_on, sublayers_of


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
    """Parameters of an edit at one of its places (see `places`)."""
    gate = _gate_count(edit, shape)
    match edit.form:
        case Constant() | Diagonal():
            return AffineCount(weights=shape.port_width(edit.write), extras=gate)
        case Prompt() | EncodedPrompt():
            return AffineCount(weights_per_width=shape.width)
        case Sparse() | Intrinsic():
            return AffineCount(weights_per_width=1)
        case Full():
            return AffineCount(weights=shape.frozen_parameters)
        case Phm():
            return _phm_count(edit.form, edit, shape, gate)
        case _:
            return _matrices_count(edit.form, edit, shape, gate)


def _matrices_count(form: Form, edit: Edit, shape: BackboneShape, gate: int) -> AffineCount:
    blocks = shape.heads(form.heads)
    in_block, out_block = block_widths(edit, shape)
    # per head into o, the summed output has one bias; into the heads each has its own
    output_biases = out_block if edit.write is Port.O else blocks * out_block
    per_width = blocks * (in_block + out_block)
    match form:
        case Bottleneck(bias=bias, norm=norm):
            norms = {OwnNorm.NONE: 0, OwnNorm.INPUT: 2 * in_block, OwnNorm.OUTPUT: 2 * out_block}[norm]
            return AffineCount(
                weights_per_width=per_width,
                biases_per_width=blocks if bias else 0,
                biases=output_biases if bias else 0,
                extras=norms + gate,
            )
        case LowRank(bias=bias):
            return AffineCount(weights_per_width=per_width, biases=output_biases if bias else 0, extras=gate)
        case _:
            return AffineCount(weights_per_width=per_width, extras=gate)


def _phm_count(form: Phm, edit: Edit, shape: BackboneShape, gate: int) -> AffineCount:
    in_width, out_width = block_widths(edit, shape)
    own = 0 if form.shared else 2 * form.n**3
    rank = form.factor_rank
    return AffineCount(
        weights_per_width=(in_width + out_width) // form.n if rank is None else 2 * rank,
        weights=own + (0 if rank is None else rank * (in_width + out_width)),
        biases_per_width=int(form.bias),
        biases=out_width if form.bias else 0,
        extras=gate,
    )


def _gate_count(edit: Edit, shape: BackboneShape) -> int:
    match edit.gate:
        case LearnedScale(per=per):
            each = {ScalePer.SUBLAYER: 1, ScalePer.CHANNEL: shape.port_width(edit.write)}
            return each.get(per, shape.query_heads)
        case TanhGate():
            return 1
        case SigmoidGate():
            return shape.heads(edit.heads) * (block_widths(edit, shape)[0] + 1)
        case InducerGate(key_width=hidden) | ConvexInducerGate(key_width=hidden) if hidden is not None:
            return shape.query_heads * (2 * shape.head_width * hidden + hidden + shape.head_width)
        case _:
            return 0


def shared_count(edits: tuple[Edit, ...]) -> int:
    """Parameters that several edits have in common: one C of n^3 entries for each n of shared Kronecker products."""
    return sum(n**3 for n in {edit.form.n for edit in edits if isinstance(edit.form, Phm) and edit.form.shared})


def places(edit: Edit, shape: BackboneShape) -> int:
    """How many times an edit is built: its sublayers; norms of the stack; once for what is outside the blocks."""
    if edit.site is Site.STACK:
        return shape.stack_norms
    return 1 if edit.site in (Site.EMBEDDING, Site.GLOBAL) else len(sublayers_of(edit, shape))


def block_widths(edit: Edit, shape: BackboneShape) -> tuple[int, int]:
    """Widths that one block of an edit's form reads and writes: the head's slice, or the whole port."""
    if edit.read is None:
        return 0, shape.port_width(edit.write)
    if edit.heads is Heads.SINGLE:
        return shape.port_width(edit.read), shape.port_width(edit.write)
    is_sliced = edit.read in (Port.Q, Port.HEAD)
    in_width = shape.head_width if is_sliced else shape.port_width(edit.read)
    return in_width, shape.width if edit.write is Port.O else shape.head_width


def widths(edit: Edit, shape: BackboneShape) -> dict[Sublayer, int]:
    """Width of an edit's form at each of its sublayers; 0 for forms without one."""
    sublayers = sublayers_of(edit, shape)
    form = edit.sized_form
    if form is None:
        return dict.fromkeys(sublayers, 0)
    first_widened = len(sublayers) - form.widened
    step = form.width_step
    return {sublayer: form.width + step * (index >= first_widened) for index, sublayer in enumerate(sublayers)}


def count(configuration: Configuration, shape: BackboneShape) -> Counts:
    """Count a configuration on a backbone.

    Raises:
        InvalidEditError: If the configuration is not valid on it.
    """
    check_on(configuration.edits, shape)
    return count_edits(configuration.edits, shape)


def count_edits(edits: tuple[Edit, ...], shape: BackboneShape) -> Counts:
    """Count some edits on a backbone they are valid on."""
    shared = shared_count(edits)
    weights_only, with_bias, stored, trained = shared, shared, shared, shared
    for edit in edits:
        cost = affine_count(edit, shape)
        number = places(edit, shape)
        total_width = _total_width(edit, shape)
        weights = number * cost.weights + total_width * cost.weights_per_width
        biases = number * cost.biases + total_width * cost.biases_per_width
        weights_only += weights
        with_bias += weights + biases
        stored += weights + biases + number * cost.extras
        trained += weights + biases + number * cost.extras + _training_surplus(edit, shape)
    return Counts(weights_only=weights_only, with_bias=with_bias, stored=stored, trained=trained)


def _total_width(edit: Edit, shape: BackboneShape) -> int:
    if edit.site in (Site.EMBEDDING, Site.GLOBAL):
        return edit.sized_form.width if edit.sized_form is not None else 0
    return sum(widths(edit, shape).values())


def _training_surplus(edit: Edit, shape: BackboneShape) -> int:
    """Trained minus stored parameters of an edit."""
    match edit.form:
        case SoftmaxMemory(width=length, reparameterization=int(hidden)):
            return _stack_surplus(edit, shape, length, hidden, 2 * shape.key_value_width)
        case Bottleneck(width=length, reparameterization=int(hidden), heads=heads):
            return _stack_surplus(edit, shape, length, hidden, 2 * shape.heads(heads) * shape.head_width)
        case EncodedPrompt(encoder=PromptEncoder.MLP, hidden=hidden):
            return _linear(shape.width, hidden) + _linear(hidden, hidden) + _linear(hidden, shape.width)
        case EncodedPrompt(encoder=PromptEncoder.LSTM, hidden=hidden):
            lstm = sum(2 * (4 * hidden * (inputs + hidden) + 8 * hidden) for inputs in (shape.width, 2 * hidden))
            return lstm + _linear(2 * hidden, 2 * hidden) + _linear(2 * hidden, shape.width)
        case Sparse(width=kept):
            return 2 * shape.frozen_parameters + shape.parameter_tensors - kept
        case _:
            return 0


def _linear(inputs: int, outputs: int) -> int:
    return inputs * outputs + outputs


def _stack_surplus(edit: Edit, shape: BackboneShape, length: int, hidden: int, outputs_per_layer: int) -> int:
    """Of tables from an MLP: one stack of (l, d) -> mid -> the tables of all its layers for each attention kind."""
    surplus = 0
    kinds = dict.fromkeys(sublayer.site for sublayer in sublayers_of(edit, shape))
    for kind in kinds:
        layers = sum(sublayer.site is kind for sublayer in sublayers_of(edit, shape))
        outputs = layers * outputs_per_layer
        surplus += length * shape.width + _linear(shape.width, hidden) + _linear(hidden, outputs) - length * outputs
    return surplus
