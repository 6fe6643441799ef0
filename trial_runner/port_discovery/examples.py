"""The smallest edits that show what each form and each gate does, by site. A new form or gate needs a line here."""

from collections.abc import Callable, Iterator, Mapping

from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Activation, Heads, Port, ScalePer, Site
from search_space.edit import Edit
from search_space.errors import InvalidEditError
from search_space.forms import (
    Bottleneck,
    Constant,
    Diagonal,
    Dora,
    EncodedPrompt,
    Form,
    Full,
    Init,
    Intrinsic,
    LowRank,
    OwnNorm,
    Phm,
    Prompt,
    PromptEncoder,
    SoftmaxMemory,
    Sparse,
    Vera,
)
from search_space.gates import (
    Add,
    ConvexGate,
    ConvexInducerGate,
    ConvexSampleGate,
    FixedScale,
    Gate,
    InducerGate,
    LearnedScale,
    Multiply,
    Prepend,
    SampleGate,
    SigmoidGate,
    TanhGate,
    WeightedGate,
)
from search_space.validity import check_on

Place = tuple[Port, Port | None]
Example = tuple[Place, Form, Gate]
Examples = Callable[[BackboneShape], tuple[Example, ...]]

_Q_TO_HEAD: Place = (Port.HEAD, Port.Q)
_Q_TO_O: Place = (Port.O, Port.Q)
_AFTER_O: Place = (Port.O, Port.O)
_BESIDE_FFN: Place = (Port.F, Port.X_FFN)
_AFTER_FFN: Place = (Port.F, Port.F)


def small_memory(*, heads: Heads = Heads.KEY_VALUE, hidden: int | None = None) -> SoftmaxMemory:
    """A table of three rows."""
    return SoftmaxMemory(width=3, heads=heads, reparameterization=hidden)


def _adapter(**options: object) -> Bottleneck:
    return Bottleneck(**({"width": 3, "activation": Activation.TANH} | options))  # type: ignore[arg-type]


def _added(form: Form, *places: Place) -> tuple[Example, ...]:
    return tuple((place, form, Add()) for place in places)


_PER_HEAD = {"heads": Heads.QUERY, "bias": False}

