"""Points of one part of a model: the legal structures of a search, each once."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Heads, Port, Site
from search_space.edit import Edit
from search_space.edit_protocol import WriteReadPairs
from search_space.exportability import peft_kind
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
    """Return the site of a part: ``attention``, ``ffn``, or one kind of attention."""
    return Site.ATTENTION if part == ATTENTION else Site(part)


def points_of(part: str, shape: BackboneShape, options: SpaceOptions) -> tuple[Point, ...]:
    """Return the points of a part that are legal on a backbone, independently of the budget, in the order of its forms.

    Activations and fixed scales fit any point, so none of these has one.

    Args:
        part: ``attention``, ``ffn``, or one kind of attention.
        shape: Shape of the backbone.
        options: Options of the space. If they include near-duplicates, these are: linear maps of q, k, v beside LoRA
            (V7), concat beside o (V9), constants without effect or that another absorbs (V12), diagonals that agree
            (V13), the residual stream beside the sublayer's input on post-LN backbones (V20), and both kinds of heads
            if their numbers agree.
    """
    kind = None if options.exportable is None else options.peft_kind
    return tuple(
        point
        for family in _families(site_of(part), options.dimensions(part))
        for point in family.with_one_activation().points(shape)
        if options.near_duplicates or not is_near_duplicate(point.edits, shape)
        if not options.mergeable or all(merge_obstacle(edit, shape) is None for edit in point.edits)
        if options.exportable is None or all(peft_kind(edit, shape) is kind for edit in point.edits)
    )


def _families(site: Site, values: DimensionValues) -> Iterator[StructureFamily]:
    for form in values["form"].values():
        for ports, heads in _port_choices(site, form):
            gates = _gates(form, ports, values["gate"])
            yield StructureFamily(
                site=site, ports=ports, form=form, heads=heads, values=form_values(form, {**values, "gate": gates})
            )


def _port_choices(site: Site, form: type[Form]) -> Iterator[tuple[WriteReadPairs, Heads]]:
    for write in writable_ports(site):
        for read in READABLE_PORTS[write] if form.reads else (None,):
            for heads in _heads(form, write):
                yield ((write, read),), heads
    for ports in form.port_sets_at_attention if site.is_attention else form.port_sets_at_ffn:
        yield ports, Heads.SINGLE


def _heads(form: type[Form], write: Port) -> tuple[Heads, ...]:
    """Return the kinds of heads in the order of preference; prefixes have a table for every key/value head."""
    if write is Port.HEAD and form.per_head is not None:
        return form.per_head, Heads.QUERY if form.per_head is Heads.KEY_VALUE else Heads.KEY_VALUE
    known = heads_of(form)
    return tuple(heads for heads in (Heads.SINGLE, Heads.QUERY, Heads.KEY_VALUE) if heads in known)


def _gates(form: type[Form], ports: WriteReadPairs, allowed: Mapping[str, Gate]) -> dict[str, Gate]:
    """Return the allowed composition functions in search order: tables' first, inducers' last.

    Constants are always added, and diagonals always multiply the port that they read and write.
    """
    if not form.reads:
        return {Add.name: Add()}
    if form.multiplies and all(write is read for write, read in ports):
        return {Multiply.name: Multiply()}
    return dict(sorted(allowed.items(), key=lambda gate: gate[1].search_order))


def is_near_duplicate(edits: tuple[Edit, ...], shape: BackboneShape) -> bool:
    """Return whether another structure computes the same as these edits, or nearly; false for joint edits."""
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
    """Cost of edits.

    Attributes:
        parameters: Number of stored parameters.
        extra_flops: FLOPs per token at inference.
    """

    parameters: int
    extra_flops: float = 0

    def is_within(self, limit: "PointCost") -> bool:
        """Return whether neither number exceeds its limit."""
        return self.parameters <= limit.parameters and self.extra_flops <= limit.extra_flops


_ALL_LAYERS = AllLayers()


def min_cost(
    point: Point, shape: BackboneShape, options: SpaceOptions, step: int = 1, layers: Layers = _ALL_LAYERS
) -> PointCost | None:
    """Return the least cost of a point; None if its widths cannot be ``step``, or within the bounds of the rank.

    The plain gates of a form are costed as the largest of them, so that all of them fit or none.

    Args:
        point: Legal point.
        shape: Shape of the backbone.
        options: Options of the space.
        step: Smallest width that all edits at the other parts can have, too.
        layers: Layers of the edits.
    """
    edits = tuple(_with_widest_gate(edit, options) for edit in point.at_layers(layers))
    cost = SideCost.of(edits, shape, step, options.rank)
    if cost.max_units is not None and cost.max_units < cost.min_units:
        return None
    return PointCost(parameters=cost.min_cost + shared_parameter_count(edits), extra_flops=cost.flops(cost.min_units))


def _with_widest_gate(edit: Edit, options: SpaceOptions) -> Edit:
    """Replace a plain gate by the allowed plain gate with the most parameters."""
    is_plain = edit.gate.is_plain and edit.gate.qualified_name == edit.gate.name
    if not edit.form.reads or not is_plain:
        return edit
    return replace(edit, gate=LearnedScale() if LearnedScale.name in options.gate_values else Add())
