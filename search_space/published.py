"""Published methods as named points of the space, with their citations."""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from search_space.backbone_shape import BackboneShape
from search_space.configuration import Configuration
from search_space.dimensions import Activation, Heads, Port, Site
from search_space.edit import Edit
from search_space.errors import InvalidEditError, UnknownMethodError
from search_space.form import Bottleneck, Constant, Form, Init, LowRank, SoftmaxMemory
from search_space.gate import Add, ConvexGate, FixedScale, Gate, LearnedScale

__all__ = ["COMPARED", "PUBLISHED", "HyperParameter", "PublishedMethod", "published_method"]

_HE = "He et al. 2022, Towards a Unified View of Parameter-Efficient Transfer Learning, ICLR"
_HOULSBY = "Houlsby et al. 2019, Parameter-Efficient Transfer Learning for NLP, ICML"
_HU = "Hu et al. 2022, LoRA: Low-Rank Adaptation of Large Language Models, ICLR"
_LI = "Li & Liang 2021, Prefix-Tuning: Optimizing Continuous Prompts for Generation, ACL"
_PETERS = "Peters et al. 2019, To Tune or Not to Tune? Adapting Pretrained Representations to Diverse Tasks, RepL4NLP"
_ZAKEN = "Ben Zaken et al. 2022, BitFit: Simple Parameter-efficient Fine-tuning, ACL"

Values = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperParameter:
    """A number that a published method leaves open.

    Attributes:
        name: Full name, such as ``prefix_length``.
        alias: The papers' letter, such as ``l``.
        default: Used when it is not set; None means absent.
        meaning: One phrase.
        is_whole: Whether it is an integer of at least 1.
    """

    name: str
    alias: str
    default: float | None
    meaning: str
    is_whole: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedMethod:
    """A method of the literature as a point of the space.

    Attributes:
        name: As in tables and on the command line.
        title: For people.
        citation: Where it was published.
        hyperparameters: What can be set.
        attention_share: Share of the budget that attention gets when the method is resized.
        build: Makes the configuration from all hyper-parameter values.
    """

    name: str
    title: str
    citation: str
    hyperparameters: tuple[HyperParameter, ...]
    attention_share: float
    build: Callable[[BackboneShape, Values], tuple[Edit, ...]]

    def configuration(self, shape: BackboneShape, settings: Values | None = None) -> Configuration:
        """The method on a backbone.

        Args:
            shape: The backbone.
            settings: Hyper-parameter values by name or alias; the rest keep their defaults.

        Raises:
            UnknownMethodError: If a setting is not one of the method's, or out of range.
            InvalidEditError: If the method is not valid on the backbone.
        """
        values = {parameter.name: parameter.default for parameter in self.hyperparameters}
        by_key = {key: parameter for parameter in self.hyperparameters for key in (parameter.name, parameter.alias)}
        for key, value in (settings or {}).items():
            if key not in by_key:
                known = ", ".join(f"{p.name} ({p.alias})" for p in self.hyperparameters) or "none"
                raise UnknownMethodError(f"{self.name} has no hyper-parameter {key!r}; it has: {known}.")
            parameter = by_key[key]
            if parameter.is_whole and not (float(value).is_integer() and value >= 1):
                raise UnknownMethodError(f"{parameter.name} must be a whole number of at least 1; got {value}.")
            values[parameter.name] = value
        return Configuration(
            edits=self.build(shape, {name: value for name, value in values.items() if value is not None})
        )


_PREFIX = HyperParameter(name="prefix_length", alias="l", default=30, meaning="rows of the prefix")
_MIDDLE = HyperParameter(
    name="reparameterization_width",
    alias="mid",
    default=None,
    meaning="hidden width of the prefix MLP while training",
)
_SCALE = HyperParameter(name="scale", alias="s", default=4, meaning="factor of the output", is_whole=False)


def _bottleneck(default: int, *, name: str = "bottleneck", alias: str = "r") -> HyperParameter:
    return HyperParameter(name=name, alias=alias, default=default, meaning="hidden width")


_RANK = HyperParameter(name="rank", alias="r", default=8, meaning="rank")
_ALPHA = HyperParameter(name="scale", alias="s", default=2, meaning="alpha / rank", is_whole=False)


def _attention(write: Port, read: Port | None, form: Form, gate: Gate | None = None) -> Edit:
    return Edit(site=Site.ATTENTION, write=write, read=read, form=form, gate=gate or Add())


def _ffn(write: Port, read: Port | None, form: Form, gate: Gate | None = None) -> Edit:
    return Edit(site=Site.FFN, write=write, read=read, form=form, gate=gate or Add())


