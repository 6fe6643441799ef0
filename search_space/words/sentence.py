"""Edits in words, such as ``prefix of 12 at the heads``."""

from collections.abc import Sequence

from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Activation, Heads, Insertion, Port, ScalePer, Site, StackKind
from search_space.edit import Edit
from search_space.forms import (
    Bottleneck,
    Constant,
    Diagonal,
    EncodedPrompt,
    Full,
    Intrinsic,
    LowRank,
    Phm,
    Prompt,
    PromptEncoder,
    SoftmaxMemory,
    Sparse,
)
from search_space.gates import (
    ConvexGate,
    ConvexInducerGate,
    FixedScale,
    InducerGate,
    LearnedScale,
    SigmoidGate,
    TanhGate,
    WeightedGate,
)
from search_space.layers import LayerRange, Layers, SpindleGroups
from search_space.words.formula import size_text

_PLACES = {Port.HEAD: "heads", Port.CONCAT: "concatenated heads", Port.NORM: "norm", Port.SUM: "residual sum"}
_ATTENTIONS = {
    Site.ENCODER_SELF: "the encoder's self-attention",
    Site.DECODER_SELF: "the decoder's self-attention",
    Site.CROSS: "cross-attention",
}
_ENCODERS = {PromptEncoder.MLP: "an MLP", PromptEncoder.LSTM: "an LSTM"}
_PROJECTION_INPUT: dict[Port, tuple[Port, ...]] = {
    Port.Q: (Port.X_ATTN,),
    Port.K: (Port.CTX,),
    Port.V: (Port.CTX,),
    Port.O: (Port.CONCAT,),
    Port.G: (Port.X_FFN,),
    Port.U: (Port.X_FFN,),
    Port.F: (Port.M,),
}


def phrases(edits: Sequence[Edit], shape: BackboneShape) -> list[str]:
    """One phrase for all edits of a side that differ in their ports only."""
    alike: dict[tuple[str, Site, Layers], list[Edit]] = {}
    for edit in edits:
        alike.setdefault((_words(edit), _site(edit, shape), edit.layers), []).append(edit)
    return [
        words if site in (Site.EMBEDDING, Site.GLOBAL) else f"{words} at {_place(some, site)}{_layers(layers)}"
        for (words, site, layers), some in alike.items()
    ]


def _site(edit: Edit, shape: BackboneShape) -> Site:
    """The site to name: norms of the stack go with the FFN, and the only attention there is needs no name."""
    if edit.site is Site.STACK:
        return Site.FFN
    return Site.ATTENTION if edit.site.is_attention and shape.kind is not StackKind.ENCODER_DECODER else edit.site


def _words(edit: Edit) -> str:
    size = size_text(edit)
    match edit.form:
        case Prompt():
            return f"prompt of {size} before the input"
        case EncodedPrompt(encoder=encoder):
            return f"prompt of {size} from {_ENCODERS[encoder]} before the input"
        case Full():
            return "a change of every weight"
        case Sparse():
            return f"a change of {size} weights"
        case Intrinsic(per_tensor=per_tensor):
            return f"all weights in a random subspace of {size}{', with a factor per tensor' if per_tensor else ''}"
        case _:
            sized = f" of {size}" if size else ""
            return f"{_form_words(edit)}{sized}{_keys(edit)}"


def _keys(edit: Edit) -> str:
    is_inducer = isinstance(edit.gate, InducerGate | ConvexInducerGate)
    hidden = getattr(edit.gate, "key_width", None)
    return f" with keys of {hidden}" if is_inducer and hidden is not None else ""


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
        case _:
            return ""


def _gate_words(edit: Edit) -> str:
    match edit.gate:
        case FixedScale():
            return "scaled "
        case LearnedScale(per=per):
            return "learned-scale " if per is ScalePer.SUBLAYER else f"learned-scale-per-{per} "
        case TanhGate():
            return "tanh-gated "
        case SigmoidGate():
            return "sigmoid-gated "
        case InducerGate():
            return "inducer-gated "
        case ConvexInducerGate():
            return "convex inducer-gated "
        case _:
            return ""


def _form_words(edit: Edit) -> str:
    gate = _gate_words(edit)
    order = "sequential" if edit.insertion is Insertion.SEQUENTIAL else "parallel"
    kind = "multi-head " if edit.heads is not Heads.SINGLE else ""
    match edit.form:
        case SoftmaxMemory():
            return _memory_words(edit, gate, order)
        case Bottleneck(activation=activation) if isinstance(edit.gate, InducerGate | ConvexInducerGate):
            convex = "convex " if isinstance(edit.gate, ConvexInducerGate) else ""
            return f"{convex}{_named(activation, Activation.TANH)}inducer"
        case Bottleneck(activation=activation):
            return f"{gate}{_named(activation, Activation.RELU)}{kind}{order} adapter"
        case Phm(activation=activation):
            return f"{gate}{_named(activation, Activation.GELU)}{order} phm adapter"
        case LowRank():
            is_lora = edit.insertion is Insertion.PARALLEL and edit.read in _PROJECTION_INPUT.get(edit.write, ())
            return f"{gate}{kind}LoRA" if is_lora and not kind else f"{gate}{kind}{order} low-rank map"
        case Diagonal():
            return "scaling" if edit.insertion is Insertion.SEQUENTIAL else f"{gate}{order} diagonal"
        case Constant():
            return "bias"
        case _:
            return edit.form.name


def _named(activation: Activation, usual: Activation) -> str:
    return "" if activation is usual else f"{activation} "


def _memory_words(edit: Edit, gate: str, order: str) -> str:
    if isinstance(edit.form, SoftmaxMemory) and edit.form.robust:
        return "robust prefix"
    if isinstance(edit.gate, ConvexGate):
        return "prefix"
    if isinstance(edit.gate, WeightedGate):
        return "weighted prefix"
    if edit.write is Port.HEAD and edit.read is Port.Q:
        is_gated = isinstance(edit.gate, TanhGate | SigmoidGate)
        return f"{gate}prefix" if is_gated else f"{gate}ungated prefix"
    return f"{gate}{order} softmax memory"
