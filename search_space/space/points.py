"""The points of one part of a model that a search chooses from: what is legal, once each."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Heads, Port, Site
from search_space.edit import Edit
from search_space.edit_protocol import WriteReadPairs
from search_space.forms import Form
from search_space.gates import Add, Gate, LearnedScale, Multiply
from search_space.layers import AllLayers, Layers
from search_space.mergeability import merge_obstacle
from search_space.parameter_counts.budget import SideCost
from search_space.parameter_counts.counts import shared_parameter_count
from search_space.rules import READABLE_PORTS, writable_ports
from search_space.space.options import SpaceOptions
from search_space.space.product import DimensionValues, Point, StructureFamily, form_values, heads_of
from search_space.validity import canonical_read

ATTENTION, FFN = "attention", "ffn"


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
        if not options.mergeable or all(merge_obstacle(edit, shape) is None for edit in point.edits)
    )


def _families(site: Site, values: DimensionValues) -> Iterator[StructureFamily]:
    for form in values["form"].values():
        for place, heads in _places(site, form):
            gates = _gates(form, place, values["gate"])
            yield StructureFamily(
                site=site, place=place, form=form, heads=heads, values=form_values(form, {**values, "gate": gates})
            )


def _places(site: Site, form: type[Form]) -> Iterator[tuple[WriteReadPairs, Heads]]:
    for write in writable_ports(site):
        for read in READABLE_PORTS[write] if form.reads else (None,):
            for heads in _heads(form, write):
                yield ((write, read),), heads
    for place in form.port_sets_at_attention if site.is_attention else form.port_sets_at_ffn:
        yield place, Heads.SINGLE


def _heads(form: type[Form], write: Port) -> tuple[Heads, ...]:
    """The kinds of heads in the order of their use; prefixes have a table for every key/value head."""
    if write is Port.HEAD and form.per_head is not None:
        return form.per_head, Heads.QUERY if form.per_head is Heads.KEY_VALUE else Heads.KEY_VALUE
    known = heads_of(form)
    return tuple(heads for heads in (Heads.SINGLE, Heads.QUERY, Heads.KEY_VALUE) if heads in known)


def _gates(form: type[Form], place: WriteReadPairs, allowed: Mapping[str, Gate]) -> dict[str, Gate]:
    """The composition functions that may follow, of those allowed: tables' first, inducers' last.

    Constants are added and diagonals multiply what they read whatever is allowed, for there is no other way.
    """
    if not form.reads:
        return {Add.name: Add()}
    if form.multiplies and all(write is read for write, read in place):
        return {Multiply.name: Multiply()}
    return dict(sorted(allowed.items(), key=lambda gate: gate[1].search_order))


def is_near_duplicate(edits: tuple[Edit, ...], shape: BackboneShape) -> bool:
    """Whether something else in the space computes the same as these edits, or nearly; what acts together does not."""
    if len(edits) > 1:
        return False
    (edit,) = edits
    write, read = edit.write, edit.read
    if canonical_read(read, shape) is not read:  # V20
        return True
    has_as_many = shape.query_heads == shape.key_value_heads
    kept = edit.form.per_head or Heads.QUERY
    if write is Port.HEAD and has_as_many and edit.heads is not kept:
        return True
    return edit.form.is_near_duplicate(edit, shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class PointCost:
    """What edits take.

    Attributes:
        parameters: That are stored.
        extra_flops: Per token, at inference.
    """

    parameters: int
    extra_flops: float = 0

    def is_within(self, most: "PointCost") -> bool:
        """Whether it takes no more of either."""
        return self.parameters <= most.parameters and self.extra_flops <= most.extra_flops


_EVERYWHERE = AllLayers()


def min_cost(
    point: Point, shape: BackboneShape, options: SpaceOptions, step: int = 1, layers: Layers = _EVERYWHERE
) -> PointCost | None:
    """The least that a point takes; None if its widths cannot be ``step``.

    The plain gates of a form are judged by the widest of them, so that they are all there or none.

    Args:
        point: A legal one.
        shape: The backbone.
        options: What is searched.
        step: Smallest width that all edits beside it can have, too.
        layers: Where.
    """
    edits = tuple(_with_widest_gate(edit, options) for edit in point.at_layers(layers))
    cost = SideCost.of(edits, shape, step)
    if cost.most is not None and cost.most < cost.sublayers:
        return None
    return PointCost(parameters=cost.min_cost + shared_parameter_count(edits), extra_flops=cost.flops(cost.sublayers))


def _with_widest_gate(edit: Edit, options: SpaceOptions) -> Edit:
    """The edit with the plain gate whose count is the largest of those allowed, if it has a plain one."""
    is_plain = edit.gate.is_plain and edit.gate.qualified_name == edit.gate.name
    if not edit.form.reads or not is_plain:
        return edit
    return replace(edit, gate=LearnedScale() if LearnedScale.name in options.gate_values else Add())
