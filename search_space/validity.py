"""Validity rules: which combinations mean something. Every refusal names its rule.

Names V1 to V20 are those of the factorised design space in the documentation (README, "Validity rules"); the others
say in a word what they hold. Rules that need no backbone are checked when an edit or a configuration is built, the
others by `check_on`.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from search_space.backbones.shape import BackboneShape, Sublayer
from search_space.dimensions import Heads, NormPlacement, Port, ScalePer, Site
from search_space.errors import InvalidEditError
from search_space.forms import (
    Bottleneck,
    Constant,
    Diagonal,
    EncodedPrompt,
    Full,
    Init,
    Intrinsic,
    LowRank,
    OwnNorm,
    Phm,
    Prompt,
    SoftmaxMemory,
    Sparse,
)
from search_space.gates import (
    Add,
    ConvexGate,
    ConvexInducerGate,
    InducerGate,
    LearnedScale,
    Multiply,
    Prepend,
    TanhGate,
    WeightedGate,
)
from search_space.layers import AllLayers, LayerRange, SpindleGroups

if TYPE_CHECKING:
    from search_space.edit import Edit

RULES: dict[str, str] = {
    "V1": "a gate of log-sum-exps needs attention logits: a softmax memory or an inducer that reads q at the heads",
    "V10": "several heads exist only at write head, or from q or head to o; write head needs them",
    "V11": "a per-head linear map has at most rank d_h",
    "V14": "a constant needs a module that has a bias",
    "V15": "a rank is at most the smaller of the widths that are read and written; phm's n divides them and the "
    "bottleneck; a diagonal reads and writes one width",
    "V17": "a reparameterized table belongs to the heads, reads q, and has one length and no bias or norm",
    "V18": "two gates of log-sum-exps on one attention must share one normaliser",
    "V19": "prompts belong to the embedded input and forms of the whole model to its weights, at most one each",
    "read": "the tensor that is read comes before the one that is written, at the same token positions",
    "site": "the ports belong to the site",
    "gate": "a constant is added as it is",
    "mul": "the gate mul belongs to a diagonal that reads what it writes, and only there",
    "dead": "a gate that starts closed needs a form that does not start at zero",
    "per": "a scale per head belongs to the heads",
    "twice": "a form is added at most once from one tensor to another; two are one of summed width (V16)",
    "ports": "the backbone has the port",
    "sublayers": "the backbone has such sublayers",
    "layers": "the layers that are chosen exist in the backbone",
    "norm": "an own LayerNorm belongs to a single block",
    "width": "sizes are whole numbers in range",
    "scale": "a scale is finite and positive",
}

READS: dict[Port, tuple[Port, ...]] = {
    Port.Q: (Port.X_ATTN, Port.Q),
    Port.K: (Port.CTX, Port.K),
    Port.V: (Port.CTX, Port.V),
    Port.HEAD: (Port.Q, Port.X_ATTN, Port.HEAD),
    Port.CONCAT: (Port.X_ATTN, Port.Q, Port.CONCAT),
    Port.O: (Port.X_ATTN, Port.RES_IN, Port.Q, Port.HEAD, Port.CONCAT, Port.O),
    Port.G: (Port.X_FFN, Port.RES_F, Port.G),
    Port.U: (Port.X_FFN, Port.RES_F, Port.U),
    Port.M: (Port.X_FFN, Port.RES_F, Port.M),
    Port.F: (Port.X_FFN, Port.RES_F, Port.M, Port.F),
    Port.SUM: (Port.SUM,),
    Port.NORM: (),
    Port.EMBEDDING: (),
    Port.WEIGHTS: (),
}
"""What an edit may read for each port it writes: the port itself (sequential) or one upstream (parallel)."""

_ATTENTION_WRITES = (Port.Q, Port.K, Port.V, Port.HEAD, Port.CONCAT, Port.O, Port.NORM)
_WRITES: dict[Site, tuple[Port, ...]] = {
    Site.FFN: (Port.G, Port.U, Port.M, Port.F, Port.SUM, Port.NORM),
    Site.STACK: (Port.NORM,),
    Site.EMBEDDING: (Port.EMBEDDING,),
    Site.GLOBAL: (Port.WEIGHTS,),
}
_PROMPTS = (Prompt, EncodedPrompt)
_OF_THE_MODEL = (Full, Sparse, Intrinsic)
_TABLE_GATES = (ConvexGate, WeightedGate)
_INDUCER_GATES = (InducerGate, ConvexInducerGate)
_LSE_GATES = _TABLE_GATES + _INDUCER_GATES


def _refuse(rule: str, got: str, advice: str = "") -> InvalidEditError:
    text = f"{RULES[rule]}; got {got}."
    return InvalidEditError(f"{text} {advice}".strip(), rule=rule)


def check_edit(edit: "Edit") -> None:
    """Check the rules that concern one edit and need no backbone.

    Raises:
        InvalidEditError: If one is broken.
    """
    _check_ports(edit)
    _check_outside(edit)
    if isinstance(edit.form, (*_PROMPTS, *_OF_THE_MODEL)):
        return
    if isinstance(edit.form, Constant):
        if not isinstance(edit.gate, Add):
            raise _refuse("gate", f"gate {edit.gate.name}")
        return
    _check_heads(edit)
    _check_gate(edit)
    _check_lse(edit)
    _check_reparameterization(edit)


def _check_ports(edit: "Edit") -> None:
    writes = _WRITES.get(edit.site, _ATTENTION_WRITES)
    if edit.write not in writes:
        raise _refuse("site", f"write {edit.write} at {edit.site}", f"Writable there: {', '.join(writes)}.")
    if isinstance(edit.form, (Constant, *_PROMPTS, *_OF_THE_MODEL)):
        if edit.read is not None:
            name = "constant" if isinstance(edit.form, Constant) else edit.form.name
            raise _refuse("read", f"a {name} that reads {edit.read}", "Leave read empty.")
        return
    allowed = READS[edit.write]
    if edit.read not in allowed:
        known = ", ".join(allowed) or "nothing (constants only)"
        got = f"read {edit.read or 'nothing'} for write {edit.write}"
        raise _refuse("read", got, f"Readable for it: {known}.")


def _check_outside(edit: "Edit") -> None:
    is_prompt, is_of_the_model = isinstance(edit.form, _PROMPTS), isinstance(edit.form, _OF_THE_MODEL)
    fits = is_prompt == (edit.site is Site.EMBEDDING) == isinstance(edit.gate, Prepend)
    if not fits or is_of_the_model != (edit.site is Site.GLOBAL):
        raise _refuse("V19", f"{edit.form.name} at {edit.site} with gate {edit.gate.name}")
    if is_of_the_model and not isinstance(edit.gate, Add):
        raise _refuse("V19", f"{edit.form.name} with gate {edit.gate.name}", "Use add.")
    if edit.site in (Site.EMBEDDING, Site.GLOBAL, Site.STACK) and edit.layers.name != "all":
        raise _refuse("layers", f"layers {edit.layers.name} at {edit.site}", "Leave them out.")


def _check_heads(edit: "Edit") -> None:
    is_multi = edit.heads is not Heads.SINGLE
    is_extension = edit.write is Port.O and edit.heads is Heads.QUERY and edit.read in (Port.Q, Port.HEAD)
    if is_multi and edit.write is not Port.HEAD and not is_extension:
        raise _refuse("V10", f"{edit.heads} at {edit.write}, read {edit.read}", "Use write head, or one block.")
    if not is_multi and Port.HEAD in (edit.write, edit.read):
        raise _refuse("V10", f"{edit.heads} at {edit.write}, read {edit.read}", "Use concat for one block.")
    if isinstance(edit.form, Bottleneck) and edit.form.norm is not OwnNorm.NONE and is_multi:
        raise _refuse("norm", f"{edit.heads} with a norm", "Leave the norm out.")


def _check_gate(edit: "Edit") -> None:
    is_scaling = isinstance(edit.form, Diagonal) and edit.read is edit.write
    if is_scaling != isinstance(edit.gate, Multiply):
        raise _refuse("mul", f"{edit.form.name} from {edit.read} to {edit.write} with gate {edit.gate.name}")
    if isinstance(edit.gate, TanhGate) and starts_at_zero(edit):
        raise _refuse("dead", f"{edit.form.name} with gate tanh", "Use another init or gate.")
    is_per_head = isinstance(edit.gate, LearnedScale) and edit.gate.per is ScalePer.HEAD
    if is_per_head and edit.write is not Port.HEAD:
        raise _refuse("per", f"one per head at {edit.write}", "Use one per channel.")


def starts_at_zero(edit: "Edit") -> bool:
    """Whether the form of an edit is exactly nothing when training begins."""
    match edit.form:
        case Bottleneck(init=init, reparameterization=hidden):
            return init is Init.LORA and hidden is None
        case SoftmaxMemory() | Phm() | Prompt() | EncodedPrompt():
            return False
        case _:
            return True


def _check_lse(edit: "Edit") -> None:
    if not isinstance(edit.gate, _LSE_GATES):
        return
    is_memory = isinstance(edit.form, SoftmaxMemory) and edit.write is Port.HEAD and edit.heads is Heads.KEY_VALUE
    is_inducer = isinstance(edit.form, Bottleneck | LowRank) and edit.heads is Heads.QUERY
    fits = is_memory if isinstance(edit.gate, _TABLE_GATES) else is_inducer
    if not fits or edit.read is not Port.Q:
        got = f"{edit.form.name} reading {edit.read}, writing {edit.write} per {edit.heads}, gate {edit.gate.name}"
        raise _refuse("V1", got, "Use add or a scale.")


def _check_reparameterization(edit: "Edit") -> None:
    if not isinstance(edit.form, SoftmaxMemory | Bottleneck):
        return
    is_robust = isinstance(edit.form, SoftmaxMemory) and edit.form.robust
    if edit.form.reparameterization is None and not is_robust:
        return
    at_heads = edit.write is Port.HEAD and edit.read is Port.Q
    fits = at_heads and edit.heads is Heads.KEY_VALUE
    if isinstance(edit.form, Bottleneck):
        fits = at_heads and not edit.form.bias and edit.form.norm is OwnNorm.NONE
    if is_robust and not isinstance(edit.gate, ConvexGate):
        fits = False
    if not fits:
        raise _refuse("V17", f"{edit.form.name} reading {edit.read}, writing {edit.write} per {edit.heads}")


def check_edits(edits: "Iterable[Edit]") -> None:
    """Check the rules that concern several edits and need no backbone.

    Raises:
        InvalidEditError: If one is broken.
    """
    edits = tuple(edits)
    _check_pairs(edits, [edit.read for edit in edits], _surely_share_layers)


def _check_pairs(
    edits: "tuple[Edit, ...]", reads: "list[Port | None]", share_layers: "Callable[[Edit, Edit], bool]"
) -> None:
    for index, edit in enumerate(edits):
        for other, other_read in zip(edits[:index], reads, strict=False):
            if not _sites_overlap(edit.site, other.site):
                continue
            if edit.site in (Site.EMBEDDING, Site.GLOBAL):
                raise _refuse("V19", f"{other.form.name} and {edit.form.name}", "Keep one.")
            if not share_layers(edit, other):
                continue
            lse = isinstance(edit.gate, _LSE_GATES), isinstance(other.gate, _LSE_GATES)
            if all(lse):
                raise _refuse("V18", f"two at {edit.site}", "Use one of the summed length.")
            same = edit.write is other.write and reads[index] is other_read and edit.form.name == other.form.name
            if same and not any(lse):
                got = f"two {edit.form.name} from {reads[index] or 'nothing'} to {edit.write}"
                raise _refuse("twice", got, "Merge them.")


def _surely_share_layers(one: "Edit", other: "Edit") -> bool:
    """Whether two edits share a block of every stack that has the layers of both."""
    first, second = one.layers, other.layers
    if isinstance(first, LayerRange) and isinstance(second, LayerRange):
        return first.first <= second.last and second.first <= first.last
    if isinstance(first, SpindleGroups) and isinstance(second, SpindleGroups):
        return bool(set(first.groups) & set(second.groups))
    return isinstance(first, AllLayers) or isinstance(second, AllLayers)


def _sites_overlap(one: Site, other: Site) -> bool:
    return one is other or (Site.ATTENTION in (one, other) and one.is_attention and other.is_attention)


def canonical_read(read: Port | None, shape: BackboneShape) -> Port | None:
    """The name of a tensor that is read: on post-LN backbones a sublayer's input is the residual stream (V20)."""
    if read is None or shape.norm is NormPlacement.PRE:
        return read
    return {Port.RES_IN: Port.X_ATTN, Port.RES_F: Port.X_FFN}.get(read, read)


