"""What a study searches."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from search_space.dimensions import Activation, ScalePer
from search_space.errors import SearchSpaceError
from search_space.forms import (
    FORMS,
    Bottleneck,
    Constant,
    Diagonal,
    Init,
    LowRank,
    OwnNorm,
    SoftmaxMemory,
)
from search_space.gates import (
    GATES,
    ConvexGate,
    FixedScale,
    Gate,
    InducerGate,
)
from search_space.layers import LAYER_CHOICES, AllLayers
from search_space.published import COMPARED
from search_space.published.point import PublishedPoint
from search_space.space.product import BIASES, EVERYTHING, USUAL, Values, by_text, gates_by_text

LEARNING_RATES = {name: form.learning_rates for name, form in FORMS.items()}
"""Default search range of the peak learning rate per functional form."""

SEARCHED_FORMS: tuple[str, ...] = tuple(EVERYTHING["form"])
"""Functional forms of the per-sublayer product; those of prompts and of the whole model are published points only."""

SEARCHED_GATES: tuple[str, ...] = tuple(
    name for name, gate in GATES.items() if gate.outside is None and not gate.multiplies
)
"""Composition functions that can be chosen; a diagonal multiplies what it reads and a prompt is prepended anyway."""

SITES: tuple[str, ...] = ("tied", "separate")
PLAIN_GATES: tuple[str, ...] = tuple(name for name, gate in GATES.items() if gate.is_plain)
"""Composition functions that fit every form with two ends."""

LAYER_NAMES: tuple[str, ...] = tuple(choice.name for choice in LAYER_CHOICES)

_FORM_NAMES = tuple(FORMS)
_DEFAULT_FORMS = (SoftmaxMemory.name, Bottleneck.name, LowRank.name, Diagonal.name, Constant.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceOptions:
    """What a study searches. Dimensions with one value add nothing to the search.

    Attributes:
        attention_forms: Functional forms at attention; empty for none there.
        ffn_forms: Functional forms at the FFN; empty for none there.
        sites: ``tied``: one choice for all kinds of attention; ``separate``: every kind has its own edit, or none.
        layers: Kinds of layer choices (``all``, ``range``, ``spindle``), one for attention and one for the FFN.
        activations: Of bottlenecks.
        gates: Composition functions, wherever they are legal.
        scales: Fixed scales.
        scale_per: For what a learned scale has a number of its own.
        key_widths: Bottlenecks of an inducer's keys; None for the query as its own key.
        norms: Own LayerNorms of bottlenecks.
        biases: Of bottlenecks and low-rank maps: ``usual``, ``with`` or ``without``. Usually a bottleneck has them,
            but not at the heads and at k, and a low-rank map has none.
        inits: How bottlenecks start.
        reparameterizations: Hidden widths of MLPs that make tables while training; None for the tables themselves.
        products: Kronecker products of phm, where they divide the widths.
        factors: Rank of their factors; None for full matrices.
        sharing: Whether they are ``shared`` by all edits or each one's ``own``.
        near_duplicates: Whether what computes the same as something else in the space, or nearly, is in as well.
        attention_share: Range of the share of the budget that attention gets, within (0, 1).
        learning_rates: Range of the peak learning rate per form; forms left out keep their defaults.
        published: Published methods to compare with, each by its name or as a point with fixed hyper-parameters,
            such as ``lora_qv:r=8,s=2``.
        published_scale: Fixed scale of published methods that have one (He et al. 2022: 4 for generation, 2 for
            classification).

    Raises:
        SearchSpaceError: If a name is unknown or a range is empty.
    """

    attention_forms: tuple[str, ...] = _DEFAULT_FORMS
    ffn_forms: tuple[str, ...] = (Bottleneck.name, LowRank.name, SoftmaxMemory.name, Diagonal.name, Constant.name)
    sites: str = "tied"
    layers: tuple[str, ...] = (AllLayers.name,)
    activations: tuple[Activation, ...] = tuple(Activation)
    gates: tuple[str, ...] = (*PLAIN_GATES, ConvexGate.name, InducerGate.name)
    scales: tuple[float, ...] = (2.0, 4.0)
    scale_per: tuple[ScalePer, ...] = (ScalePer.SUBLAYER,)
    key_widths: tuple[int | None, ...] = (None, 4)
    norms: tuple[OwnNorm, ...] = (OwnNorm.NONE,)
    biases: tuple[str, ...] = (USUAL,)
    inits: tuple[Init, ...] = (Init.LORA,)
    reparameterizations: tuple[int | None, ...] = (None,)
    products: tuple[int, ...] = (4,)
    factors: tuple[int | None, ...] = (1,)
    sharing: tuple[str, ...] = ("shared",)
    near_duplicates: bool = False
    attention_share: tuple[float, float] = (0.05, 0.95)
    learning_rates: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    published: tuple[PublishedPoint, ...] = tuple(map(PublishedPoint, COMPARED))
    published_scale: float = 2.0

    def __post_init__(self) -> None:
        """Check names and ranges, read what is published, and fill in the default learning rates."""
        object.__setattr__(self, "published", tuple(map(PublishedPoint, self.published)))
        self._check_names()
        self._check_lists()
        self._check_ranges()
        object.__setattr__(self, "learning_rates", LEARNING_RATES | dict(self.learning_rates))

    def _check_names(self) -> None:
        for kind, known, names in (
            ("form", SEARCHED_FORMS, (*self.attention_forms, *self.ffn_forms)),
            ("form", _FORM_NAMES, tuple(self.learning_rates)),
            ("gate", SEARCHED_GATES, self.gates),
            ("choice of sites", SITES, (self.sites,)),
            ("choice of layers", LAYER_NAMES, self.layers),
            ("choice of biases", tuple(BIASES), self.biases),
            ("choice of sharing", tuple(EVERYTHING["sharing"]), self.sharing),
        ):
            for name in names:
                if name not in known:
                    raise SearchSpaceError(f"a {kind} must be one of {', '.join(known)}; got {name!r}.")

    def _check_lists(self) -> None:
        for name in ("attention_forms", "ffn_forms", "gates", "scales"):
            _check_distinct(name, getattr(self, name))
        for name, what in _NEEDED.items():
            _check_distinct(name, getattr(self, name))
            if not getattr(self, name):
                raise SearchSpaceError(f"at least one {what} must be allowed; got none.")
        if not set(PLAIN_GATES) & set(self.gates):
            raise SearchSpaceError("at least one of the gates add, scale and scale_learned must be allowed; got none.")
        for name, what in _SIZES.items():
            for size in getattr(self, name):
                is_whole = isinstance(size, int) and not isinstance(size, bool) and size >= 1
                if not (is_whole or (size is None and name != "products")):
                    raise SearchSpaceError(f"{what} must be a whole number of at least 1; got {size!r}.")

    def _check_ranges(self) -> None:
        low, high = self.attention_share
        if not 0 < low <= high < 1:
            raise SearchSpaceError(f"the share of attention must be a range within (0, 1); got {low} to {high}.")
        for form, (least, most) in self.learning_rates.items():
            if not 0 < least <= most or not math.isfinite(most):
                raise SearchSpaceError(f"learning rates of {form} must be a range above 0; got {least} to {most}.")
        if FixedScale.name in self.gates and not self.scales:
            raise SearchSpaceError("the gate scale needs at least one fixed scale; got none.")
        for scale in (*self.scales, self.published_scale):
            FixedScale(value=scale)

    @property
    def gate_values(self) -> dict[str, Gate]:
        """The values of the dimension ``gate``: a learned scale and an inducer come in several."""
        listed = {"scale_per": self.scale_per, "key_widths": self.key_widths}
        return gates_by_text([gate for name in self.gates for gate in GATES[name].each(listed)])

    @property
    def attributes(self) -> Values:
        """Values of what a form has beside its ports, heads, activation and gate."""
        return {
            "norm": by_text(self.norms),
            "bias": {text: BIASES[text] for text in self.biases},
            "init": by_text(self.inits),
            "reparameterization": by_text(self.reparameterizations),
            "products": by_text(self.products),
            "factors": by_text(self.factors, none="full"),
            "sharing": {text: EVERYTHING["sharing"][text] for text in self.sharing},
        }

    def forms(self, part: str) -> tuple[str, ...]:
        """The functional forms of a part: ``ffn``, or else attention's."""
        return self.ffn_forms if part == "ffn" else self.attention_forms

    def values(self, part: str) -> Values:
        """The values of the product that the options leave at a part."""
        return {
            "form": {name: EVERYTHING["form"][name] for name in self.forms(part)},
            "activation": by_text(self.activations),
            "gate": self.gate_values,
            **self.attributes,
        }


_NEEDED = {
    "activations": "activation",
    "layers": "choice of layers",
    "scale_per": "kind of learned scale",
    "key_widths": "bottleneck of an inducer's keys",
    "norms": "norm",
    "biases": "choice of biases",
    "inits": "init",
    "reparameterizations": "reparameterization",
    "products": "number of products",
    "factors": "rank of factors",
    "sharing": "choice of sharing",
}
_SIZES = {
    "key_widths": "the bottleneck of an inducer's keys",
    "reparameterizations": "the hidden width of a reparameterization",
    "products": "the number of products of phm",
    "factors": "the rank of phm's factors",
}


def _check_distinct(name: str, values: Sequence[object]) -> None:
    if len(set(values)) < len(values):
        raise SearchSpaceError(f"{name} must not name anything twice; got {', '.join(map(str, values))}.")
