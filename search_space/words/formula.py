"""What an edit computes, as a formula with the shapes of its matrices."""

from dataclasses import dataclass

from search_space.backbones.shape import BackboneShape
from search_space.counting.counts import block_widths
from search_space.dimensions import Heads, NormPlacement, Port, Positions, ScalePer
from search_space.edit import Edit
from search_space.forms import (
    Bottleneck,
    Constant,
    Diagonal,
    EncodedPrompt,
    Full,
    Intrinsic,
    LowRank,
    OwnNorm,
    Phm,
    Prompt,
    PromptEncoder,
    SoftmaxMemory,
    Sparse,
)
from search_space.gates import ConvexGate, ConvexInducerGate, InducerGate, LearnedScale, WeightedGate

_INDUCERS = (InducerGate, ConvexInducerGate)
_LOG_SUM_EXPS = "λ_i = σ(LSE(prefix) - LSE(keys))"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Delta:
    """A contribution before its gate.

    Attributes:
        body: Without the bias of its output.
        bias: ``" + b"`` of the output, or nothing.
        matrices: Their shapes.
        is_closed: Whether the body needs no brackets.
    """

    body: str
    bias: str
    matrices: str
    is_closed: bool = False


def size_text(edit: Edit) -> str:
    """The width of an edit's form, or the two widths it has; empty without one."""
    form = edit.sized_form
    if form is None:
        return ""
    return f"{form.width}–{form.width + form.width_step}" if form.widened else f"{form.width}"


def formula(edit: Edit, shape: BackboneShape) -> str:
    """What an edit computes at a sublayer, with the shapes of its matrices."""
    match edit.form:
        case Constant():
            return f"{edit.write} <- {edit.write} + b, b: {shape.port_width(edit.write)}"
        case Diagonal():
            width = shape.port_width(edit.write)
            if edit.read is edit.write:
                return f"{edit.write} <- {edit.write} ⊙ l, l: {width}"
            return f"{edit.write} <- {_composed(edit, _Delta(body=f'{_source(edit)} ⊙ w', bias='', matrices=''))}" + (
                f"; w: {width}"
            )
        case Prompt() | EncodedPrompt():
            return _prompt(edit.form, shape)
        case Full() | Sparse() | Intrinsic():
            return _whole_model(edit.form, shape)
        case SoftmaxMemory() | Bottleneck() | LowRank() | Phm():
            return _at_sublayer(edit, edit.form, shape)
        case _:
            raise TypeError(edit.form.name)


def _prompt(form: Prompt | EncodedPrompt, shape: BackboneShape) -> str:
    size = f"P: {form.width} × {shape.width}"
    if isinstance(form, Prompt):
        return f"input <- [P, input]; {size}"
    hidden = form.hidden
    layers = f"MLP of {shape.width}, {hidden}, {hidden}, {shape.width}"
    if form.encoder is PromptEncoder.LSTM:
        layers = f"bidirectional LSTM of {shape.width}, 2 × {hidden}, 2 × {hidden}; MLP of {2 * hidden}, {shape.width}"
    return f"input <- [E(P), input]; {size}, E: {layers}, dropped after training"


def _whole_model(form: Full | Sparse | Intrinsic, shape: BackboneShape) -> str:
    everything = shape.frozen_parameters
    match form:
        case Full():
            return f"θ <- θ + Δ; Δ: {everything}"
        case Sparse(width=width):
            return f"θ <- θ + z ⊙ w, z: hard-concrete gates, of which {width} stay; w: {everything}"
        case Intrinsic(width=width, per_tensor=True):
            tensors = shape.parameter_tensors
            return f"θ_t <- θ_t + μ_t P(z)_t, P: fixed random Fastfood; z: {width - tensors}, μ: {tensors}"
        case Intrinsic(width=width):
            return f"θ <- θ + P(z), P: fixed random Fastfood; z: {width}"


def _at_sublayer(edit: Edit, form: SoftmaxMemory | Bottleneck | LowRank | Phm, shape: BackboneShape) -> str:
    per_head = {Heads.SINGLE: "", Heads.QUERY: " per head", Heads.KEY_VALUE: " per key/value head"}[edit.heads]
    if edit.heads is Heads.KEY_VALUE and shape.key_value_heads == shape.query_heads:
        per_head = " per head"
    delta = _delta(edit, form, shape)
    more = "; P': as P, tuned anew for every batch" if isinstance(form, SoftmaxMemory) and form.robust else ""
    if isinstance(edit.gate, InducerGate | ConvexInducerGate) and edit.gate.key_width is not None:
        hidden, width = edit.gate.key_width, shape.head_width
        more = f"; A_k: {width} × {hidden}, B_k: {hidden} × {width} per head"
    return f"{_target(edit)} <- {_composed(edit, delta, _root(edit, shape))}; {delta.matrices}{per_head}{more}"


def _target(edit: Edit) -> str:
    return f"{edit.write}_i" if edit.write is Port.HEAD else edit.write.value


def _source(edit: Edit) -> str:
    is_sliced = edit.heads is not Heads.SINGLE and edit.read in (Port.Q, Port.HEAD)
    return f"{edit.read}_i" if is_sliced else f"{edit.read}"