def sublayers_of(edit: "Edit", shape: BackboneShape) -> tuple[Sublayer, ...]:
    """The sublayers at which an edit acts, from the input to the output; none outside the blocks."""
    depths = {"encoder": shape.encoder_layers, "decoder": shape.decoder_layers}
    chosen = {stack: set(edit.layers.chosen(depth)) for stack, depth in depths.items()}
    return tuple(sublayer for sublayer in shape.sublayers(edit.site) if sublayer.layer in chosen[sublayer.stack])


def check_on(edits: "Iterable[Edit]", shape: BackboneShape) -> None:
    """Check the rules that depend on the backbone.

    Raises:
        InvalidEditError: If one is broken.
    """
    edits = tuple(edits)

    def share_layers(one: "Edit", other: "Edit") -> bool:
        return bool(set(sublayers_of(one, shape)) & set(sublayers_of(other, shape))) or one.site is Site.STACK

    _check_pairs(edits, [canonical_read(edit.read, shape) for edit in edits], share_layers)
    for edit in edits:
        if edit.site is Site.STACK:
            if not shape.stack_norms:
                raise _refuse("V14", f"{shape.family}, whose stack has no biased LayerNorm")
        elif edit.site is Site.EMBEDDING:
            if shape.embedding_width is not None:
                got = f"{shape.family} with embeddings of width {shape.embedding_width} beside {shape.width}"
                raise _refuse("V19", got, "Prompts need one width.")
        elif edit.site is Site.GLOBAL:
            _check_whole_model(edit, shape)
        else:
            _check_at_sublayers(edit, shape)


