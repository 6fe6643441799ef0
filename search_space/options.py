"""What a study searches, and the leaves of the tree: (side, form, write, read) with what may follow."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from search_space.backbone_shape import BackboneShape
from search_space.dimensions import Activation, Heads, Port, Site
from search_space.edit import Edit
from search_space.errors import InvalidEditError, SearchSpaceError
from search_space.form import FORMS, Bottleneck, Constant, Form, LowRank, SoftmaxMemory
from search_space.gate import GATES, Add, ConvexGate, FixedScale, Gate, LearnedScale
from search_space.published import COMPARED, published_method
from search_space.validity import check_on

__all__ = ["LEARNING_RATES", "Leaf", "SpaceOptions", "side_leaves"]

LEARNING_RATES: dict[str, tuple[float, float]] = {
    SoftmaxMemory.name: (3e-3, 5e-2),
    Bottleneck.name: (1e-3, 1e-2),
    LowRank.name: (1e-3, 2e-2),
    Constant.name: (1e-3, 1e-2),
}
"""Default search range of the peak learning rate per functional form."""

_FORM_NAMES = tuple(form.name for form in FORMS)
_GATE_NAMES = tuple(gate.name for gate in GATES)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceOptions:
    """What a study searches; everything by default.

    Attributes:
        attention_forms: Functional forms at attention; empty for none there.
        ffn_forms: Functional forms at the FFN; empty for none there.
        activations: Of bottlenecks.
        gates: Composition functions; the convex gate applies to prefixes only.
        scales: Fixed scales.
        attention_share: Range of the share of the budget that attention gets, within (0, 1).
        learning_rates: Range of the peak learning rate per form; forms left out keep their defaults.
        published: Published methods to compare with.
        published_scale: Fixed scale of published methods that have one (He et al. 2022: 4 for generation, 2 for
            classification).

    Raises:
        SearchSpaceError: If a name is unknown or a range is empty.
    """

    attention_forms: tuple[str, ...] = _FORM_NAMES
    ffn_forms: tuple[str, ...] = (Bottleneck.name, LowRank.name, SoftmaxMemory.name, Constant.name)
    activations: tuple[Activation, ...] = tuple(Activation)
    gates: tuple[str, ...] = (Add.name, FixedScale.name, LearnedScale.name, ConvexGate.name)
    scales: tuple[float, ...] = (2.0, 4.0)
    attention_share: tuple[float, float] = (0.05, 0.95)
    learning_rates: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    published: tuple[str, ...] = COMPARED
    published_scale: float = 2.0

    def __post_init__(self) -> None:
        """Check names and ranges, and fill in the default learning rates."""
        self._check_names()
        self._check_ranges()
        object.__setattr__(self, "learning_rates", LEARNING_RATES | dict(self.learning_rates))

    def _check_names(self) -> None:
        for kind, known, names in (
            ("form", _FORM_NAMES, (*self.attention_forms, *self.ffn_forms, *self.learning_rates)),
            ("gate", _GATE_NAMES, self.gates),
        ):
            for name in names:
                if name not in known:
                    raise SearchSpaceError(f"a {kind} must be one of {', '.join(known)}; got {name!r}.")
        for name in ("attention_forms", "ffn_forms", "activations", "gates", "scales"):
            values = getattr(self, name)
            if len(set(values)) < len(values):
                raise SearchSpaceError(f"{name} must not name anything twice; got {', '.join(map(str, values))}.")
        if not self.activations:
            raise SearchSpaceError("at least one activation must be allowed; got none.")
        if not {Add.name, FixedScale.name, LearnedScale.name} & set(self.gates):
            raise SearchSpaceError("at least one of the gates add, scale and scale_learned must be allowed; got none.")
        for name in self.published:
            published_method(name)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A form from a tensor to a tensor; several writes stand for one edit each, all of one width.

    Attributes:
        side: ``"attention"`` or ``"ffn"``.
        form: Name of the form.
        write: Port, or several joined by ``+``.
        read: Port; ``"none"``; for several writes what each reads, joined by ``+``.
    """

    side: str
    form: str
    write: str
    read: str

    def gates(self, allowed: tuple[str, ...]) -> tuple[str, ...]:
        """The composition functions that may follow, of those allowed."""
        if self.form == Constant.name:
            return (Add.name,)
        additive = tuple(gate for gate in allowed if gate != ConvexGate.name)
        is_prefix = (self.form, self.write, self.read) == (SoftmaxMemory.name, Port.HEAD, Port.Q)
        return (ConvexGate.name, *additive) if is_prefix and ConvexGate.name in allowed else additive

    def widest_gate(self, allowed: tuple[str, ...]) -> str:
        """A gate whose count is the largest of those allowed, for judging what fits."""
        return LearnedScale.name if LearnedScale.name in self.gates(allowed) else Add.name

    def edits(self, *, activation: Activation, gate: str, scale: float) -> tuple[Edit, ...]:
        """The edits of the leaf, every bottleneck at 1."""
        site = Site.ATTENTION if self.side == "attention" else Site.FFN
        form = self._form(activation)
        return tuple(
            Edit(
                site=site,
                write=Port(write),
                read=None if read == "none" else Port(read),
                form=form,
                gate=_gate(gate, scale),
            )
            for write, read in zip(self.write.split("+"), self.read.split("+"), strict=True)
        )

    def _form(self, activation: Activation) -> Form:
        at_heads = self.write == Port.HEAD
        heads = Heads.QUERY if at_heads else Heads.SINGLE
        match self.form:
            case SoftmaxMemory.name:
                return SoftmaxMemory(width=1, heads=Heads.KEY_VALUE if at_heads else Heads.SINGLE)
            case Bottleneck.name:
                # no bias at k, where it would move every logit of a query alike (V12), nor per head (He et al. 2022)
                has_bias = self.write not in (Port.HEAD, Port.K)
                return Bottleneck(width=1, activation=activation, heads=heads, bias=has_bias)
            case LowRank.name:
                return LowRank(width=1, heads=heads)
            case _:
                return Constant()