FORM_EXAMPLES: Mapping[str, Examples] = {
    SoftmaxMemory.name: lambda _: (
        (_Q_TO_HEAD, small_memory(), ConvexGate()),
        (_Q_TO_HEAD, small_memory(hidden=5), ConvexGate()),
        *_added(small_memory(), _Q_TO_HEAD),
        *_added(small_memory(heads=Heads.QUERY), (Port.O, Port.HEAD)),
        *_added(small_memory(heads=Heads.SINGLE), (Port.V, Port.CTX), _BESIDE_FFN, (Port.SUM, Port.SUM)),
    ),
    Bottleneck.name: lambda _: (
        *_added(_adapter(), (Port.CONCAT, Port.X_ATTN), (Port.Q, Port.Q), (Port.U, Port.X_FFN)),
        *_added(_adapter(), (Port.G, Port.X_FFN), (Port.G, Port.G), (Port.F, Port.RES_F)),
        *_added(_adapter(init=Init.BERT, norm=OwnNorm.INPUT), (Port.O, Port.RES_IN), _AFTER_FFN, (Port.SUM, Port.SUM)),
        *_added(_adapter(init=Init.HOULSBY, norm=OwnNorm.OUTPUT), _AFTER_O, (Port.M, Port.M)),
        *_added(_adapter(**_PER_HEAD), _Q_TO_HEAD, (Port.HEAD, Port.X_ATTN), (Port.HEAD, Port.HEAD)),
        *_added(_adapter(heads=Heads.QUERY), _Q_TO_O, (Port.O, Port.HEAD)),
        *_added(_adapter(**_PER_HEAD, reparameterization=5), _Q_TO_HEAD),
        *_added(_adapter(heads=Heads.KEY_VALUE, init=Init.INDUCER), _Q_TO_HEAD),
    ),
    LowRank.name: lambda _: (
        *_added(LowRank(width=3, widened=1), (Port.Q, Port.X_ATTN), (Port.K, Port.CTX), (Port.V, Port.CTX)),
        *_added(LowRank(width=3, bias=True), (Port.U, Port.X_FFN), (Port.F, Port.M), (Port.SUM, Port.SUM)),
        *_added(LowRank(width=3, heads=Heads.QUERY), _Q_TO_O, (Port.HEAD, Port.X_ATTN)),
    ),
    Dora.name: lambda _: (
        *_added(Dora(width=3, widened=1), (Port.Q, Port.X_ATTN), (Port.K, Port.CTX), (Port.V, Port.CTX)),
        *_added(Dora(width=3), (Port.O, Port.CONCAT), (Port.G, Port.X_FFN), (Port.U, Port.X_FFN)),
        ((Port.F, Port.M), Dora(width=3), FixedScale(value=4)),
        ((Port.F, Port.M), Dora(width=3), LearnedScale(per=ScalePer.CHANNEL)),
    ),
    Phm.name: lambda _: (
        *_added(Phm(width=4, widened=1), _AFTER_O, _AFTER_FFN),
        *_added(Phm(width=4, factor_rank=None, shared=False), (Port.V, Port.CTX), (Port.M, Port.X_FFN)),
    ),
    Diagonal.name: lambda _: (
        *(((port, port), Diagonal(), Multiply()) for port in (Port.K, Port.V, Port.CONCAT, Port.M, Port.SUM)),
        *_added(Diagonal(), (Port.O, Port.X_ATTN), _BESIDE_FFN),
    ),
    Constant.name: lambda shape: tuple(
        ((port, None), Constant(), Add())
        for port in (Port.Q, Port.K, Port.V, Port.O, Port.U, Port.F, Port.NORM)
        if shape.biased_ports
    ),
    Vera.name: lambda _: (
        *_added(Vera(width=3, widened=1), (Port.Q, Port.X_ATTN), (Port.V, Port.CTX), (Port.U, Port.X_FFN)),
        *_added(Vera(width=3, seed=7), (Port.F, Port.M), (Port.SUM, Port.SUM)),
        ((Port.K, Port.CTX), Vera(width=3), FixedScale(value=4)),
    ),
    Prompt.name: lambda _: (((Port.EMBEDDING, None), Prompt(width=3), Prepend()),),
    EncodedPrompt.name: lambda _: tuple(
        ((Port.EMBEDDING, None), EncodedPrompt(width=3, encoder=encoder, hidden=12), Prepend())
        for encoder in PromptEncoder
    ),
    Full.name: lambda _: _added(Full(), (Port.WEIGHTS, None)),
    Sparse.name: lambda _: _added(Sparse(width=50), (Port.WEIGHTS, None)),
    Intrinsic.name: lambda shape: (
        *_added(Intrinsic(width=20), (Port.WEIGHTS, None)),
        *_added(Intrinsic(width=shape.parameter_tensors + 20, per_tensor=True), (Port.WEIGHTS, None)),
    ),
}
"""What each form can be, smallest sizes; each of it wherever its ports are."""

_NOT_ZERO = _adapter(init=Init.BERT)
_EXTENDED = _adapter(heads=Heads.QUERY, init=Init.INDUCER)
_AT_HEADS = _adapter(heads=Heads.QUERY, init=Init.INDUCER, bias=False)


def _gated(gate: Gate, form: Form, *places: Place) -> tuple[Example, ...]:
    return tuple((place, form, gate) for place in places)


