"""The dimensions of an edit as texts, such as a study file has, and the edits that they make.

``:`` sets a number: ``inducer:4`` is the inducer gate whose keys have a bottleneck of 4.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from search_space.dimensions import Activation, Heads, Port, ScalePer, Site
from search_space.edit import Edit
from search_space.forms import Bottleneck, Constant, Diagonal, Form, Init, LowRank, OwnNorm, Phm, SoftmaxMemory
from search_space.gates import (
    Add,
    ConvexGate,
    ConvexInducerGate,
    FixedScale,
    Gate,
    InducerGate,
    LearnedScale,
    Multiply,
    Prepend,
    SigmoidGate,
    TanhGate,
    WeightedGate,
)
from search_space.layers import AllLayers, Layers

Values = Mapping[str, Sequence[str]]

NONE, WITH, WITHOUT, USUAL = "none", "with", "without", "usual"

_FORM_DIMENSIONS: dict[str, tuple[str, ...]] = {
    SoftmaxMemory.name: ("heads", "reparameterization"),
    Bottleneck.name: ("heads", "activation", "norm", "bias", "init", "reparameterization"),
    LowRank.name: ("heads", "bias"),
    Phm.name: ("activation", "bias", "products", "factors", "sharing"),
    Diagonal.name: (),
    Constant.name: (),
}
"""What each form of the per-sublayer product leaves open beside its bottleneck."""

DIMENSIONS: tuple[str, ...] = (
    "form",
    "write",
    "read",
    "heads",
    "activation",
    "norm",
    "bias",
    "init",
    "reparameterization",
    "products",
    "factors",
    "sharing",
    "gate",
)

_ATTENTION_INPUTS: tuple[Port, ...] = (Port.RES_IN, Port.X_ATTN, Port.CTX)
_ATTENTION: tuple[Port, ...] = (Port.Q, Port.K, Port.V, Port.HEAD, Port.CONCAT, Port.O)
_FFN_INPUTS: tuple[Port, ...] = (Port.RES_F, Port.X_FFN)
_FFN: tuple[Port, ...] = (Port.G, Port.U, Port.M, Port.F, Port.SUM)

EVERYTHING: Values = {
    "form": tuple(_FORM_DIMENSIONS),
    "heads": tuple(heads.value for heads in Heads),
    "activation": tuple(activation.value for activation in Activation),
    "norm": tuple(norm.value for norm in OwnNorm),
    "bias": (WITH, WITHOUT),
    "init": tuple(init.value for init in Init),
    "reparameterization": (NONE, "5"),
    "products": ("4",),
    "factors": ("1", "full"),
    "sharing": ("shared", "own"),
    "gate": (
        Add.name,
        FixedScale.name,
        LearnedScale.name,
        *(f"{LearnedScale.name}:{per}" for per in (ScalePer.CHANNEL, ScalePer.HEAD)),
        TanhGate.name,
        SigmoidGate.name,
        ConvexGate.name,
        WeightedGate.name,
        InducerGate.name,
        f"{InducerGate.name}:2",
        ConvexInducerGate.name,
        f"{ConvexInducerGate.name}:2",
        Multiply.name,
    ),
}
"""Values of all dimensions but the ports; sizes that are not solved by a budget have small ones."""


def form_dimensions(form: str) -> tuple[str, ...]:
    """The dimensions that a form has beside form, write, read and gate."""
    return _FORM_DIMENSIONS[form]


def site_values(site: Site, values: Values | None = None) -> dict[str, Sequence[str]]:
    """Values of all dimensions at a site: the tensors of its sublayers are what can be written and read."""
    if site.is_attention:
        inputs, ports = _ATTENTION_INPUTS, _ATTENTION
    elif site is Site.FFN:
        inputs, ports = _FFN_INPUTS, _FFN
    else:
        inputs, ports = (), ()
    places: dict[str, Sequence[str]] = {
        "write": tuple(port.value for port in (*ports, Port.NORM)),
        "read": (NONE, *(port.value for port in (*inputs, *ports, Port.NORM))),
    }
    return {**EVERYTHING, **places, **(values or {})}


def gate_of(text: str, scale: float = 2.0) -> Gate:
    """The gate of a value of the dimension ``gate``.

    Args:
        text: Such as ``add``, ``scale:4``, ``scale_learned:channel`` or ``inducer:4``.
        scale: Of the gate ``scale`` without a number.
    """
    name, _, detail = text.partition(":")
    match name:
        case FixedScale.name:
            return FixedScale(value=float(detail) if detail else scale)
        case LearnedScale.name:
            return LearnedScale(per=ScalePer(detail or ScalePer.SUBLAYER))
        case InducerGate.name:
            return InducerGate(key_width=int(detail) if detail else None)
        case ConvexInducerGate.name:
            return ConvexInducerGate(key_width=int(detail) if detail else None)
        case _:
            return _PLAIN_GATES[name]


_PLAIN_GATES: dict[str, Gate] = {
    gate.name: gate for gate in (Add(), TanhGate(), SigmoidGate(), ConvexGate(), WeightedGate(), Multiply(), Prepend())
}


def edit_of(
    site: Site,
    choices: Mapping[str, str],
    *,
    width: int = 1,
    scale: float = 2.0,
    layers: Layers = AllLayers(),  # noqa: B008 - frozen
) -> Edit:
    """The edit of a combination.

    Args:
        site: Where it acts.
        choices: Value of every dimension that the form has.
        width: Of its bottleneck, in steps of the form.
        scale: Of the gate ``scale``.
        layers: At which blocks.

    Raises:
        InvalidEditError: If it breaks a rule that needs no backbone.
    """
    return Edit(
        site=site,
        write=Port(choices["write"]),
        read=None if choices["read"] == NONE else Port(choices["read"]),
        form=_form_of(choices, width),
        gate=gate_of(choices["gate"], scale),
        layers=layers,
    )


def _form_of(choices: Mapping[str, str], width: int) -> Form:
    given: dict[str, Any] = {}
    for name, read in _READERS.items():
        if name in choices:
            given[name] = read(choices[name])
    if "bias" in choices:
        given["bias"] = _has_bias(choices)
    match choices["form"]:
        case SoftmaxMemory.name:
            return SoftmaxMemory(width=width, **given)
        case Bottleneck.name:
            return Bottleneck(width=width, **given)
        case LowRank.name:
            return LowRank(width=width, **given)
        case Phm.name:
            n, rank = int(choices["products"]), choices["factors"]
            factors: dict[str, Any] = {
                "factor_rank": None if rank == "full" else int(rank),
                "shared": choices["sharing"] == "shared",
            }
            return Phm(width=width * n, n=n, **factors, **given)
        case Diagonal.name:
            return Diagonal()
        case _:
            return Constant()


_READERS: dict[str, Any] = {
    "heads": Heads,
    "activation": Activation,
    "norm": OwnNorm,
    "init": Init,
    "reparameterization": lambda text: None if text == NONE else int(text),
}


def _has_bias(choices: Mapping[str, str]) -> bool:
    if choices["bias"] != USUAL:
        return choices["bias"] == WITH
    # not at k, where it would move every logit of a query alike (V12), nor at the heads (He et al. 2022)
    return choices["form"] != LowRank.name and choices["write"] not in (Port.HEAD, Port.K)
