"""Options of a search space."""

import math
from collections.abc import Callable, Iterable
from dataclasses import field, fields
from functools import wraps
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, PlainValidator, ValidationError
from pydantic.dataclasses import dataclass

from search_space.dimensions import Activation, ScalePer
from search_space.errors import SearchSpaceError, SettingError
from search_space.field_types import Distinct, Integer, Number, Positive, Size, choice, distinct
from search_space.forms import FORMS, Bottleneck, Constant, Diagonal, Init, LowRank, OwnNorm, PeftKind, SoftmaxMemory
from search_space.gates import GATES, ConvexGate, Gate, InducerGate
from search_space.parameter_counts.budget import RankBounds
from search_space.published import COMPARED, METHODS
from search_space.published.point import PublishedPoint
from search_space.rules import is_integer
from search_space.space.product import BIASES, DimensionValues, by_text

LEARNING_RATES = {name: form.learning_rates for name, form in FORMS.items()}
"""Default search range of the peak learning rate per functional form, for trainings of `USUAL_STEPS`."""

USUAL_STEPS = 200
_LARGEST_FACTOR = 1.6
"""Largest factor of the ranges for short trainings; with 2.5 decoders scored below the untrained model."""


def learning_rates_for(steps: int) -> dict[str, tuple[float, float]]:
    """Return the default ranges for trainings of some steps: proportional to the inverse root of their number.

    On SICK with MiniLM LoRA was best at 0.010 to 0.026 after 80 steps, and did not train at 0.04.
    """
    factor = min(_LARGEST_FACTOR, math.sqrt(USUAL_STEPS / steps))
    return {form: (_rounded(low * factor), _rounded(high * factor)) for form, (low, high) in LEARNING_RATES.items()}


def _rounded(rate: float) -> float:
    """Round to three significant digits."""
    return float(f"{rate:.3g}")


SEARCHED_FORMS: tuple[str, ...] = tuple(name for name, form in FORMS.items() if form.outside_site is None)
"""Functional forms of the per-sublayer product; those of prompts and of the whole model are published points only."""

SEARCHED_GATES: tuple[str, ...] = tuple(
    name for name, gate in GATES.items() if gate.outside_site is None and not gate.multiplies
)
"""Composition functions that can be chosen; the gates of (IA)^3 diagonals and prompts are fixed."""

PLAIN_GATES: tuple[str, ...] = tuple(name for name, gate in GATES.items() if gate.is_plain)
"""Composition functions that fit every form that reads and writes a port."""

METHOD_GROUPS: tuple[str, ...] = ("compared", "all", "none")
"""Words for several published methods."""


def _ascending(pair: tuple[float, float]) -> tuple[float, float]:
    if not pair[0] <= pair[1]:
        raise ValueError("must be two numbers, the lower one first")
    return pair


def _below_one(pair: tuple[float, float]) -> tuple[float, float]:
    if not pair[1] < 1:
        raise ValueError("must be a range within 0 and 1")
    return pair


def _up_to_one(pair: tuple[float, float]) -> tuple[float, float]:
    if not pair[1] <= 1:
        raise ValueError("must be a range within 0 and 1")
    return pair


def _rank_bounds(value: object) -> tuple[int, int] | None:
    """Return the least and the greatest rank; a single whole number is both."""
    pair = value if isinstance(value, list | tuple) else (value, value)
    if value is None:
        return None
    if not (len(pair) == 2 and all(is_integer(one) for one in pair) and 1 <= pair[0] <= pair[1]):
        raise ValueError("must be a whole number from 1 on, or two of them, the lower one first")
    return pair[0], pair[1]


def read_published(value: object) -> str | tuple[PublishedPoint, ...]:
    """Read a word for several published methods, or a list of them.

    Raises:
        ValueError: If the value is neither, or an entry is no published method.
    """
    if isinstance(value, str) and value in METHOD_GROUPS:
        return value
    return _read_methods(value, "compared, all, none, or ")


