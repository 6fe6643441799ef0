"""Configurations in words and formulas: a sentence, the four dimensions, and the nearest published method."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from search_space.backbone_shape import BackboneShape
from search_space.canonical import canonical
from search_space.configuration import Configuration
from search_space.counting import block_widths
from search_space.dimensions import Heads, Insertion, Port, Site
from search_space.edit import Edit
from search_space.form import Bottleneck, Constant, LowRank, SoftmaxMemory
from search_space.gate import ConvexGate, FixedScale, LearnedScale
from search_space.published import PUBLISHED, PublishedMethod

__all__ = [
    "Difference",
    "SideView",
    "difference",
    "formula",
    "nearest_published",
    "ranked_published",
    "sentence",
    "side_view",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SideView:
    """The four dimensions of the edits at attention or at the FFN; several values are joined by ``+``.

    Attributes:
        form: Functional form.
        write: Modified representation.
        read: What the form is computed of; ``none`` for constants.
        insertion: ``sequential`` or ``parallel``.
        gate: Composition function.
        heads: In how many blocks the form works.
        bottleneck: Smallest width over the edits; None without one.
        activation: Nonlinearity; None without one.
        scale: Fixed scale; None without one.
    """

    form: str
    write: str
    read: str
    insertion: str
    gate: str
    heads: str
    bottleneck: int | None
    activation: str | None
    scale: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How a configuration differs from a published method.

    Attributes:
        method: The published method.
        differences: One phrase each, such as ``"FFN activation gelu instead of relu"``; sizes do not count.
        distance: How much they weigh; a side that one of the two leaves alone weighs 3, anything else 1.
    """

    method: PublishedMethod
    differences: tuple[str, ...]
    distance: int


def side_view(edits: Sequence[Edit]) -> SideView | None:
    """The dimensions of the edits of one side; None without edits."""
    if not edits:
        return None
    sized = [edit.sized_form for edit in edits if edit.sized_form is not None]
    activations = [edit.form.activation.value for edit in edits if isinstance(edit.form, Bottleneck)]
    scales = [edit.gate.value for edit in edits if isinstance(edit.gate, FixedScale)]
    return SideView(
        form=_joined([edit.form.name for edit in edits]),
        write="+".join(edit.write.value for edit in edits),
        read=_joined([edit.read.value if edit.read else "none" for edit in edits]),
        insertion=_joined([edit.insertion.value for edit in edits]),
        gate=_joined([edit.gate.name for edit in edits]),
        heads=_joined([edit.heads.value for edit in edits]),
        bottleneck=min((form.width for form in sized), default=None),
        activation=_joined(activations) or None,
        scale=scales[0] if scales else None,
    )


def _joined(values: Sequence[str]) -> str:
    return "+".join(dict.fromkeys(values))


_PLACES = {Port.HEAD: "heads", Port.CONCAT: "concatenated heads", Port.NORM: "norm"}


def sentence(configuration: Configuration, shape: BackboneShape) -> str:
    """One phrase, such as ``prefix of 12 at the heads + scaled parallel adapter of 9 at the FFN (MAM-like)``."""
    if not configuration.edits:
        return "task head alone"
    phrases = [*_phrases(configuration.attention), *_phrases(configuration.ffn)]
    nearest = nearest_published(configuration, shape)
    text = " + ".join(phrases)
    if not nearest.differences:
        return f"{text} ({nearest.method.title})"
    is_akin = not any(" form " in one or " write " in one for one in nearest.differences)
    if is_akin and nearest.distance <= 2:
        return f"{text} ({_short_title(nearest.method)}-like)"
    return text


def _short_title(method: PublishedMethod) -> str:
    return method.title.removesuffix(" adapter") if method.title.startswith(("MAM", "Houlsby")) else method.title


def _phrases(edits: Sequence[Edit]) -> list[str]:
    """One phrase for all edits of a side that differ in place only."""
    alike: dict[str, list[Edit]] = {}
    for edit in edits:
        size = f" of {_size(edit)}" if edit.sized_form is not None else ""
        alike.setdefault(f"{_form_words(edit)}{size}", []).append(edit)
    return [f"{words} at {_place(some)}" for words, some in alike.items()]


def _size(edit: Edit) -> str:
    form = edit.sized_form
    if form is None:
        return ""
    return f"{form.width}–{form.width + 1}" if form.widened else f"{form.width}"


def _place(edits: Sequence[Edit]) -> str:
    if all(edit.write is Port.HEAD for edit in edits):
        return "the heads"
    if all(edit.site is Site.STACK for edit in edits):
        return "the norms of the stack"
    writes = ", ".join(_PLACES.get(edit.write, edit.write.value) for edit in edits if edit.site is not Site.STACK)
    if edits[0].site is Site.FFN:
        return "the FFN" if writes == Port.F else f"the FFN's {writes}"
    return "attention's output" if writes == Port.O else writes


def _form_words(edit: Edit) -> str:
    scale = {FixedScale: "scaled ", LearnedScale: "learned-scale "}.get(type(edit.gate), "")
    order = "sequential" if edit.insertion is Insertion.SEQUENTIAL else "parallel"
    match edit.form:
        case SoftmaxMemory() if isinstance(edit.gate, ConvexGate):
            return "prefix"
        case SoftmaxMemory() if edit.write is Port.HEAD and edit.read is Port.Q:
            return f"{scale}ungated prefix"
        case SoftmaxMemory():
            return f"{scale}{order} softmax memory"
        case Bottleneck(activation=activation, heads=heads):
            kind = "multi-head " if heads is not Heads.SINGLE else ""
            named = "" if activation == "relu" else f"{activation} "
            return f"{scale}{named}{kind}{order} adapter"
        case LowRank(heads=heads):
            kind = "multi-head " if heads is not Heads.SINGLE else ""
            is_lora = edit.insertion is Insertion.PARALLEL and edit.read in _PROJECTION_INPUT.get(edit.write, ())
            return f"{scale}{kind}LoRA" if is_lora and not kind else f"{scale}{kind}{order} low-rank map"
        case Constant():
            return "bias"


