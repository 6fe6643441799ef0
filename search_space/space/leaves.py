"""The leaves of the search tree: (side, form, write, read, heads) with what may follow, on a backbone.

Every legal one is a leaf, and some that write several tensors at once. Near-duplicates of other leaves are left out
unless they are asked for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Activation, Heads, Port, Positions, Site
from search_space.edit import Edit
from search_space.errors import InvalidEditError
from search_space.forms import Constant, Diagonal, Init, LowRank, OwnNorm, SoftmaxMemory
from search_space.gates import Add, ConvexGate, FixedScale, InducerGate, LearnedScale, Multiply, WeightedGate
from search_space.layers import AllLayers, Layers
from search_space.space.choices import EVERYTHING, NONE, USUAL, edit_of, form_dimensions, site_values
from search_space.validity import READS, canonical_read, check_on

USUAL_ATTRIBUTES: Mapping[str, str] = {
    "norm": OwnNorm.NONE.value,
    "bias": USUAL,
    "init": Init.LORA.value,
    "reparameterization": NONE,
    "products": "4",
    "factors": "1",
    "sharing": "shared",
}
"""What a form has unless something else is searched."""

PLAIN_GATES: tuple[str, ...] = (Add.name, FixedScale.name, LearnedScale.name)
"""Composition functions that fit every form with two ends."""

_TABLE_GATES = (ConvexGate.name, WeightedGate.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A form from a tensor to a tensor; several writes stand for one edit each, all of one width.

    Attributes:
        side: ``"attention"`` or ``"ffn"``, or one kind of attention.
        form: Name of the form.
        write: Port, or several joined by ``+``.
        read: Port; ``"none"``; for several writes what each reads, joined by ``+``.
        heads: In how many blocks the form works; None for the usual.
    """

    side: str
    form: str
    write: str
    read: str
    heads: Heads | None = None

    def __post_init__(self) -> None:
        """Fill in the usual heads: a table for each key/value head, another form for each query head, else one."""
        if self.heads is None:
            multiple = Heads.KEY_VALUE if self.form == SoftmaxMemory.name else Heads.QUERY
            object.__setattr__(self, "heads", multiple if Port.HEAD in (self.write, self.read) else Heads.SINGLE)

    @property
    def site(self) -> Site:
        """The sublayers it is for."""
        return Site.ATTENTION if self.side == "attention" else Site(self.side)

    def gates(self, allowed: Sequence[str], attributes: Mapping[str, str] | None = None) -> tuple[str, ...]:
        """The composition functions that may follow, of those allowed.

        Constants are added and diagonals multiply what they read whatever is allowed, for there is no other way.

        Args:
            allowed: Values of the dimension ``gate``.
            attributes: What the form has beside the usual.
        """
        if self._own_gate is not None:
            return (self._own_gate,)
        tables = [gate for gate in allowed if gate in _TABLE_GATES]
        inducers = [gate for gate in allowed if gate.partition(":")[0].startswith(InducerGate.name)]
        others = [gate for gate in allowed if gate not in tables and gate not in inducers]
        ordered = (*tables, *others, *inducers)
        return tuple(gate for gate in ordered if self._is_legal(gate, attributes))

    def _is_legal(self, gate: str, attributes: Mapping[str, str] | None) -> bool:
        try:
            self.edits(gate=gate, attributes=attributes)
        except InvalidEditError:
            return False
        return True

    def widest_gate(self, allowed: Sequence[str]) -> str:
        """The plain gate whose count is the largest of those allowed, for judging what fits."""
        own = self._own_gate
        if own is not None:
            return own
        return LearnedScale.name if LearnedScale.name in allowed else Add.name

    @property
    def _own_gate(self) -> str | None:
        """The gate of forms that have no other."""
        if self.form == Constant.name:
            return Add.name
        return Multiply.name if self.form == Diagonal.name and self.write == self.read else None

    def edits(
        self,
        *,
        gate: str,
        activation: Activation = Activation.RELU,
        scale: float = 1.0,
        attributes: Mapping[str, str] | None = None,
        layers: Layers = AllLayers(),  # noqa: B008 - frozen
    ) -> tuple[Edit, ...]:
        """The edits of the leaf, every bottleneck at its smallest.

        Args:
            gate: Value of the dimension ``gate``.
            activation: Of bottlenecks.
            scale: Of the gate ``scale``.
            attributes: What the form has beside the usual.
            layers: At which blocks.

        Raises:
            InvalidEditError: If they are not legal.
        """
        given = {**USUAL_ATTRIBUTES, **(attributes or {}), "heads": str(self.heads), "activation": activation.value}
        known = {name: given[name] for name in form_dimensions(self.form)}
        return tuple(
            edit_of(
                self.site,
                {"form": self.form, "write": write, "read": read, "gate": gate, **known},
                scale=scale,
                layers=layers,
            )
            for write, read in zip(self.write.split("+"), self.read.split("+"), strict=True)
        )


