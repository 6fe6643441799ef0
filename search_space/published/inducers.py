"""Inducer-tuning (Chen et al. 2022): adapters per head under a gate with a virtual key for every query."""

from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Activation, Heads, Port, StackKind
from search_space.edit import Edit
from search_space.forms import Bottleneck, Init, LowRank
from search_space.gates import Add, ConvexInducerGate, FixedScale, InducerGate
from search_space.published.edits import at_attention, parallel_at_ffn
from search_space.published.method import HyperParameter, PublishedMethod, Values
from search_space.published.settings import CHEN, adapter_options, bottleneck, rank, reads_at_ffn

_ALPHA = 32


def _values(default: int) -> HyperParameter:
    return HyperParameter(
        name="value_width", alias="rv", default=default, meaning="bottleneck of the values", is_size=True
    )


def _keys(default: int) -> HyperParameter:
    return HyperParameter(name="key_width", alias="rk", default=default, meaning="bottleneck of the keys")


_LORA = (
    HyperParameter(
        name="lora_scale",
        alias="sl",
        default=None,
        meaning=f"alpha / rank of LoRA; {_ALPHA} / rank unless set",
        is_whole=False,
    ),
    HyperParameter(
        name="bias",
        alias="bias",
        default=None,
        meaning="a bias of LoRA; as in the released code unless set: none on encoders, one on others",
        choices=("no", "yes"),
    ),
)
_SCALE = HyperParameter(
    name="scale",
    alias="s",
    default=1,
    meaning="factor of the FFN adapter; for classification the released code has 2 (with init lora)",
    is_whole=False,
)


def _inducer(values: Values, *, write: Port, is_convex: bool = False) -> Edit:
    form = Bottleneck(
        width=int(values["value_width"]), activation=Activation.TANH, heads=Heads.QUERY, init=Init.INDUCER
    )
    keys = int(values["key_width"]) if "key_width" in values else None
    gate = ConvexInducerGate(key_width=keys) if is_convex else InducerGate(key_width=keys)
    return at_attention(write, Port.Q, form, gate)


def _with_lora(shape: BackboneShape, values: Values) -> tuple[Edit, ...]:
    width = int(values["rank"])
    bias = values.get("bias", "no" if shape.kind is StackKind.ENCODER else "yes") == "yes"
    gate = FixedScale(value=float(values.get("lora_scale", _ALPHA / width)))
    lora = at_attention(Port.Q, Port.X_ATTN, LowRank(width=width, bias=bias), gate)
    return _inducer(values, write=Port.O), lora


def _mam(shape: BackboneShape, values: Values) -> tuple[Edit, ...]:
    scale = float(values["scale"])
    gate = Add() if scale == 1 else FixedScale(value=scale)
    return (*_with_lora(shape, values), parallel_at_ffn(values, gate, size="ffn_bottleneck"))


INDUCERS: tuple[PublishedMethod, ...] = (
    PublishedMethod(
        name="inducer_adaptive",
        title="inducer-tuning, Adaptive",
        citation=f"{CHEN}, table 3",
        hyperparameters=(_values(108),),
        build=lambda shape, values: (_inducer(values, write=Port.HEAD),),
    ),
    PublishedMethod(
        name="inducer_extension",
        title="inducer-tuning, Extension",
        citation=f"{CHEN}, table 3",
        hyperparameters=(_values(16),),
        build=lambda shape, values: (_inducer(values, write=Port.O),),
    ),
    PublishedMethod(
        name="inducer_gating",
        title="inducer-tuning, Gating",
        citation=f"{CHEN}, table 3",
        hyperparameters=(_keys(10), _values(15)),
        build=lambda shape, values: (_inducer(values, write=Port.O, is_convex=True),),
    ),
    PublishedMethod(
        name="inducer",
        title="inducer-tuning",
        citation=CHEN,
        hyperparameters=(_keys(10), _values(15)),
        build=lambda shape, values: (_inducer(values, write=Port.O),),
    ),
    PublishedMethod(
        name="inducer_plus_lora_q",
        title="inducer-tuning and LoRA on query",
        citation=CHEN,
        hyperparameters=(_keys(5), _values(12), rank(24), *_LORA),
        build=_with_lora,
    ),
    PublishedMethod(
        name="mam_inducer",
        title="MAM inducer",
        citation=CHEN,
        hyperparameters=(
            _keys(3),
            _values(7),
            rank(16),
            bottleneck(42, name="ffn_bottleneck", alias="rf"),
            _SCALE,
            reads_at_ffn(),
            *adapter_options(),
            *_LORA,
        ),
        attention_share=0.6,
        build=_mam,
    ),
)
