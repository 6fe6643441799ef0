"""Product of an edit's dimensions: values by their texts, and the legal combinations.

Texts appear in study files and in Optuna's categories; edits are built from the values. A *point* is a legal element
of the product: edits of one width, and the texts of the decisions that lead to them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any

from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Heads, Port, Site
from search_space.edit import Edit
from search_space.edit_protocol import WriteReadPairs
from search_space.errors import InvalidEditError
from search_space.forms import Form, SizedForm
from search_space.gates import FixedScale
from search_space.layers import AllLayers, Layers
from search_space.rules import writable_ports
from search_space.validity import check_on

DimensionValues = Mapping[str, Mapping[str, Any]]
"""Values of some dimensions, each by its text."""

DecisionPath = tuple[tuple[str, str], ...]
"""Pairs of dimension and text, in the order of the decisions."""

NONE, USUAL = "none", "usual"

_FIELDS = {"products": "n", "factors": "factor_rank", "sharing": "shared"}
_PORT_RULES = ("site", "read", "V10")
"""Rules about ports and heads, which all elements of a family break together."""


def by_text(values: Sequence[Any], none: str = NONE) -> dict[str, Any]:
    """Return values by their texts.

    Args:
        values: Names or numbers.
        none: Text for None.
    """
    return {none if value is None else str(value): value for value in values}


BIASES: Mapping[str, bool | None] = {USUAL: None, "with": True, "without": False}
"""Values of the dimension ``bias``; ``usual`` gives bottlenecks biases except at the heads and k."""

_ATTENTION_INPUTS: tuple[Port, ...] = (Port.RES_IN, Port.X_ATTN, Port.CTX)
_FFN_INPUTS: tuple[Port, ...] = (Port.RES_F, Port.X_FFN)


def readable(site: Site) -> tuple[Port | None, ...]:
    """Return the tensors of a site's sublayers that can be read, and None."""
    inputs = _ATTENTION_INPUTS if site.is_attention else _FFN_INPUTS if site is Site.FFN else ()
    return (None, *inputs, *writable_ports(site))


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Edits of one part of a model that belong together, and the decisions that lead to them.

    Attributes:
        edits: One edit for each tensor written, with the smallest bottlenecks, at all layers. Activation and scale are
            the defaults unless the path contains them.
        path: Decisions.
    """

    edits: tuple[Edit, ...]
    path: DecisionPath

    @property
    def is_sized(self) -> bool:
        """Whether there is a bottleneck to size."""
        return any(edit.sized_form is not None for edit in self.edits)

    def is_open(self, dimension: str) -> bool:
        """Return whether the form has an ``activation`` to choose, or the gate a fixed ``scale``."""
        if dimension == "activation":
            return any(edit.form.activation is not None for edit in self.edits)
        return any(isinstance(edit.gate, FixedScale) for edit in self.edits)

    def with_value(self, dimension: str, value: Any) -> "Point":
        """Return the point with a nonlinearity or a fixed scale; itself if it has none to choose."""
        if not self.is_open(dimension):
            return self
        if dimension == "activation":
            edits = tuple(replace(edit, form=replace(edit.form, activation=value)) for edit in self.edits)
        else:
            edits = tuple(replace(edit, gate=FixedScale(value=value)) for edit in self.edits)
        return Point(edits=edits, path=(*self.path, (dimension, str(value))))

    def at_layers(self, layers: Layers) -> tuple[Edit, ...]:
        """Return its edits at some layers."""
        if isinstance(layers, AllLayers):
            return self.edits
        return tuple(replace(edit, layers=layers) for edit in self.edits)


Structure = tuple[Point, ...]
"""One point, or two points of one part that act together.

The first one gets the split of the side's budget, the second one the rest. The side's learning rate is that of the
first one's form.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StructureFamily:
    """Elements of the product with one form, the same ports and the same heads.

    Attributes:
        site: Site of the edits.
        ports: Ports that are written and read.
        form: Class of the form.
        heads: Number of blocks.
        values: Values of the form's other dimensions and of the gate.
    """

    site: Site
    ports: WriteReadPairs
    form: type[Form]
    heads: Heads
    values: DimensionValues

    def __len__(self) -> int:
        """Return the number of elements, legal or not."""
        return prod(map(len, self.values.values()))

    def with_one_activation(self) -> "StructureFamily":
        """Return the family without its choice of an activation, as no rule depends on activations."""
        return replace(self, values={name: texts for name, texts in self.values.items() if name != "activation"})

    def points(self, shape: BackboneShape) -> Iterator[Point]:
        """Yield the legal elements on a backbone."""
        for path, chosen in self.elements():
            try:
                yield Point(edits=self.edits(chosen, shape), path=path)
            except InvalidEditError as error:
                if error.rule in _PORT_RULES:
                    return

    def elements(self) -> Iterator[tuple[DecisionPath, Sequence[Any]]]:
        """Yield the path of every element, legal or not, and its value of each dimension."""
        writes = "+".join(write for write, _ in self.ports)
        reads = "+".join(read or NONE for _, read in self.ports)
        start = (("form", self.form.name), ("write", writes), ("read", reads), ("heads", self.heads.value))
        for chosen in product(*(values.items() for values in self.values.values())):
            path = (*start, *((name, text) for name, (text, _) in zip(self.values, chosen, strict=True)))
            yield path, [value for _, value in chosen]

    def edits(self, chosen: Sequence[Any], shape: BackboneShape) -> tuple[Edit, ...]:
        """Build the edits of an element.

        Args:
            chosen: One value of each dimension.
            shape: Shape of the backbone.

        Raises:
            InvalidEditError: If they are not legal on the backbone.
        """
        fields = {_FIELDS.get(name, name): value for name, value in zip(self.values, chosen, strict=True)}
        gate = fields.pop("gate")
        edits = tuple(
            Edit(site=self.site, write=write, read=read, form=self._form(write, fields), gate=gate)
            for write, read in self.ports
        )
        check_on(edits, shape)
        return edits

    def _form(self, write: Port, fields: Mapping[str, Any]) -> Form:
        chosen = dict(fields)
        if self.form.per_head is not None:
            chosen["heads"] = self.heads
        if chosen.get("bias", False) is None:
            chosen["bias"] = self.form.has_usual_bias(write)
        if issubclass(self.form, SizedForm):
            chosen["width"] = chosen.get("n", 1)
        return self.form(**chosen)


def heads_of(form: type[Form]) -> tuple[Heads, ...]:
    """Return the numbers of blocks that a form can have."""
    return tuple(Heads) if form.per_head is not None else (Heads.SINGLE,)


def form_values(form: type[Form], values: DimensionValues) -> DimensionValues:
    """Return the values of a form's dimensions and of the gate."""
    return {name: values[name] for name in (*form.dimensions, "gate")}


def families(site: Site, values: DimensionValues) -> Iterator[StructureFamily]:
    """Yield the whole product at a site, from the values of all dimensions but ports and heads."""
    for form in values["form"].values():
        open_values = form_values(form, values)
        for write, read, heads in product(writable_ports(site), readable(site), heads_of(form)):
            yield StructureFamily(site=site, ports=((write, read),), form=form, heads=heads, values=open_values)