_TOGETHER: dict[str, dict[str, tuple[tuple[str, str], ...]]] = {
    "attention": {
        LowRank.name: (
            ("q+v", "x_attn+ctx"),
            ("k+v", "ctx+ctx"),
            ("q+k+v", "x_attn+ctx+ctx"),
            ("q+k+v+o", "x_attn+ctx+ctx+concat"),
        ),
        Constant.name: (("q+v", "none+none"),),
        Diagonal.name: (("k+v", "k+v"),),
    },
    "ffn": {
        LowRank.name: (("u+f", "x_ffn+m"), ("g+u+f", "x_ffn+x_ffn+m")),
        Constant.name: (("u+f", "none+none"),),
    },
}
"""Tensors that are written together, and what each edit reads."""


def side_leaves(
    side: str, forms: Sequence[str], shape: BackboneShape, *, near_duplicates: bool = False
) -> tuple[Leaf, ...]:
    """The leaves of a side that are legal on a backbone, in the order of ``forms``.

    Args:
        side: ``"attention"`` or ``"ffn"``, or one kind of attention.
        forms: Names of forms; those of prompts and of the whole model have no leaves.
        shape: The backbone.
        near_duplicates: Whether those are in that compute what another leaf can, or nearly: linear maps of q, k, v
            beside LoRA (V7), concat beside o (V9), constants that do nothing or that another absorbs (V12),
            diagonals that agree (V13), the residual stream beside the sublayer's input on post-LN backbones (V20),
            and both kinds of heads where there are as many.
    """
    leaves = []
    for form in (form for form in forms if form in EVERYTHING["form"]):
        for leaf in (*_single(side, form, shape), *_together(side, form)):
            if _is_legal(leaf, shape) and (near_duplicates or not _is_near_duplicate(leaf, shape)):
                leaves.append(leaf)
    return tuple(leaves)


def _single(side: str, form: str, shape: BackboneShape) -> list[Leaf]:
    site = Leaf(side=side, form=form, write="", read="").site
    leaves = []
    for write in site_values(site)["write"]:
        reads = (NONE,) if form == Constant.name else READS[Port(write)]
        for read in reads:
            for heads in _heads(form, write):
                leaves.append(Leaf(side=side, form=form, write=str(write), read=str(read), heads=heads))
    return leaves


def _heads(form: str, write: str) -> tuple[Heads, ...]:
    """The kinds of heads in the order of their use; prefixes have a table for every key/value head."""
    if "heads" not in form_dimensions(form):
        return (Heads.SINGLE,)
    if write == Port.HEAD and form == SoftmaxMemory.name:
        return (Heads.KEY_VALUE, Heads.QUERY)
    return (Heads.SINGLE, Heads.QUERY, Heads.KEY_VALUE)


def _together(side: str, form: str) -> list[Leaf]:
    known = _TOGETHER["ffn" if side == "ffn" else "attention"].get(form, ())
    return [Leaf(side=side, form=form, write=write, read=read) for write, read in known]


def _is_legal(leaf: Leaf, shape: BackboneShape) -> bool:
    for gate in leaf.gates((Add.name,)):
        try:
            check_on(leaf.edits(gate=gate), shape)
        except InvalidEditError:
            return False
        return True
    return False


def _is_near_duplicate(leaf: Leaf, shape: BackboneShape) -> bool:
    is_port = leaf.read in tuple(Port)
    if is_port and canonical_read(Port(leaf.read), shape) != leaf.read:  # V20
        return True
    has_as_many = shape.query_heads == shape.key_value_heads
    if leaf.write == Port.HEAD and has_as_many:
        kept = Heads.KEY_VALUE if leaf.form == SoftmaxMemory.name else Heads.QUERY
        if leaf.heads is not kept:
            return True
    if leaf.form == LowRank.name and leaf.write in ("q", "k", "v"):  # V7
        return leaf.read == leaf.write
    is_rotary = shape.positions is Positions.ROTARY
    if leaf.form == Constant.name:  # V12
        return leaf.write == Port.NORM or (leaf.write == Port.K and not is_rotary)
    if leaf.form == Diagonal.name:  # V13: those at q and at v are kept
        at_k = leaf.write == leaf.read == Port.K and not is_rotary
        return at_k or (leaf.write == leaf.read == Port.CONCAT and has_as_many)
    return leaf.write == Port.CONCAT  # V9
