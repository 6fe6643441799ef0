"""The points of one part of a model that a search chooses from: what is legal, once each."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from search_space.backbones.shape import BackboneShape
from search_space.counting.counts import affine_count, places, shared_count
from search_space.dimensions import Heads, Port, Positions, Site
from search_space.edit import Edit
from search_space.forms import Constant, Diagonal, Form, LowRank, SoftmaxMemory
from search_space.gates import (
    Add,
    ConvexGate,
    ConvexInducerGate,
    FixedScale,
    Gate,
    InducerGate,
    LearnedScale,
    Multiply,
    WeightedGate,
)
from search_space.rules import READS
from search_space.space.options import SpaceOptions
from search_space.space.product import EVERYTHING, Family, Place, Point, Values, form_values, heads_of, writable
from search_space.validity import canonical_read, largest_width

ATTENTION, FFN = "attention", "ffn"

_TOGETHER: Mapping[tuple[bool, type[Form]], tuple[Place, ...]] = {
    (True, LowRank): (
        ((Port.Q, Port.X_ATTN), (Port.V, Port.CTX)),
        ((Port.K, Port.CTX), (Port.V, Port.CTX)),
        ((Port.Q, Port.X_ATTN), (Port.K, Port.CTX), (Port.V, Port.CTX)),
        ((Port.Q, Port.X_ATTN), (Port.K, Port.CTX), (Port.V, Port.CTX), (Port.O, Port.CONCAT)),
    ),
    (True, Constant): (((Port.Q, None), (Port.V, None)),),
    (True, Diagonal): (((Port.K, Port.K), (Port.V, Port.V)),),
    (False, LowRank): (
        ((Port.U, Port.X_FFN), (Port.F, Port.M)),
        ((Port.G, Port.X_FFN), (Port.U, Port.X_FFN), (Port.F, Port.M)),
    ),
    (False, Constant): (((Port.U, None), (Port.F, None)),),
}
"""Tensors that are written together, and what each edit reads, at attention or not."""

_INDUCERS = (InducerGate, ConvexInducerGate)


def site_of(part: str) -> Site:
    """The sublayers of a part: ``attention``, ``ffn``, or one kind of attention."""
    return Site.ATTENTION if part == ATTENTION else Site(part)


def points_of(part: str, shape: BackboneShape, options: SpaceOptions) -> tuple[Point, ...]:
    """The points of a part that are legal on a backbone, whatever the budget, in the order of its forms.

    Activations and fixed scales go with any point, so none of these has one.

    Args:
        part: ``attention``, ``ffn``, or one kind of attention.
        shape: The backbone.
        options: What is searched. Near-duplicates, if it wants them, are: linear maps of q, k, v beside LoRA (V7),
            concat beside o (V9), constants that do nothing or that another absorbs (V12), diagonals that agree (V13),
            the residual stream beside the sublayer's input on post-LN backbones (V20), and both kinds of heads where
            there are as many.
    """
    return tuple(
        point
        for family in _families(site_of(part), options.values(part))
        for point in family.with_one_activation().points(shape)
        if options.near_duplicates or not is_near_duplicate(point.edits, shape)
    )


def _families(site: Site, values: Values) -> Iterator[Family]:
    for name, form in values["form"].items():
        for place, heads in _places(site, form):
            gates = _gates(form, place, values["gate"])
            yield Family(
                site=site, place=place, form=form, heads=heads, values=form_values(name, {**values, "gate": gates})
            )


def _places(site: Site, form: type[Form]) -> Iterator[tuple[Place, Heads]]:
    for write in writable(site):
        for read in (None,) if form is Constant else READS[write]:
            for heads in _heads(form, write):
                yield ((write, read),), heads
    for place in _TOGETHER.get((site.is_attention, form), ()):
        yield place, Heads.SINGLE


def _heads(form: type[Form], write: Port) -> tuple[Heads, ...]:
    """The kinds of heads in the order of their use; prefixes have a table for every key/value head."""
    if form is SoftmaxMemory and write is Port.HEAD:
        return Heads.KEY_VALUE, Heads.QUERY
    known = heads_of(form, EVERYTHING)
    return tuple(heads for heads in (Heads.SINGLE, Heads.QUERY, Heads.KEY_VALUE) if heads in known)


def _gates(form: type[Form], place: Place, allowed: Mapping[str, Gate]) -> dict[str, Gate]:
    """The composition functions that may follow, of those allowed: tables' first, inducers' last.

    Constants are added and diagonals multiply what they read whatever is allowed, for there is no other way.
    """
    if form is Constant:
        return {Add.name: Add()}
    if form is Diagonal and all(write is read for write, read in place):
        return {Multiply.name: Multiply()}
    turn = {text: _turn(gate) for text, gate in allowed.items()}
    return {text: allowed[text] for text in sorted(allowed, key=turn.__getitem__)}


def _turn(gate: Gate) -> int:
    return 0 if isinstance(gate, ConvexGate | WeightedGate) else 2 if isinstance(gate, _INDUCERS) else 1


def is_near_duplicate(edits: tuple[Edit, ...], shape: BackboneShape) -> bool:
    """Whether something else in the space computes the same as these edits, or nearly; what acts together does not."""
    if len(edits) > 1:
        return False
    (edit,) = edits
    form, write, read = edit.form, edit.write, edit.read
    if canonical_read(read, shape) is not read:  # V20
        return True
    has_as_many = shape.query_heads == shape.key_value_heads
    kept = Heads.KEY_VALUE if isinstance(form, SoftmaxMemory) else Heads.QUERY
    if write is Port.HEAD and has_as_many and edit.heads is not kept:
        return True
    if isinstance(form, LowRank) and write in (Port.Q, Port.K, Port.V):  # V7
        return read is write
    is_rotary = shape.positions is Positions.ROTARY
    if isinstance(form, Constant):  # V12
        return write is Port.NORM or (write is Port.K and not is_rotary)
    if isinstance(form, Diagonal):  # V13: those at q and at v are kept
        at_k = write is read is Port.K and not is_rotary
        return at_k or (write is read is Port.CONCAT and has_as_many)
    return write is Port.CONCAT  # V9


def least_cost(point: Point, shape: BackboneShape, options: SpaceOptions, step: int = 1) -> int | None:
    """Fewest stored parameters of a point; None if its widths cannot be ``step``.

    The plain gates of a form are judged by the widest of them, so that they are all there or none.

    Args:
        point: A legal one.
        shape: The backbone.
        options: What is searched.
        step: Smallest width that all edits beside it can have, too.
    """
    edits = tuple(_with_widest_gate(edit, options) for edit in point.edits)
    cost = shared_count(edits)
    for edit in edits:
        width = 0 if edit.sized_form is None else math.lcm(step, edit.sized_form.width_step)
        bound = largest_width(edit, shape)
        if bound is not None and bound < width:
            return None
        each = affine_count(edit, shape)
        cost += places(edit, shape) * (each.intercept + each.slope * width)
    return cost


def _with_widest_gate(edit: Edit, options: SpaceOptions) -> Edit:
    """The edit with the plain gate whose count is the largest of those allowed, if it has a plain one."""
    is_plain = isinstance(edit.gate, Add | FixedScale) or edit.gate == LearnedScale()
    if isinstance(edit.form, Constant) or not is_plain:
        return edit
    return replace(edit, gate=LearnedScale() if LearnedScale.name in options.gate_values else Add())
