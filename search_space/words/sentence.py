"""Edits in words, such as ``prefix of 12 at the heads``."""

from collections.abc import Sequence

from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Port, Site, StackKind
from search_space.edit import Edit
from search_space.layers import LayerPattern, LayerRange, Layers, SpindleGroups

_PLACES = {Port.HEAD: "heads", Port.CONCAT: "concatenated heads", Port.NORM: "norm", Port.SUM: "residual sum"}
_ATTENTIONS = {
    Site.ENCODER_SELF: "the encoder's self-attention",
    Site.DECODER_SELF: "the decoder's self-attention",
    Site.CROSS: "cross-attention",
}


def phrases(edits: Sequence[Edit], shape: BackboneShape) -> list[str]:
    """One phrase for all edits of a side that differ in their ports only."""
    alike: dict[tuple[str, Site, Layers], list[Edit]] = {}
    for edit in edits:
        alike.setdefault((edit.form.words(edit), _site(edit, shape), edit.layers), []).append(edit)
    return [
        words if site in (Site.EMBEDDING, Site.GLOBAL) else f"{words} at {_place(some, site)}{_layers(layers)}"
        for (words, site, layers), some in alike.items()
    ]


def _site(edit: Edit, shape: BackboneShape) -> Site:
    """The site to name: norms of the stack go with the FFN, and the only attention there is needs no name."""
    if edit.site is Site.STACK:
        return Site.FFN
    return Site.ATTENTION if edit.site.is_attention and shape.kind is not StackKind.ENCODER_DECODER else edit.site


def _place(edits: Sequence[Edit], site: Site) -> str:
    if all(edit.site is Site.STACK for edit in edits):
        return "the norms of the stack"
    writes = ", ".join(_PLACES.get(edit.write, edit.write.value) for edit in edits if edit.site is not Site.STACK)
    if site is Site.FFN:
        return {"f": "the FFN", "residual sum": "the residual sum"}.get(writes, f"the FFN's {writes}")
    if writes == "heads":
        writes = "the heads"
    if site is Site.ATTENTION:
        return "attention's output" if writes == Port.O else writes
    return f"{'the output' if writes == Port.O else writes} of {_ATTENTIONS[site]}"


def _layers(layers: Layers) -> str:
    match layers:
        case LayerRange(first=first, last=last):
            return f" in layer {first}" if first == last else f" in layers {first} to {last}"
        case SpindleGroups(groups=groups):
            return f" in spindle group{'s' if len(groups) > 1 else ''} {', '.join(map(str, groups))}"
        case LayerPattern(sixths=sixths):
            return f" in sixth{'s' if len(sixths) > 1 else ''} {', '.join(map(str, sixths))} of the layers"
        case _:
            return ""