_PROJECTION_INPUT: dict[Port, tuple[Port, ...]] = {
    Port.Q: (Port.X_ATTN,),
    Port.K: (Port.CTX,),
    Port.V: (Port.CTX,),
    Port.O: (Port.CONCAT,),
    Port.G: (Port.X_FFN,),
    Port.U: (Port.X_FFN,),
    Port.F: (Port.M,),
}


def formula(edit: Edit, shape: BackboneShape) -> str:
    """What an edit computes at a sublayer, with the shapes of its matrices."""
    target = f"{edit.write}_i" if edit.write is Port.HEAD else edit.write.value
    if isinstance(edit.form, Constant):
        return f"{target} <- {target} + b, b: {shape.port_width(edit.write)}"
    source = f"{edit.read}_i" if edit.heads is not Heads.SINGLE and edit.read in (Port.Q, Port.HEAD) else f"{edit.read}"
    in_width, out_width = block_widths(edit, shape)
    per_head = {Heads.SINGLE: "", Heads.QUERY: " per head", Heads.KEY_VALUE: " per key/value head"}[edit.heads]
    if edit.heads is Heads.KEY_VALUE and shape.key_value_heads == shape.query_heads:
        per_head = " per head"
    delta, matrices = _delta(edit, source, in_width, out_width)
    composed = {
        "add": f"{target} + {delta}",
        "scale": f"{target} + {getattr(edit.gate, 'value', 1):g} {delta}",
        "scale_learned": f"{target} + s {delta}",
        "lse_convex": f"(1 - λ_i) {target} + λ_i {delta}, λ_i = σ(LSE(prefix) - LSE(keys))",
    }[edit.gate.name]
    return f"{target} <- {composed}; {matrices}{per_head}"


def _delta(edit: Edit, source: str, in_width: int, out_width: int) -> tuple[str, str]:
    size = _size(edit)
    match edit.form:
        case SoftmaxMemory():
            return (
                f"softmax({source} P_kᵀ / √{in_width}) P_v",
                f"P_k: {size} × {in_width}, P_v: {size} × {out_width}",
            )
        case Bottleneck(activation=activation, bias=bias, norm=norm):
            # A bottleneck per head takes q as attention does, scaled.
            inner = f"({source} / √{in_width})" if edit.heads is not Heads.SINGLE and edit.read is Port.Q else source
            inner = f"LN({inner})" if norm else inner
            down, up = (" + b_down", " + b_up") if bias else ("", "")
            return (
                f"({activation}({inner} W_down{down}) W_up{up})",
                f"W_down: {in_width} × {size}, W_up: {size} × {out_width}",
            )
        case _:
            return f"({source} A B)", f"A: {in_width} × {size}, B: {size} × {out_width}"


_COMPARED_FIELDS = ("form", "write", "read", "insertion", "gate", "heads", "activation")
_SIDE_NAMES = ("attention", "FFN")
_WHOLE_SIDE = 3


def difference(configuration: Configuration, method: PublishedMethod, shape: BackboneShape) -> Difference:
    """How a configuration differs from a published method, sizes aside.

    Raises:
        InvalidEditError: If the method is not valid on the backbone.
    """
    return _difference(_views(canonical(configuration, shape)), method, shape)


Views = tuple[SideView | None, SideView | None]


def _views(configuration: Configuration) -> Views:
    """The dimensions at attention and at the FFN."""
    return side_view(configuration.attention), side_view(configuration.ffn)


@lru_cache(maxsize=1024)
def _published_views(method: PublishedMethod, shape: BackboneShape) -> Views:
    return _views(canonical(method.configuration(shape).resized(attention=(1, 0), ffn=(1, 0)), shape))


def _difference(ours: Views, method: PublishedMethod, shape: BackboneShape) -> Difference:
    differences: list[str] = []
    distance = 0
    for side, mine, published in zip(_SIDE_NAMES, ours, _published_views(method, shape), strict=True):
        found = _side_differences(side, mine, published)
        differences.extend(found)
        distance += _WHOLE_SIDE if found and None in (mine, published) else len(found)
    return Difference(method=method, differences=tuple(differences), distance=distance)


def _side_differences(side: str, ours: SideView | None, theirs: SideView | None) -> list[str]:
    if ours is None or theirs is None:
        if ours is theirs:
            return []
        mine, published = (view.form if view else "nothing" for view in (ours, theirs))
        return [f"{side} {mine} instead of {published}"]
    found = []
    for name in _COMPARED_FIELDS:
        mine, published = getattr(ours, name), getattr(theirs, name)
        if mine != published and not (name == "activation" and None in (mine, published)):
            found.append(f"{side} {name} {mine} instead of {published}")
    return found


def nearest_published(configuration: Configuration, shape: BackboneShape) -> Difference:
    """The published method that differs least, the first of the list where several do."""
    return ranked_published(configuration, shape)[0]


def ranked_published(configuration: Configuration, shape: BackboneShape) -> list[Difference]:
    """All published methods with edits that are valid on the backbone, the nearest first."""
    ours = _views(canonical(configuration, shape))
    found = []
    for method in PUBLISHED:
        if (method.name == "bitfit" and not shape.biased_ports) or method.name == "head_only":
            continue
        found.append(_difference(ours, method, shape))
    return sorted(found, key=lambda one: one.distance)