def _check_whole_model(edit: "Edit", shape: BackboneShape) -> None:
    form, most = edit.form, shape.frozen_parameters
    if isinstance(form, Sparse | Intrinsic) and form.width > most:
        raise _refuse("width", f"{form.name} of {form.width:,} where the backbone has {most:,}", "Lower it.")
    if isinstance(form, Intrinsic) and form.per_tensor and form.width <= shape.parameter_tensors:
        got = f"{form.width} with a factor for each of {shape.parameter_tensors} tensors"
        raise _refuse("width", got, "Raise the dimension above their number.")


def _check_at_sublayers(edit: "Edit", shape: BackboneShape) -> None:
    if not shape.sublayers(edit.site):
        raise _refuse("sublayers", f"{edit.site} on {shape.family}")
    sublayers = sublayers_of(edit, shape)
    if not sublayers:
        raise _refuse("layers", f"{edit.layers} on {shape.family}", "Choose others.")
    if Port.G in (edit.write, edit.read) and not shape.gated_ffn:
        raise _refuse("ports", f"g on {shape.family}, whose FFN has no gate projection", "Use u.")
    if isinstance(edit.form, Constant):
        site = Site.ATTENTION if edit.site.is_attention else edit.site
        if (site, edit.write) not in shape.biased_ports:
            raise _refuse("V14", f"{site} {edit.write} on {shape.family}", "Choose a port with a bias.")
    elif isinstance(edit.form, Diagonal):
        if edit.read is not None and shape.port_width(edit.read) != shape.port_width(edit.write):
            widths = f"{shape.port_width(edit.read)} and {shape.port_width(edit.write)}"
            raise _refuse("V15", f"a diagonal of widths {widths}", "Use another form.")
    elif edit.sized_form is not None:
        _check_widths(edit, shape, len(sublayers))


