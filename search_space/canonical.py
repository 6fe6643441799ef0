"""One form for configurations that are the same function with the same parameters, and its fingerprint."""

import hashlib
import json
from dataclasses import replace
from typing import Any

from search_space.backbone_shape import BackboneShape
from search_space.codec import configuration_to_json
from search_space.configuration import Configuration
from search_space.dimensions import Heads, Insertion, Site, StackKind
from search_space.edit import Edit
from search_space.form import Bottleneck, Constant, Form, LowRank, SoftmaxMemory
from search_space.gate import Add, FixedScale
from search_space.validity import canonical_read, check_on

__all__ = ["canonical", "fingerprint"]


def canonical(configuration: Configuration, shape: BackboneShape) -> Configuration:
    """The canonical form of a configuration on a backbone.

    Kept apart on purpose: points of one function class that train differently (V4, V5, V9, V17). Unified here:
    a scale of 1 and plain addition; the raw and the normalised sublayer input on post-LN backbones (V20); per
    key/value head and per query head where their numbers agree; ``attn`` and the only attention kind a backbone
    has; the order of edits that do not follow one another.

    Raises:
        InvalidEditError: If the configuration is not valid on the backbone.
    """
    check_on(configuration.edits, shape)
    edits = [_canonical_edit(edit, shape) for edit in configuration.edits]
    parallel = sorted((edit for edit in edits if edit.insertion is Insertion.PARALLEL), key=_sort_key)
    sequential = [edit for edit in edits if edit.insertion is Insertion.SEQUENTIAL]
    # Sequential edits of one port keep their order, ports are sorted. One at every attention follows, or is followed
    # by, those at one kind of attention.
    collective = {edit.write for edit in sequential if edit.site is Site.ATTENTION}

    def port(edit: Edit) -> tuple[bool, str, str]:
        is_collective = edit.site.is_attention and edit.write in collective
        return edit.site.is_attention, edit.write.value, "" if is_collective else edit.site.value

    return Configuration(edits=(*parallel, *sorted(sequential, key=port)))


def fingerprint(configuration: Configuration, shape: BackboneShape, **facts: Any) -> str:
    """Hex digest of the canonical form and of further JSON-able facts, such as learning rates.

    Raises:
        InvalidEditError: If the configuration is not valid on the backbone.
    """
    data = configuration_to_json(canonical(configuration, shape)) | facts
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:32]


def _canonical_edit(edit: Edit, shape: BackboneShape) -> Edit:
    site, gate, form = edit.site, edit.gate, edit.form
    if site is Site.ATTENTION and shape.kind is not StackKind.ENCODER_DECODER:
        site = Site.ENCODER_SELF if shape.kind is StackKind.ENCODER else Site.DECODER_SELF
    if isinstance(gate, FixedScale) and gate.value == 1:
        gate = Add()
    if edit.heads is not Heads.SINGLE and shape.query_heads == shape.key_value_heads:
        form = _with_heads(form)
    return replace(edit, site=site, read=canonical_read(edit.read, shape), gate=gate, form=form)


def _with_heads(form: Form) -> Form:
    # V1 and V17 tie prefixes to key/value heads, so that is the canonical name for softmax memories
    match form:
        case SoftmaxMemory():
            return replace(form, heads=Heads.KEY_VALUE)
        case Bottleneck() | LowRank():
            return replace(form, heads=Heads.QUERY)
        case Constant():
            return form


def _sort_key(edit: Edit) -> str:
    return json.dumps(configuration_to_json(Configuration(edits=(edit,))), sort_keys=True)
