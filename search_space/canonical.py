"""Canonical form of configurations that are the same function with the same parameters, and its fingerprint."""

import hashlib
import json
from dataclasses import replace
from itertools import combinations
from typing import Any

from search_space.backbones.shape import BackboneShape
from search_space.codec import configuration_to_json
from search_space.configuration import Configuration
from search_space.dimensions import Insertion, Port, Positions, Site, StackKind
from search_space.edit import Edit
from search_space.edit_protocol import sublayers_of
from search_space.layers import GROUPS, AllLayers, LayerRange, Layers, SpindleGroups
from search_space.validity import canonical_read, check_on

_AFTER_SOFTMAX = (Port.HEAD, Port.CONCAT)
_KINDS = 3


def canonical(configuration: Configuration, shape: BackboneShape) -> Configuration:
    """Return the canonical form of a configuration on a backbone.

    Points of one function class that train differently stay distinct (V4, V5, V9, V17). These are unified:

    - a scale of 1 and plain addition.
    - the raw and the normalised sublayer input on post-LN backbones (V20).
    - heads per key/value head and per query head if their numbers agree.
    - diagonals at k and at q, at v and at concat (V13).
    - layer choices with the same blocks.
    - ``attn`` and a backbone's only attention kind, or equal edits at all kinds.
    - the order of edits that do not follow one another.

    Raises:
        InvalidEditError: If the configuration is not valid on the backbone.
    """
    check_on(configuration.edits, shape)
    edits = tuple(_canonical_edit(edit, shape) for edit in configuration.edits)
    edits = _merged_kinds(tuple(_canonical_diagonal(edit, edits, shape) for edit in edits), shape)
    parallel = sorted((edit for edit in edits if edit.insertion is Insertion.PARALLEL), key=_sort_key)
    sequential = [edit for edit in edits if edit.insertion is Insertion.SEQUENTIAL]
    # Sequential edits of one port keep their order, ports are sorted. An edit at every attention keeps its place among
    # those at one kind of attention.
    collective = {edit.write for edit in sequential if edit.site is Site.ATTENTION}

    def port(edit: Edit) -> tuple[bool, str, str]:
        is_collective = edit.site.is_attention and edit.write in collective
        return edit.site.is_attention, edit.write.value, "" if is_collective else edit.site.value

    return Configuration(edits=(*parallel, *sorted(sequential, key=port)))


def fingerprint(configuration: Configuration, shape: BackboneShape, **facts: Any) -> str:
    """Return the hex digest of the canonical form and of further JSON-able facts, such as learning rates.

    Raises:
        InvalidEditError: If the configuration is not valid on the backbone.
    """
    data = configuration_to_json(canonical(configuration, shape)) | facts
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:32]


def _canonical_edit(edit: Edit, shape: BackboneShape) -> Edit:
    site, form = edit.site, edit.form
    if site is Site.ATTENTION and shape.kind is not StackKind.ENCODER_DECODER:
        site = Site.ENCODER_SELF if shape.kind is StackKind.ENCODER else Site.DECODER_SELF
    if edit.write is Port.HEAD and shape.query_heads == shape.key_value_heads and form.per_head is not None:
        form = replace(form, heads=form.per_head)
    read, layers = canonical_read(edit.read, shape), _canonical_layers(edit, shape)
    return replace(edit, site=site, read=read, gate=edit.gate.canonical(), form=form, layers=layers)


def _canonical_layers(edit: Edit, shape: BackboneShape) -> Layers:
    """Return the first of all blocks, a range, groups of a spindle and a pattern that has the same blocks."""
    if isinstance(edit.layers, AllLayers):
        return edit.layers
    sublayers = sublayers_of(edit, shape)
    indices = [sublayer.layer for sublayer in sublayers]
    subsets = (groups for size in range(1, GROUPS) for groups in combinations(range(1, GROUPS + 1), size))
    choices: list[Layers] = [AllLayers(), LayerRange(first=min(indices), last=max(indices))]
    for layers in (*choices, *(SpindleGroups(groups=groups) for groups in subsets)):
        if sublayers_of(replace(edit, layers=layers), shape) == sublayers:
            return layers
    return edit.layers


def _canonical_diagonal(edit: Edit, edits: tuple[Edit, ...], shape: BackboneShape) -> Edit:
    """Move factors of k to q and factors of the concatenated heads to v (V13).

    Applies only if a factor belongs to one head and no edit reads or changes the tensors between the two ports.
    """
    moved = {Port.K: Port.Q, Port.CONCAT: Port.V}.get(edit.write)
    if moved is None or not edit.gate.multiplies or shape.query_heads != shape.key_value_heads:
        return edit
    if edit.write is Port.K and shape.positions is Positions.ROTARY:
        return edit
    between = (Port.Q, Port.K) if edit.write is Port.K else (Port.V, Port.HEAD, Port.CONCAT)
    blocks = set(sublayers_of(edit, shape))
    for other in edits:
        if other is edit or not blocks & set(sublayers_of(other, shape)):
            continue
        is_constant = other.read is None and other.write in between
        if other.read in between or is_constant or (other.write in between and other.write in _AFTER_SOFTMAX):
            return edit
    return replace(edit, write=moved, read=moved)


def _merged_kinds(edits: tuple[Edit, ...], shape: BackboneShape) -> tuple[Edit, ...]:
    """Replace equal edits at each kind of attention by one edit at every attention."""
    if shape.kind is not StackKind.ENCODER_DECODER:
        return edits
    merged = list(edits)
    for edit in (edit for edit in edits if edit.site is Site.ENCODER_SELF):
        equal = [other for other in merged if _differs_in_kind_only(edit, other)]
        same_port = [other for other in merged if other.site.is_attention and other.write is edit.write]
        follows = edit.insertion is Insertion.SEQUENTIAL and len(same_port) > len(equal)
        if len(equal) < _KINDS or follows:
            continue
        blocks = sorted(sublayer for other in equal for sublayer in sublayers_of(other, shape))
        for layers in dict.fromkeys(other.layers for other in equal):
            collective = replace(edit, site=Site.ATTENTION, layers=layers)
            if sorted(sublayers_of(collective, shape)) == blocks:
                merged[merged.index(edit)] = collective
                merged = [other for other in merged if other not in equal]
                break
    return tuple(merged)


def _differs_in_kind_only(edit: Edit, other: Edit) -> bool:
    """Return whether two edits at attention differ at most in their kind of attention and their layers."""
    is_widened = edit.sized_form is not None and edit.sized_form.widened > 0
    if not other.site.is_attention or other.site is Site.ATTENTION or is_widened:
        return False
    return replace(other, site=edit.site, layers=edit.layers) == edit


def _sort_key(edit: Edit) -> str:
    return json.dumps(configuration_to_json(Configuration(edits=(edit,))), sort_keys=True)