def _check_widths(edit: "Edit", shape: BackboneShape, sublayers: int) -> None:
    form = edit.sized_form
    if form is None:
        return
    if form.widened >= sublayers:
        raise _refuse("width", f"{form.widened} widened sublayers of {sublayers}", "Raise the width.")
    largest = largest_width(edit, shape)
    top = form.width + (form.width_step if form.widened else 0)
    if largest is not None and top > largest:
        rule = "V11" if edit.write is Port.HEAD else "V15"
        raise _refuse(rule, f"rank {top} where {largest} is the most", "Lower the rank.")
    if isinstance(form, Phm) and edit.read is not None:
        ends = shape.port_width(edit.read), shape.port_width(edit.write)
        if any(width % form.n for width in ends):
            raise _refuse("V15", f"n {form.n} for widths {ends[0]} and {ends[1]}", "Choose an n that divides them.")


def largest_width(edit: "Edit", shape: BackboneShape) -> int | None:
    """The largest meaningful width of an edit's form on a backbone; None where nothing bounds it."""
    if edit.site is Site.GLOBAL:
        return shape.frozen_parameters
    if not isinstance(edit.form, LowRank) or edit.read is None:
        return None
    per_head = edit.heads is not Heads.SINGLE
    written = shape.head_width if edit.write is Port.HEAD else shape.port_width(edit.write)
    read = shape.head_width if per_head and edit.read in (Port.Q, Port.HEAD) else shape.port_width(edit.read)
    return min(read, written)
