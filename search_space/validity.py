"""Validity rules between the edits of a configuration and on a backbone; rules of one edit are in `Edit`."""

from collections.abc import Callable, Iterable

from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Heads, NormPlacement, Port, Site
from search_space.edit import Edit
from search_space.edit_protocol import sublayers_of
from search_space.forms import SizedForm
from search_space.layers import AllLayers, LayerPattern, LayerRange, SpindleGroups
from search_space.rules import rule_error


def check_edits(edits: Iterable[Edit]) -> None:
    """Check the rules between edits that need no backbone.

    Raises:
        InvalidEditError: If a rule is broken.
    """
    edits = tuple(edits)
    _check_pairs(edits, [edit.read for edit in edits], _always_share_layers)


def _check_pairs(edits: tuple[Edit, ...], reads: list[Port | None], share_layers: Callable[[Edit, Edit], bool]) -> None:
    for index, edit in enumerate(edits):
        for other, other_read in zip(edits[:index], reads, strict=False):
            if not _sites_overlap(edit.site, other.site):
                continue
            if edit.site in (Site.EMBEDDING, Site.GLOBAL):
                raise rule_error("V19", f"{other.form.name} and {edit.form.name}", "Keep one.")
            if not share_layers(edit, other):
                continue
            lse = edit.gate.logits is not None, other.gate.logits is not None
            if all(lse):
                raise rule_error("V18", f"two at {edit.site}", "Use one of the summed length.")
            same = edit.write is other.write and reads[index] is other_read and edit.form.name == other.form.name
            if same and not any(lse):
                got = f"two {edit.form.name} from {reads[index] or 'nothing'} to {edit.write}"
                raise rule_error("twice", got, "Merge them.")


def _always_share_layers(one: Edit, other: Edit) -> bool:
    """Return whether two edits share a block in every stack that has the layers of both."""
    first, second = one.layers, other.layers
    if isinstance(first, LayerRange) and isinstance(second, LayerRange):
        return first.first <= second.last and second.first <= first.last
    if isinstance(first, SpindleGroups) and isinstance(second, SpindleGroups):
        return bool(set(first.groups) & set(second.groups))
    if isinstance(first, LayerPattern) and isinstance(second, LayerPattern):
        return bool(set(first.sixths) & set(second.sixths))
    return isinstance(first, AllLayers) or isinstance(second, AllLayers)


def _sites_overlap(one: Site, other: Site) -> bool:
    return one is other or (Site.ATTENTION in (one, other) and one.is_attention and other.is_attention)


def canonical_read(read: Port | None, shape: BackboneShape) -> Port | None:
    """Return the canonical name of a tensor read: x_attn or x_ffn for a post-LN backbone's residual stream (V20)."""
    if read is None or shape.norm is NormPlacement.PRE:
        return read
    return {Port.RES_IN: Port.X_ATTN, Port.RES_F: Port.X_FFN}.get(read, read)


def check_on(edits: Iterable[Edit], shape: BackboneShape) -> None:
    """Check the rules that depend on the backbone.

    Raises:
        InvalidEditError: If a rule is broken.
    """
    edits = tuple(edits)

    def share_layers(one: Edit, other: Edit) -> bool:
        return bool(set(sublayers_of(one, shape)) & set(sublayers_of(other, shape))) or one.site is Site.STACK

    _check_pairs(edits, [canonical_read(edit.read, shape) for edit in edits], share_layers)
    for edit in edits:
        if edit.site is Site.STACK:
            if not shape.stack_norms:
                raise rule_error("V14", f"{shape.family}, whose stack has no biased LayerNorm")
            continue
        if edit.site is Site.EMBEDDING and shape.embedding_width is not None:
            got = f"{shape.family} with embeddings of width {shape.embedding_width} beside {shape.width}"
            raise rule_error("V19", got, "Prompts need one width.")
        if edit.site is Site.EMBEDDING and not shape.has(Site.EMBEDDING, Port.EMBEDDING):
            raise rule_error("ports", f"a prompt on {shape.family}, whose input cannot be reached", "Use a prefix.")
        if edit.form.outside_site is None:
            _check_at_sublayers(edit, shape)
        edit.form.check_on(edit, shape)


def _check_at_sublayers(edit: Edit, shape: BackboneShape) -> None:
    if not shape.sublayers(edit.site):
        raise rule_error("sublayers", f"{edit.site} on {shape.family}")
    sublayers = sublayers_of(edit, shape)
    if not sublayers:
        raise rule_error("layers", f"{edit.layers} on {shape.family}", "Choose others.")
    if Port.G in (edit.write, edit.read) and not shape.gated_ffn:
        raise rule_error("ports", f"g on {shape.family}, whose FFN has no gate projection", "Use u.")
    _check_reachable(edit, shape)
    edit.gate.check_on(edit, shape)
    if edit.sized_form is not None:
        _check_widths(edit, edit.sized_form, shape, len(sublayers))


def _check_reachable(edit: Edit, shape: BackboneShape) -> None:
    for port in (edit.write, edit.read):
        if port is not None and not shape.has(edit.site, port):
            raise rule_error("ports", f"{port} on {shape.family}, where nothing can reach it", "Use another port.")
    inside = edit.gate.logits is not None or edit.heads is not Heads.SINGLE
    if inside and not shape.has(edit.site, Port.HEAD):
        raise rule_error(
            "ports", f"heads on {shape.family}, whose attention cannot be reached inside", "Use q, k, v or o."
        )


def _check_widths(edit: Edit, form: SizedForm, shape: BackboneShape, sublayers: int) -> None:
    if form.widened >= sublayers:
        raise rule_error("width", f"{form.widened} widened sublayers of {sublayers}", "Raise the width.")
    largest = form.largest_width(edit, shape)
    top = form.width + (form.width_step if form.widened else 0)
    if largest is not None and top > largest:
        rule = "V11" if edit.write is Port.HEAD else "V15"
        raise rule_error(rule, f"rank {top} where {largest} is the most", "Lower the rank.")