def _root(edit: Edit, shape: BackboneShape) -> str:
    """The divisor of attention's logits, where there is one: T5 has its scale in its weights."""
    if edit.read is Port.Q and edit.heads is not Heads.SINGLE and shape.positions is Positions.BIAS:
        return ""
    return f" / √{block_widths(edit, shape)[0]}"


def _composed(edit: Edit, delta: _Delta, root: str = "") -> str:
    target = _target(edit)
    is_extension = edit.write is Port.O and edit.heads is Heads.QUERY
    if isinstance(edit.gate, ConvexGate | WeightedGate | InducerGate | ConvexInducerGate):
        return _weighted(edit, delta, is_extension=is_extension, root=root)
    inner = delta.body
    if edit.gate.name == "sigmoid":
        weight = f"σ({_source(edit)} w + b)"
        if not is_extension:
            return f"{target} + {weight} {_bracketed(delta)}"
        inner = f"{weight} {inner}"
    both = f"(Σ_i {inner}{delta.bias})" if is_extension else _bracketed(delta)
    match edit.gate:
        case LearnedScale(per=per):
            return f"{target} + { {ScalePer.SUBLAYER: 's', ScalePer.CHANNEL: 's ⊙', ScalePer.HEAD: 's_i'}[per] } {both}"
        case _:
            factor = {"scale": f"{getattr(edit.gate, 'value', 1):g} ", "tanh": "tanh(g) "}.get(edit.gate.name, "")
            return f"{target} + {factor}{both}"


def _bracketed(delta: _Delta) -> str:
    return delta.body if delta.is_closed else f"({delta.body}{delta.bias})"


def _weighted(edit: Edit, delta: _Delta, *, is_extension: bool, root: str) -> str:
    """Under a gate that a softmax gives; the bias of a sum over heads goes without it, as released."""
    target, both = _target(edit), _bracketed(delta)
    is_convex = isinstance(edit.gate, ConvexGate | ConvexInducerGate)
    where = _LOG_SUM_EXPS
    if isinstance(edit.gate, InducerGate | ConvexInducerGate):
        key = "q_i" if edit.gate.key_width is None else "q_i + tanh(q_i A_k + a_k) B_k"
        where = f"λ_i = softmax([q_i k_iᵀ, q_i Kᵀ]{root})_1, k_i = {key}"
    if is_extension:
        base = f"{target} - Σ_i λ_i head_i W_o" if is_convex else target
        return f"{base} + Σ_i λ_i ({delta.body}){delta.bias}, {where}"
    base = f"(1 - λ_i) {target}" if is_convex else target
    return f"{base} + λ_i {both}, {where}"


def _delta(edit: Edit, form: SoftmaxMemory | Bottleneck | LowRank | Phm, shape: BackboneShape) -> _Delta:
    in_width, out_width = block_widths(edit, shape)
    size, root, source = size_text(edit), _root(edit, shape), _source(edit)
    if edit.read is Port.SUM and shape.norm is NormPlacement.POST:
        source = f"LN({source})"  # the frozen one that follows the sum
    match form:
        case SoftmaxMemory(robust=robust):
            table = "(P + P')" if robust else "P"
            return _Delta(
                body=f"softmax({source} {table}_kᵀ{root}) {table}_v",
                bias="",
                matrices=f"P_k: {size} × {in_width}, P_v: {size} × {out_width}",
                is_closed=True,
            )
        case Bottleneck(activation=activation, bias=bias, norm=norm):
            is_scaled = edit.heads is not Heads.SINGLE and edit.read is Port.Q and not isinstance(edit.gate, _INDUCERS)
            source = f"({source}{root})" if is_scaled and root else source
            source = f"LN({source})" if norm is OwnNorm.INPUT else source
            down, up = (" + b_down", " + b_up") if bias else ("", "")
            body, matrices = f"{activation}({source} W_down{down}) W_up", _pair(in_width, size, out_width)
            if norm is OwnNorm.OUTPUT:
                return _Delta(body=f"LN({body}{up})", bias="", matrices=matrices, is_closed=True)
            return _Delta(body=body, bias=up, matrices=matrices)
        case LowRank(bias=bias):
            matrices = f"A: {in_width} × {size}, B: {size} × {out_width}"
            return _Delta(body=f"{source} A B", bias=" + b" if bias else "", matrices=matrices)
        case Phm(activation=activation, bias=bias, n=n, factor_rank=rank, shared=shared):
            down, up = (" + b_down", " + b_up") if bias else ("", "")
            second = "B_j" if rank is None else f"s_j t_jᵀ of rank {rank}"
            products = f"W = Σ_j C_j ⊗ {second}, C: {n} × {n} × {n}{' for the whole model' if shared else ''}"
            return _Delta(
                body=f"{activation}({source} W_down{down}) W_up",
                bias=up,
                matrices=f"{_pair(in_width, size, out_width)}, {products}",
            )


def _pair(in_width: int, size: str, out_width: int) -> str:
    return f"W_down: {in_width} × {size}, W_up: {size} × {out_width}"
