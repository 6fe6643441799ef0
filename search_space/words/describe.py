"""Configurations in words: a sentence, the four dimensions, and the nearest published method."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from search_space.backbones.shape import BackboneShape
from search_space.canonical import canonical
from search_space.configuration import Configuration
from search_space.dimensions import Site
from search_space.edit import Edit
from search_space.errors import InvalidEditError
from search_space.forms.lowrank import LowRank
from search_space.gates import Add, FixedScale
from search_space.layers import AllLayers, LayerPattern, LayerRange, Layers, SpindleGroups
from search_space.published import METHODS, PublishedMethod
from search_space.words.dimensions import SideDimensions
from search_space.words.sentence import phrases


@dataclass(frozen=True, slots=True, kw_only=True)
class SideView(SideDimensions):
    """Dimensions of the edits of one side, with further differences between configurations.

    Attributes:
        read: Port that the form reads; ``none`` for constants.
        variant: Difference between methods that the dimensions do not show, such as ``own norm`` or ``keys q + MLP``;
            None for none.
        site: Sites other than every attention or every FFN; None for those.
        layers: Layer choices other than all layers; None for those.
    """

    read: str
    variant: str | None = None
    site: str | None = None
    layers: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Differences between a configuration and a published method.

    Attributes:
        differences: One phrase each, such as ``"FFN activation gelu instead of relu"``; sizes are ignored.
        distance: Sum of weights: 3 for a side that only one of the two edits, 1 for any other difference.
    """

    method: PublishedMethod
    differences: tuple[str, ...]
    distance: int


def side_view(edits: Sequence[Edit]) -> SideView | None:
    """Return the dimensions of the edits of one side; None without edits."""
    if not edits:
        return None
    sized = [edit.sized_form for edit in edits if edit.sized_form is not None]
    activations = [edit.form.activation for edit in edits if edit.form.activation is not None]
    scales = [edit.gate.fixed_scale for edit in edits if edit.gate.fixed_scale is not None]
    return SideView(
        form=_joined(edit.form.name for edit in edits),
        write=_joined(edit.write for edit in edits),
        read=_joined(edit.read or "none" for edit in edits),
        insertion=_joined(edit.insertion for edit in edits),
        gate=_joined(edit.gate.name for edit in edits),
        heads=_joined(edit.heads for edit in edits),
        bottleneck=min((form.width for form in sized), default=None),
        activation=_joined(activations) or None,
        scale=scales[0] if scales else None,
        # differences between published methods that the dimensions do not show
        variant=_joined(word for edit in edits for word in (edit.form.variant, edit.gate.variant) if word) or None,
        site=None if {edit.site for edit in edits} <= {Site.ATTENTION, Site.FFN} else _joined(e.site for e in edits),
        layers=None if all(edit.layers == AllLayers() for edit in edits) else _joined(_layers(e.layers) for e in edits),
    )


def _layers(layers: Layers) -> str:
    match layers:
        case LayerRange(first=first, last=last):
            return f"{first} to {last}"
        case SpindleGroups(groups=groups):
            return f"spindle {', '.join(map(str, groups))}"
        case LayerPattern(sixths=sixths):
            return f"sixths {', '.join(map(str, sixths))}"
        case _:
            return "all"


def _joined(values: Iterable[str]) -> str:
    return "+".join(dict.fromkeys(values))


def phrase(configuration: Configuration, shape: BackboneShape) -> str:
    """Return a configuration in words, such as ``prefix l=12, heads + parallel adapter r=9, ×2, FFN output``."""
    if not configuration.edits:
        return "task head alone"
    return " + ".join([*phrases(configuration.attention, shape), *phrases(configuration.ffn, shape)])


def sentence(configuration: Configuration, shape: BackboneShape) -> str:
    """Return the phrase with the published method that it equals or resembles, such as ``… (like mam_adapter)``."""
    text = phrase(configuration, shape)
    if not configuration.edits:
        return text
    closest, *_ = ranked_published(configuration, shape)
    if not closest.differences:
        return f"{text} ({closest.method.name})"
    is_similar = not any(" form " in one or " write " in one for one in closest.differences)
    return f"{text} (like {closest.method.name})" if is_similar and closest.distance <= 2 else text


_COMPARED_FIELDS = ("form", "write", "read", "insertion", "gate", "heads", "activation", "variant", "site", "layers")
_LORA_GATES = {Add.name, FixedScale.name}
_ABSENT = {"variant": "none", "site": "all", "layers": "all"}
_SIDE_NAMES = ("attention", "FFN")
_OTHER_NAMES = {"embed": "input", "global": "whole model"}
_WHOLE_SIDE = 3


SideViews = tuple[SideView | None, SideView | None]


def _views(configuration: Configuration) -> SideViews:
    """Return the dimensions at attention and at the FFN."""
    return side_view(configuration.attention), side_view(configuration.ffn)


@lru_cache(maxsize=1024)
def _published_views(method: PublishedMethod, shape: BackboneShape) -> SideViews:
    return _views(canonical(method.structure(shape), shape))


def _difference(ours: SideViews, method: PublishedMethod, shape: BackboneShape) -> Difference:
    differences: list[str] = []
    distance = 0
    for side, mine, published in zip(_SIDE_NAMES, ours, _published_views(method, shape), strict=True):
        is_whole = _place(mine) != _place(published)
        found = [_whole_side(side, mine, published)] if is_whole else _side_differences(side, mine, published)
        differences.extend(found)
        distance += _WHOLE_SIDE if is_whole else len(found)
    return Difference(method=method, differences=tuple(differences), distance=distance)


def _place(view: SideView | None) -> str | None:
    """Return the place of a side's edits: its sublayers, the input, or the whole model; None without edits."""
    return None if view is None else _OTHER_NAMES.get(view.site or "", "sublayers")


def _whole_side(side: str, ours: SideView | None, theirs: SideView | None) -> str:
    mine, published = (view.form if view else "none" for view in (ours, theirs))
    names = [name for name in map(_place, (ours, theirs)) if name in _OTHER_NAMES.values()]
    return f"{names[0] if names else side} {mine} instead of {published}"


def _side_differences(side: str, ours: SideView | None, theirs: SideView | None) -> list[str]:
    place = _place(ours)
    name = side if place in (None, "sublayers") else place
    is_lora = {getattr(view, "form", None) for view in (ours, theirs)} == {LowRank.name}
    found = []
    for field in _COMPARED_FIELDS:
        mine, published = getattr(ours, field, None), getattr(theirs, field, None)
        # the scale of LoRA is one of its hyper-parameters, 1 without a gate
        if is_lora and {mine, published} == _LORA_GATES:
            continue
        if mine != published and not (field == "activation" and None in (mine, published)):
            mine, published = (value or _ABSENT.get(field) for value in (mine, published))
            found.append(f"{name} {field} {mine} instead of {published}")
    return found


def ranked_published(configuration: Configuration, shape: BackboneShape) -> list[Difference]:
    """Return all published methods with edits that are valid on the backbone, the nearest first.

    Methods at the same distance keep their listed order.
    """
    ours = _views(canonical(configuration, shape))
    found = []
    for method in METHODS.values():
        if method.name == "head_only":
            continue
        try:
            found.append(_difference(ours, method, shape))
        except InvalidEditError:
            continue
    return sorted(found, key=lambda one: one.distance)