GATE_EXAMPLES: Mapping[str, Examples] = {
    Add.name: lambda _: _gated(Add(), _adapter(), _AFTER_O, _BESIDE_FFN),
    FixedScale.name: lambda _: _gated(
        FixedScale(value=4), LowRank(width=3), (Port.Q, Port.X_ATTN), (Port.U, Port.X_FFN)
    ),
    LearnedScale.name: lambda _: (
        *_gated(LearnedScale(), _adapter(), _AFTER_O, _BESIDE_FFN),
        *_gated(LearnedScale(per=ScalePer.CHANNEL), _adapter(heads=Heads.QUERY), _Q_TO_HEAD),
        *_gated(LearnedScale(per=ScalePer.CHANNEL), _NOT_ZERO, (Port.M, Port.X_FFN), (Port.CONCAT, Port.X_ATTN)),
        *_gated(LearnedScale(per=ScalePer.HEAD), small_memory(), _Q_TO_HEAD),
    ),
    TanhGate.name: lambda _: (
        *_gated(TanhGate(), _NOT_ZERO, _AFTER_O, _BESIDE_FFN, (Port.SUM, Port.SUM)),
        *_gated(TanhGate(), small_memory(), _Q_TO_HEAD),
    ),
    SigmoidGate.name: lambda _: (
        *_gated(SigmoidGate(), _adapter(), _AFTER_O, _BESIDE_FFN),
        *_gated(SigmoidGate(), _adapter(heads=Heads.QUERY), _Q_TO_HEAD, _Q_TO_O),
        *_gated(SigmoidGate(), small_memory(), _Q_TO_HEAD),
    ),
    ConvexGate.name: lambda _: _gated(ConvexGate(), small_memory(), _Q_TO_HEAD),
    WeightedGate.name: lambda _: (
        *_gated(WeightedGate(), small_memory(), _Q_TO_HEAD),
        *_gated(WeightedGate(), small_memory(hidden=5), _Q_TO_HEAD),
    ),
    InducerGate.name: lambda _: (
        *_gated(InducerGate(), _AT_HEADS, _Q_TO_HEAD),
        *_gated(InducerGate(key_width=2), _EXTENDED, _Q_TO_HEAD, _Q_TO_O),
        *_gated(InducerGate(key_width=2), LowRank(width=3, heads=Heads.QUERY), _Q_TO_O),
    ),
    ConvexInducerGate.name: lambda _: (
        *_gated(ConvexInducerGate(key_width=2), _EXTENDED, _Q_TO_HEAD, _Q_TO_O),
        *_gated(ConvexInducerGate(), LowRank(width=3, heads=Heads.QUERY), _Q_TO_HEAD),
    ),
    Multiply.name: lambda _: _gated(
        Multiply(), Diagonal(), *((port, port) for port in (Port.Q, Port.O, Port.U, Port.F))
    ),
    SampleGate.name: lambda _: (
        *_gated(SampleGate(), _adapter(), _AFTER_O, _BESIDE_FFN, (Port.SUM, Port.SUM)),
        *_gated(SampleGate(), LowRank(width=3), (Port.Q, Port.X_ATTN)),
        *_gated(SampleGate(), _adapter(heads=Heads.QUERY), _Q_TO_HEAD, _Q_TO_O),
    ),
    ConvexSampleGate.name: lambda _: (
        *_gated(ConvexSampleGate(), small_memory(), _Q_TO_HEAD),
        *_gated(ConvexSampleGate(), small_memory(hidden=5), _Q_TO_HEAD),
    ),
    Prepend.name: lambda _: _gated(Prepend(), Prompt(width=1), (Port.EMBEDDING, None)),
}
"""What each gate can be, smallest sizes."""


_ELSEWHERE = ("site", "sample", "V19", "ports", "V14", "V15", "width")
"""The rules by which an example belongs to another site or another backbone."""


def examples_at(site: Site, shape: BackboneShape) -> Iterator[Edit]:
    """Every example that belongs to a site and that the backbone can have."""
    for examples in (*FORM_EXAMPLES.values(), *GATE_EXAMPLES.values()):
        for (write, read), form, gate in examples(shape):
            try:
                edit = Edit(site=site, write=write, read=read, form=form, gate=gate)
                check_on((edit,), shape)
            except InvalidEditError as error:
                if error.rule not in _ELSEWHERE:
                    raise
                continue
            yield edit
