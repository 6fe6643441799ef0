"""The product of the dimensions of an edit: their values by the texts that name them, and which are legal together.

Texts are what a study file and Optuna's categories have; everything is built of the values. A *point* is a legal
element of the product: edits of one width, and the texts of the decisions that led to them.
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
"""Text of every decision by its dimension, in their order."""

NONE, USUAL = "none", "usual"

_FIELDS = {"products": "n", "factors": "factor_rank", "sharing": "shared"}
_RULES_OF_PLACES = ("site", "read", "V10")
"""Rules about ports and heads: what breaks one of them, all of its family breaks."""


def by_text(values: Sequence[Any], none: str = NONE) -> dict[str, Any]:
    """Values by their texts.

    Args:
        values: Names or numbers.
        none: What None is called.
    """
    return {none if value is None else str(value): value for value in values}


BIASES: Mapping[str, bool | None] = {USUAL: None, "with": True, "without": False}
"""Usually a bottleneck has biases, but not at the heads and at k, and a low-rank map has none."""

_ATTENTION_INPUTS: tuple[Port, ...] = (Port.RES_IN, Port.X_ATTN, Port.CTX)
_FFN_INPUTS: tuple[Port, ...] = (Port.RES_F, Port.X_FFN)


def readable(site: Site) -> tuple[Port | None, ...]:
    """The tensors of a site's sublayers that can be read, and nothing."""
    inputs = _ATTENTION_INPUTS if site.is_attention else _FFN_INPUTS if site is Site.FFN else ()
    return (None, *inputs, *writable_ports(site))


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Edits of one part of a model that go together, and the decisions that lead to them.

    Attributes:
        edits: One for each tensor that is written, every bottleneck at its smallest, at all layers. Their activation
            and scale are the usual ones unless the path has them.
        path: Of decisions.
    """

    edits: tuple[Edit, ...]
    path: DecisionPath

    @property
    def is_sized(self) -> bool:
        """Whether there is a bottleneck to size."""
        return any(edit.sized_form is not None for edit in self.edits)

    def is_open(self, dimension: str) -> bool:
        """Whether its form has a nonlinearity to choose (``activation``), or its gate a number (``scale``)."""
        if dimension == "activation":
            return any(edit.form.activation is not None for edit in self.edits)
        return any(isinstance(edit.gate, FixedScale) for edit in self.edits)

    def with_value(self, dimension: str, value: Any) -> "Point":
        """The point with a nonlinearity or a fixed scale; itself if it has none to choose."""
        if not self.is_open(dimension):
            return self
        if dimension == "activation":
            edits = tuple(replace(edit, form=replace(edit.form, activation=value)) for edit in self.edits)
        else:
            edits = tuple(replace(edit, gate=FixedScale(value=value)) for edit in self.edits)
        return Point(edits=edits, path=(*self.path, (dimension, str(value))))

    def at_layers(self, layers: Layers) -> tuple[Edit, ...]:
        """Its edits at some layers."""
        if isinstance(layers, AllLayers):
            return self.edits
        return tuple(replace(edit, layers=layers) for edit in self.edits)


Structure = tuple[Point, ...]
"""One point, or two of one part that act together: the first gets the split of the side's budget, the second the rest,
and the learning rate of the first one's form is the side's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StructureFamily:
    """The elements of the product with one form from and to the same tensors, in the same number of blocks.

    Attributes:
        site: Which sublayers.
        place: What is written and read.
        form: Which form.
        heads: In how many blocks it works.
        values: Those of what the form leaves open beside, and those of the gate.
    """

    site: Site
    place: WriteReadPairs
    form: type[Form]
    heads: Heads
    values: DimensionValues

    def __len__(self) -> int:
        """How many elements, legal or not."""
        return prod(map(len, self.values.values()))

    def with_one_activation(self) -> "StructureFamily":
        """The family without its choice of an activation, as no rule is about activations."""
        return replace(self, values={name: some for name, some in self.values.items() if name != "activation"})

    def points(self, shape: BackboneShape) -> Iterator[Point]:
        """The legal elements on a backbone."""
        for path, chosen in self.elements():
            try:
                yield Point(edits=self.edits(chosen, shape), path=path)
            except InvalidEditError as error:
                if error.rule in _RULES_OF_PLACES:
                    return

    def elements(self) -> Iterator[tuple[DecisionPath, Sequence[Any]]]:
        """Path of every element, legal or not, and what it has of each of the values."""
        writes = "+".join(write for write, _ in self.place)
        reads = "+".join(read or NONE for _, read in self.place)
        start = (("form", self.form.name), ("write", writes), ("read", reads), ("heads", self.heads.value))
        for chosen in product(*(values.items() for values in self.values.values())):
            path = (*start, *((name, text) for name, (text, _) in zip(self.values, chosen, strict=True)))
            yield path, [value for _, value in chosen]

    def edits(self, chosen: Sequence[Any], shape: BackboneShape) -> tuple[Edit, ...]:
        """The edits of an element.

        Args:
            chosen: One of each of the values.
            shape: The backbone.

        Raises:
            InvalidEditError: If they are not legal on the backbone.
        """
        given = {_FIELDS.get(name, name): value for name, value in zip(self.values, chosen, strict=True)}
        gate = given.pop("gate")
        edits = tuple(
            Edit(site=self.site, write=write, read=read, form=self._form(write, given), gate=gate)
            for write, read in self.place
        )
        check_on(edits, shape)
        return edits

    def _form(self, write: Port, given: Mapping[str, Any]) -> Form:
        chosen = dict(given)
        if self.form.per_head is not None:
            chosen["heads"] = self.heads
        if chosen.get("bias", False) is None:
            chosen["bias"] = self.form.has_usual_bias(write)
        if issubclass(self.form, SizedForm):
            chosen["width"] = chosen.get("n", 1)
        return self.form(**chosen)


def heads_of(form: type[Form]) -> tuple[Heads, ...]:
    """In how many blocks a form can work."""
    return tuple(Heads) if form.per_head is not None else (Heads.SINGLE,)


def form_values(form: type[Form], values: DimensionValues) -> DimensionValues:
    """Of some values those of what a form leaves open, and those of the gate."""
    return {name: values[name] for name in (*form.dimensions, "gate")}


def families(site: Site, values: DimensionValues) -> Iterator[StructureFamily]:
    """The whole product at a site, of the values of all dimensions but ports and heads."""
    for form in values["form"].values():
        open_values = form_values(form, values)
        for write, read, heads in product(writable_ports(site), readable(site), heads_of(form)):
            yield StructureFamily(site=site, place=((write, read),), form=form, heads=heads, values=open_values)