def _gate(name: str, scale: float) -> Gate:
    match name:
        case FixedScale.name:
            return FixedScale(value=scale)
        case LearnedScale.name:
            return LearnedScale()
        case ConvexGate.name:
            return ConvexGate()
        case _:
            return Add()


# Left out as near-duplicates: concat beside o (V9), sequential low-rank maps at q, k, v beside LoRA (V7), constants at
# k (V12), res_in and res_f beside the sublayer inputs (V20 on post-LN backbones).
_TABLE: dict[str, dict[str, dict[str, tuple[str, ...]]]] = {
    "attention": {
        SoftmaxMemory.name: {"head": ("q", "head"), "o": ("x_attn", "o")},
        Bottleneck.name: {
            "q": ("x_attn", "q"),
            "k": ("ctx", "k"),
            "v": ("ctx", "v"),
            "head": ("q", "x_attn", "head"),
            "o": ("x_attn", "q", "concat", "o"),
        },
        LowRank.name: {
            "q": ("x_attn",),
            "k": ("ctx",),
            "v": ("ctx",),
            "q+v": ("x_attn+ctx",),
            "k+v": ("ctx+ctx",),
            "q+k+v": ("x_attn+ctx+ctx",),
            "head": ("q", "x_attn", "head"),
            "o": ("x_attn", "concat", "o"),
            "q+k+v+o": ("x_attn+ctx+ctx+concat",),
        },
        Constant.name: {"q": ("none",), "v": ("none",), "o": ("none",), "q+v": ("none+none",)},
    },
    "ffn": {
        SoftmaxMemory.name: {"u": ("x_ffn",), "f": ("x_ffn", "m", "f")},
        Bottleneck.name: {"u": ("x_ffn", "u"), "f": ("x_ffn", "m", "f")},
        LowRank.name: {"u": ("x_ffn", "u"), "f": ("x_ffn", "m", "f"), "u+f": ("x_ffn+m",)},
        Constant.name: {"u": ("none",), "f": ("none",), "u+f": ("none+none",)},
    },
}


def side_leaves(side: str, forms: tuple[str, ...], shape: BackboneShape) -> tuple[Leaf, ...]:
    """The leaves of a side that are valid on a backbone, in the order of ``forms``."""
    leaves = []
    for form in forms:
        for write, reads in _TABLE[side][form].items():
            for read in reads:
                leaf = Leaf(side=side, form=form, write=write, read=read)
                try:
                    check_on(leaf.edits(activation=Activation.RELU, gate=Add.name, scale=1.0), shape)
                except InvalidEditError:
                    continue
                leaves.append(leaf)
    return tuple(leaves)
