"""Edits in words, such as ``prefix l=12, heads``."""

from collections.abc import Sequence

from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Port, Site, StackKind
from search_space.edit import Edit
from search_space.layers import LayerPattern, LayerRange, Layers, SpindleGroups
from search_space.words.ports import PORT_NAMES, short_name

_DOWN = "down"
"""Name for edits of the FFN's output in parallel to its second projection, or of that projection's bias."""

_ATTENTIONS = {
    Site.ENCODER_SELF: "the encoder's self-attention",
    Site.DECODER_SELF: "the decoder's self-attention",
    Site.CROSS: "cross-attention",
}


def phrases(edits: Sequence[Edit], shape: BackboneShape) -> list[str]:
    """Return one phrase for all edits of a side that differ in their ports only."""
    groups: dict[tuple[str, Site, Layers], list[Edit]] = {}
    for edit in edits:
        groups.setdefault((edit.form.describe(edit), _site(edit, shape), edit.layers), []).append(edit)
    return [
        words
        if site in (Site.EMBEDDING, Site.GLOBAL)
        else ", ".join([words, _port_words(same, site), *_layers(layers)])
        for (words, site, layers), same in groups.items()
    ]


def _site(edit: Edit, shape: BackboneShape) -> Site:
    """Return the site to name: the FFN for the stack's norms, and ``attn`` for a backbone's only attention."""
    if edit.site is Site.STACK:
        return Site.FFN
    return Site.ATTENTION if edit.site.is_attention and shape.kind is not StackKind.ENCODER_DECODER else edit.site


def _port_words(edits: Sequence[Edit], site: Site) -> str:
    written = [edit for edit in edits if edit.site is not Site.STACK]
    if not written:
        return "norms of the stack"
    names = "+".join(_name(edit) for edit in written)
    if site is Site.FFN:
        return names if names == PORT_NAMES[Port.SUM] else f"FFN {names}"
    if site is not Site.ATTENTION:
        return f"{names} of {_ATTENTIONS[site]}"
    return f"attention {names}" if names in ("output", "norm") else names


def _name(edit: Edit) -> str:
    is_projected = edit.write is Port.F and edit.read in (None, Port.M)
    return _DOWN if is_projected else short_name(edit.write)


def _layers(layers: Layers) -> list[str]:
    match layers:
        case LayerRange(first=first, last=last):
            return [f"layer {first}" if first == last else f"layers {first}–{last}"]
        case SpindleGroups(groups=groups):
            return [f"spindle group{'s' if len(groups) > 1 else ''} {'+'.join(map(str, groups))}"]
        case LayerPattern(sixths=sixths):
            return [f"sixth{'s' if len(sixths) > 1 else ''} {'+'.join(map(str, sixths))} of the layers"]
        case _:
            return []