def _prefix(values: Values, gate: Gate | None = None) -> Edit:
    middle = values.get("reparameterization_width")
    form = SoftmaxMemory(
        width=int(values["prefix_length"]),
        heads=Heads.KEY_VALUE,
        reparameterization=None if middle is None else int(middle),
    )
    return _attention(Port.HEAD, Port.Q, form, gate or ConvexGate())


def _adapter(width: float, *, norm: bool = False, init: Init = Init.BERT) -> Bottleneck:
    return Bottleneck(width=int(width), activation=Activation.RELU, norm=norm, init=init)


def _sequential_attention(values: Values, name: str = "bottleneck") -> Edit:
    return _attention(Port.O, Port.O, _adapter(values[name]))


def _sequential_ffn(values: Values) -> Edit:
    return _ffn(Port.F, Port.F, _adapter(values["bottleneck"]))


def _scaled_parallel(values: Values) -> Edit:
    return _ffn(Port.F, Port.X_FFN, _adapter(values["bottleneck"], init=Init.LORA), FixedScale(value=values["scale"]))


def _lora(write: Port, read: Port, values: Values) -> Edit:
    form, gate = LowRank(width=int(values["rank"])), FixedScale(value=values["scale"])
    return _ffn(write, read, form, gate) if write in (Port.G, Port.U, Port.F) else _attention(write, read, form, gate)


def _lora_ffn(shape: BackboneShape, values: Values) -> tuple[Edit, ...]:
    up = (Port.G, Port.U) if shape.gated_ffn else (Port.U,)
    return (*(_lora(write, Port.X_FFN, values) for write in up), _lora(Port.F, Port.M, values))


def _multi_head(values: Values) -> Edit:
    form = Bottleneck(width=int(values["bottleneck"]), heads=Heads.QUERY, bias=False, init=Init.BERT)
    return _attention(Port.HEAD, Port.Q, form)


def _bitfit(shape: BackboneShape, values: Values) -> tuple[Edit, ...]:
    order = (Port.Q, Port.K, Port.V, Port.O, Port.G, Port.U, Port.F, Port.NORM)
    edits = [
        Edit(site=site, write=write, read=None, form=Constant(), gate=Add())
        for site in (Site.ATTENTION, Site.FFN)
        for write in order
        if (site, write) in shape.biased_ports
    ]
    if shape.stack_norms:
        edits.append(Edit(site=Site.STACK, write=Port.NORM, read=None, form=Constant(), gate=Add()))
    if not edits:
        raise InvalidEditError(f"BitFit needs biases; {shape.family} has none. Choose another method.", rule="V14")
    return tuple(edits)