def _read_methods(value: object, words: str = "") -> tuple[PublishedPoint, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise ValueError(f"must be {words}a list of published methods")
    return distinct(tuple(map(_point, value)))


def _point(text: str) -> PublishedPoint:
    choice(text.partition(":")[0].strip(), METHODS)
    try:
        return PublishedPoint(text)
    except SearchSpaceError as error:
        raise ValueError(str(error).rstrip(".")) from error


def _with_plain(gates: tuple[str, ...]) -> tuple[str, ...]:
    if not set(PLAIN_GATES) & set(gates):
        raise ValueError(f"must have at least one of {', '.join(PLAIN_GATES)}")
    return gates


def _with_one(numbers: tuple[int, ...]) -> tuple[int, ...]:
    if 1 not in numbers:
        raise ValueError("must be 1, or 1 and 2")
    return numbers


def _with_defaults(rates: dict[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    return LEARNING_RATES | rates


def _among(known: Iterable[str]) -> AfterValidator:
    """Return a validator that refuses unknown names."""
    return AfterValidator(lambda value: choice(value, known))


def _several(dropouts: tuple[float, ...]) -> tuple[float, ...]:
    if len(dropouts) == 1:
        raise ValueError("must be at least two numbers; training.lora_dropout is one for all trials")
    return dropouts


_Item = TypeVar("_Item")


def _form_name(name: object) -> object:
    """Return the name of a form; LoRA is ``lowrank``."""
    return LowRank.name if name == "lora" else name


_Form = Annotated[str, BeforeValidator(_form_name), _among(SEARCHED_FORMS)]
FormNames = Annotated[tuple[_Form, ...], Distinct]
NonEmpty = Annotated[tuple[_Item, ...], Distinct, Field(min_length=1)]
GateNames = Annotated[NonEmpty[Annotated[str, _among(SEARCHED_GATES)]], AfterValidator(_with_plain)]
EditNumbers = Annotated[NonEmpty[Literal[1, 2]], AfterValidator(_with_one)]
PositiveRange = Annotated[tuple[Positive, Positive], AfterValidator(_ascending)]
_KEYS_ARE_KNOWN = ConfigDict(extra="forbid", validate_default=True)


@dataclass(frozen=True, slots=True, kw_only=True, config=_KEYS_ARE_KNOWN)
class FormValues:
    """Other values of forms and gates, each a list; a dimension with one value adds nothing to the search.

    Attributes:
        activations: Activations of bottlenecks.
        scales: Fixed scales, of the gate ``scale``.
        scale_per: Granularity of a learned scale, of the gate ``scale_learned``.
        key_widths: Bottlenecks of an inducer's keys, of the gate ``inducer``; None makes the query its own key.
        norms: LayerNorms inside bottlenecks.
        biases: Biases of bottlenecks and low-rank maps. Usually a bottleneck has them, but not at the heads and at k,
            and a low-rank map has none.
        inits: Initializations of bottlenecks.
        reparameterizations: Hidden widths of MLPs that make tables while training; None trains the tables themselves.
        products: Kronecker products of the form phm, where they divide the widths.
        factors: Rank of their factors; None for full matrices.
        sharing: Whether phm's small factors are shared by all sublayers.
    """

    activations: NonEmpty[Activation] = tuple(Activation)
    scales: NonEmpty[Positive] = (2.0, 4.0)
    scale_per: NonEmpty[ScalePer] = (ScalePer.SUBLAYER,)
    key_widths: NonEmpty[Size | None] = (None, 4)
    norms: NonEmpty[OwnNorm] = (OwnNorm.NONE,)
    biases: NonEmpty[Literal["usual", "with", "without"]] = ("usual",)
    inits: NonEmpty[Init] = (Init.LORA,)
    reparameterizations: NonEmpty[Size | None] = (None,)
    products: NonEmpty[Size] = (4,)
    factors: NonEmpty[Size | None] = (1,)
    sharing: NonEmpty[Literal["shared", "own"]] = ("shared",)


@dataclass(frozen=True, slots=True, kw_only=True, config=_KEYS_ARE_KNOWN)
class Space:
    """Space of proposals. Dimensions with one value add nothing to the search.

    Attributes:
        attention_forms: Functional forms at the attention sublayers; empty leaves attention alone.
        ffn_forms: Functional forms at the FFN sublayers; empty leaves the FFN alone.
        gates: Composition functions, wherever they are legal.
        values: Other values of forms and gates: activations, fixed scales, norms, inits, …, each a list.
        layers: Kinds of layer choices, one for attention and one for the FFN: ``all``, a contiguous ``range``,
            groups of a ``spindle``, or a ``pattern`` of consecutive sixths, each on or off.
        sites: ``tied`` makes one choice for all kinds of attention; ``separate`` gives each kind its own, or none.
        edits_per_side: Number of edits of a side: one, or ``[1, 2]`` also two of different write or form, with a
            split of the side's budget between them. All that a form writes together, such as LoRA at q and v, is one.
        size: Lowest and highest share of the budget for proposals, searched on a logarithmic scale. Null
            is all of it, and 0.125 to 1 if a study also minimizes sizes (see ``search.objectives``) or searches
            ``methods``. Other published methods use all of it.
        rank: Least and greatest rank, or hidden width, of forms that have one, such as ``[1, 32]``, within the budget
            and in place of ``size``. A single number fixes it. Null is what a share of the budget buys. Published
            methods are resized within the bounds, or left out.
        methods: Published methods that alone are proposed, such as ``[lora_qv]``. Their learning rates, size and fixed
            scale (one of ``values.scales``) are searched, and nothing else; a point such as ``lora_qv:s=4`` fixes
            more. Empty is the whole space.
        max_extra_flops: Largest number of FLOPs per token that a configuration adds at inference; null is no limit.
            Edits that can be merged into the weights add none.
        mergeable: Whether to try only configurations that can be merged into the weights, published methods included.
        exportable: ``peft`` tries only configurations that one adapter of peft can express, published methods included;
            null tries any. An adapter has one kind of edit: LoRA if ``lowrank`` is among the forms, else the first kind
            of the forms (``dora``, ``vera``, ``diag``).
        learning_rates: Lowest and highest peak learning rate of a form, times the fixed scale of its gate and the
            number of summed forms. Forms left out keep their default, which is the higher the fewer
            ``training.steps`` are. ``head`` searches the rate of the task head, too; left out it is
            ``training.head_learning_rate``, at which published methods are tried first.
        lora_dropout: Dropouts of the input of low-rank maps (LoRA, DoRA, VeRA) among which one is chosen for each
            trial, such as ``[0, 0.1]``; empty is ``training.lora_dropout`` for all, as published methods have first.
    """

    attention_forms: FormNames = (SoftmaxMemory.name, Bottleneck.name, LowRank.name, Diagonal.name, Constant.name)
    ffn_forms: FormNames = (Bottleneck.name, LowRank.name, SoftmaxMemory.name, Diagonal.name, Constant.name)
    gates: GateNames = (*PLAIN_GATES, ConvexGate.name, InducerGate.name)
    values: FormValues = FormValues()
    layers: NonEmpty[Literal["all", "range", "spindle", "pattern"]] = ("all",)
    sites: Literal["tied", "separate"] = "tied"
    edits_per_side: EditNumbers = (1,)
    size: Annotated[PositiveRange, AfterValidator(_up_to_one)] | None = None
    rank: Annotated[RankBounds | None, BeforeValidator(_rank_bounds)] = None
    methods: Annotated[tuple[PublishedPoint, ...], PlainValidator(_read_methods)] = ()
    max_extra_flops: Annotated[Integer, Field(ge=0)] | None = None
    mergeable: bool = False
    exportable: Literal["peft"] | None = None
    learning_rates: dict[Annotated[str, BeforeValidator(_form_name), _among((*FORMS, "head"))], PositiveRange] = field(
        default_factory=dict
    )
    lora_dropout: Annotated[tuple[Annotated[Number, Field(ge=0, lt=1)], ...], Distinct, AfterValidator(_several)] = ()


@dataclass(frozen=True, slots=True, kw_only=True, config=_KEYS_ARE_KNOWN)
class SpaceOptions(Space):
    """Space of proposals with the published methods, and with values that no study file sets.

    Attributes:
        published: Published methods that are tried first: ``compared`` (those of the papers' comparison), ``all``
            except the later ones (``dora``, ``vera``, ``unipelt``), ``none``, or a list. A method is resized to the
            budget; a point such as ``lora_qv:s=4`` has fixed hyper-parameters. A point that fixes a size is used
            unchanged.
        published_scale: Fixed scale of the published methods that have one (He et al. 2022: 4 for generation, 2 for
            classification).
        near_duplicates: Whether structures that compute the same as another, or nearly the same, are included.
        attention_share: Lowest and highest share of the budget at attention, if both sublayers are edited.
        split: Lowest and highest share of a side's budget for the first of its two edits.
        learning_rates: Lowest and highest peak learning rate of a form; forms left out keep their default.
        head_learning_rates: Lowest and highest peak learning rate of the task head, which is then searched; null for
            ``training.head_learning_rate``. Published methods use that one first, if their rates are as expected.
        learning_rates_of: Quantity that the ranges bound: ``weights`` for the rate itself; ``output`` for the effect of
            a step on the output, the rate times the gate's fixed scale and the number of summed forms.

    Raises:
        SettingError: If a name is unknown, or a range or a list is empty.
    """

    published: Annotated[str | tuple[PublishedPoint, ...], PlainValidator(read_published)] = "compared"
    published_scale: Positive = 2.0
    near_duplicates: bool = False
    attention_share: Annotated[PositiveRange, AfterValidator(_below_one)] = (0.05, 0.95)
    split: Annotated[PositiveRange, AfterValidator(_below_one)] = (0.05, 0.95)
    learning_rates: Annotated[
        dict[Annotated[str, BeforeValidator(_form_name), _among(FORMS)], PositiveRange],
        AfterValidator(_with_defaults),
    ] = field(default_factory=dict)
    head_learning_rates: PositiveRange | None = None
    learning_rates_of: Literal["output", "weights"] = "output"

    @classmethod
    def of(cls, space: Space, **others: Any) -> Self:
        """Return the options of a space.

        Args:
            others: Options in place of those of the space.
        """
        own = {one.name: getattr(space, one.name) for one in fields(Space)}
        rates = {name: rates for name, rates in space.learning_rates.items() if name != "head"}
        rates_of_all = {"learning_rates": rates, "head_learning_rates": space.learning_rates.get("head")}
        return cls(**{**own, **rates_of_all, **others})

    @property
    def budget_fractions(self) -> tuple[float, float]:
        """Lowest and highest share of the budget for which a proposal is sized."""
        return (self.rank[0] / self.rank[1], 1.0) if self.rank else self.size or (1.0, 1.0)

    @property
    def peft_kind(self) -> PeftKind | None:
        """Kind of peft's adapters of an exportable study: LoRA, or the first kind of its forms; None without one."""
        kinds = [kind for name in (*self.attention_forms, *self.ffn_forms) if (kind := FORMS[name].peft) is not None]
        return PeftKind.LORA if PeftKind.LORA in kinds else next(iter(kinds), None)

    @property
    def published_points(self) -> tuple[PublishedPoint, ...]:
        """Published methods that are tried first: those of a space of methods, unless ``published`` is ``none``."""
        if self.methods and self.published != "none":
            return self.methods
        if not isinstance(self.published, str):
            return self.published
        groups = {"compared": COMPARED, "all": tuple(METHODS), "none": ()}
        return tuple(map(PublishedPoint, groups[self.published]))

    @property
    def gate_values(self) -> dict[str, Gate]:
        """Values of the dimension ``gate``; learned scales and inducers have several, fixed scales have one."""
        values = {"scale_per": self.values.scale_per, "key_widths": self.values.key_widths}
        return {gate.qualified_name: gate for name in self.gates for gate in GATES[name].variants(values)}

    @property
    def open_values(self) -> DimensionValues:
        """Values of the dimensions that points leave open: nonlinearities and fixed scales."""
        return {"activation": by_text(self.values.activations), "scale": by_text(self.values.scales)}

    @property
    def attributes(self) -> DimensionValues:
        """Values of a form's dimensions besides ports, heads, activation and gate."""
        return {
            "norm": by_text(self.values.norms),
            "bias": {text: BIASES[text] for text in self.values.biases},
            "init": by_text(self.values.inits),
            "reparameterization": by_text(self.values.reparameterizations),
            "products": by_text(self.values.products),
            "factors": by_text(self.values.factors, none="full"),
            "sharing": {text: text == "shared" for text in self.values.sharing},
        }

    def forms(self, part: str) -> tuple[str, ...]:
        """Return the functional forms of a part: those of ``ffn``, else attention's."""
        return self.ffn_forms if part == "ffn" else self.attention_forms

    def dimensions(self, part: str) -> DimensionValues:
        """Return the values of all dimensions at a part."""
        return {
            "form": {name: FORMS[name] for name in self.forms(part)},
            "activation": by_text(self.values.activations),
            "gate": self.gate_values,
            **self.attributes,
        }


def _in_one_line(make: Callable[..., None]) -> Callable[..., None]:
    """Wrap a constructor so that its errors are one line."""

    @wraps(make)
    def construct(self: SpaceOptions, **options: object) -> None:
        try:
            make(self, **options)
        except ValidationError as error:
            problems = (
                f"{'.'.join(map(str, one['loc']))}: {one['msg'].removeprefix('Value error, ')}"
                for one in error.errors()
            )
            raise SettingError(f"SpaceOptions {'; '.join(problems)}.") from None

    return construct


SpaceOptions.__init__ = _in_one_line(SpaceOptions.__init__)  # type: ignore[method-assign]