PUBLISHED: tuple[PublishedMethod, ...] = (
    PublishedMethod(
        name="head_only",
        title="task head alone",
        citation=_PETERS,
        hyperparameters=(),
        attention_share=0.0,
        build=lambda shape, values: (),
    ),
    PublishedMethod(
        name="prefix_tuning",
        title="prefix tuning",
        citation=_LI,
        hyperparameters=(_PREFIX, _MIDDLE),
        attention_share=1.0,
        build=lambda shape, values: (_prefix(values),),
    ),
    PublishedMethod(
        name="prefix_tuning_additive",
        title="prefix tuning without gating",
        citation=f"{_HE}, table 4",
        hyperparameters=(_PREFIX, _MIDDLE),
        attention_share=1.0,
        build=lambda shape, values: (_prefix(values, Add()),),
    ),
    PublishedMethod(
        name="sequential_adapter_attn",
        title="sequential adapter at attention",
        citation=_HE,
        hyperparameters=(_bottleneck(64),),
        attention_share=1.0,
        build=lambda shape, values: (_sequential_attention(values),),
    ),
    PublishedMethod(
        name="sequential_adapter_ffn",
        title="sequential adapter at the FFN",
        citation=_HE,
        hyperparameters=(_bottleneck(64),),
        attention_share=0.0,
        build=lambda shape, values: (_sequential_ffn(values),),
    ),
    PublishedMethod(
        name="houlsby_adapter",
        title="Houlsby adapter",
        citation=_HOULSBY,
        hyperparameters=(_bottleneck(64),),
        attention_share=0.5,
        build=lambda shape, values: (_sequential_attention(values), _sequential_ffn(values)),
    ),
    PublishedMethod(
        name="parallel_adapter_attn",
        title="parallel adapter at attention",
        citation=_HE,
        hyperparameters=(_bottleneck(64),),
        attention_share=1.0,
        build=lambda shape, values: (_attention(Port.O, Port.X_ATTN, _adapter(values["bottleneck"])),),
    ),
    PublishedMethod(
        name="parallel_adapter_attn_concat",
        title="parallel adapter before the output projection",
        citation=f"{_HE}, released code",
        hyperparameters=(_bottleneck(64),),
        attention_share=1.0,
        build=lambda shape, values: (_attention(Port.CONCAT, Port.X_ATTN, _adapter(values["bottleneck"])),),
    ),
    PublishedMethod(
        name="parallel_adapter_ffn",
        title="parallel adapter at the FFN",
        citation=_HE,
        hyperparameters=(_bottleneck(64),),
        attention_share=0.0,
        build=lambda shape, values: (_ffn(Port.F, Port.X_FFN, _adapter(values["bottleneck"])),),
    ),
    PublishedMethod(
        name="scaled_parallel_adapter_ffn",
        title="scaled parallel adapter at the FFN",
        citation=_HE,
        hyperparameters=(_bottleneck(512), _SCALE),
        attention_share=0.0,
        build=lambda shape, values: (_scaled_parallel(values),),
    ),
    PublishedMethod(
        name="scaled_parallel_adapter_ffn_learned",
        title="scaled parallel adapter at the FFN, learned scale",
        citation=f"{_HE}, table 5",
        hyperparameters=(_bottleneck(512),),
        attention_share=0.0,
        build=lambda shape, values: (
            _ffn(Port.F, Port.X_FFN, _adapter(values["bottleneck"], init=Init.LORA), LearnedScale()),
        ),
    ),
    PublishedMethod(
        name="multihead_parallel_adapter",
        title="multi-head parallel adapter",
        citation=f"{_HE}, table 4",
        hyperparameters=(_bottleneck(30),),
        attention_share=1.0,
        build=lambda shape, values: (_multi_head(values),),
    ),
    PublishedMethod(
        name="lora_qv",
        title="LoRA on q, v",
        citation=_HU,
        hyperparameters=(_RANK, _ALPHA),
        attention_share=1.0,
        build=lambda shape, values: (
            _lora(Port.Q, Port.X_ATTN, values),
            _lora(Port.V, Port.CTX, values),
        ),
    ),
    PublishedMethod(
        name="lora_kv",
        title="LoRA on k, v",
        citation=f"{_HE}, table 1",
        hyperparameters=(_RANK, _ALPHA),
        attention_share=1.0,
        build=lambda shape, values: (_lora(Port.K, Port.CTX, values), _lora(Port.V, Port.CTX, values)),
    ),
    PublishedMethod(
        name="lora_ffn",
        title="LoRA on the FFN",
        citation=_HE,
        hyperparameters=(_RANK, _ALPHA),
        attention_share=0.0,
        build=_lora_ffn,
    ),
    PublishedMethod(
        name="mam_adapter",
        title="MAM adapter",
        citation=_HE,
        hyperparameters=(_PREFIX, _bottleneck(512), _SCALE, _MIDDLE),
        attention_share=0.5,
        build=lambda shape, values: (_prefix(values), _scaled_parallel(values)),
    ),
    PublishedMethod(
        name="pa_attn_plus_pa_ffn",
        title="parallel adapters at attention and FFN",
        citation=f"{_HE}, table 6",
        hyperparameters=(_bottleneck(30, name="attention_bottleneck", alias="ra"), _bottleneck(512)),
        attention_share=0.5,
        build=lambda shape, values: (
            _attention(Port.O, Port.X_ATTN, _adapter(values["attention_bottleneck"])),
            _ffn(Port.F, Port.X_FFN, _adapter(values["bottleneck"])),
        ),
    ),
    PublishedMethod(
        name="prefix_plus_lora_ffn",
        title="prefix tuning and LoRA on the FFN",
        citation=f"{_HE}, table 6",
        hyperparameters=(_PREFIX, HyperParameter(name="rank", alias="r", default=102, meaning="rank"), _ALPHA, _MIDDLE),
        attention_share=0.5,
        build=lambda shape, values: (_prefix(values), *_lora_ffn(shape, values)),
    ),
    PublishedMethod(
        name="bitfit",
        title="BitFit",
        citation=_ZAKEN,
        hyperparameters=(),
        attention_share=0.5,
        build=_bitfit,
    ),
)
"""Every published method that this release can build."""

COMPARED: tuple[str, ...] = (
    "head_only",
    "prefix_tuning",
    "sequential_adapter_ffn",
    "parallel_adapter_ffn",
    "scaled_parallel_adapter_ffn",
    "multihead_parallel_adapter",
    "lora_qv",
    "lora_ffn",
    "mam_adapter",
    "bitfit",
)
"""The methods that a search puts beside what it discovers, unless the study names others."""


def published_method(name: str) -> PublishedMethod:
    """The published method of a name.

    Raises:
        UnknownMethodError: If there is none; the error lists the names and the nearest.
    """
    by_name = {method.name: method for method in PUBLISHED}
    if name in by_name:
        return by_name[name]
    near = difflib.get_close_matches(name, by_name, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise UnknownMethodError(f"no published method {name!r}; known: {', '.join(by_name)}.{hint}")
