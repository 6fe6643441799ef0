"""The search tree of one part of a model: which values may follow which, and under what names they are asked for.

A *point* is a path through the tree: a leaf with the attributes of its form and a gate. Activations and fixed scales
go with any point, so they are not in the tree.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product

from search_space.backbones.shape import BackboneShape
from search_space.counting.counts import affine_count, places, shared_count
from search_space.dimensions import Activation
from search_space.edit import Edit
from search_space.forms import Bottleneck, Phm
from search_space.gates import ConvexGate, ConvexInducerGate, FixedScale, InducerGate, WeightedGate
from search_space.layers import AllLayers, Layers
from search_space.space.choices import form_dimensions
from search_space.space.leaves import PLAIN_GATES, Leaf, side_leaves
from search_space.space.options import SpaceOptions
from search_space.validity import largest_width

_PORT_DIMENSIONS = ("form", "write", "read", "heads")
_ATTRIBUTES = ("norm", "bias", "init", "reparameterization", "products", "factors", "sharing")


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A leaf with all that is chosen for it, but the activation, the scale and the layers.

    Attributes:
        leaf: What is written, and how.
        attributes: What its form has beside, by dimension.
        gate: Value of the dimension ``gate``.
    """

    leaf: Leaf
    attributes: tuple[tuple[str, str], ...]
    gate: str

    @property
    def path(self) -> tuple[tuple[str, str], ...]:
        """The decisions that lead to it, in their order."""
        leaf = self.leaf
        ports = (("form", leaf.form), ("write", leaf.write), ("read", leaf.read), ("heads", str(leaf.heads)))
        return (*ports, *self.attributes, ("gate", self.gate))

    @property
    def has_activation(self) -> bool:
        """Whether its form has a nonlinearity to choose."""
        return self.leaf.form in (Bottleneck.name, Phm.name)

    @property
    def has_scale(self) -> bool:
        """Whether its gate has a scale to choose."""
        return self.gate == FixedScale.name

    def edits(
        self,
        *,
        activation: Activation = Activation.RELU,
        scale: float = 2.0,
        layers: Layers = AllLayers(),  # noqa: B008 - frozen
    ) -> tuple[Edit, ...]:
        """Its edits, every bottleneck at its smallest."""
        return self.leaf.edits(
            gate=self.gate, activation=activation, scale=scale, attributes=dict(self.attributes), layers=layers
        )


def points_of(side: str, shape: BackboneShape, options: SpaceOptions) -> tuple[Point, ...]:
    """The points of a side that are legal on a backbone, whatever the budget."""
    points = []
    leaves = side_leaves(side, options.forms(side), shape, near_duplicates=options.near_duplicates)
    for leaf in leaves:
        names = [name for name in _ATTRIBUTES if name in form_dimensions(leaf.form)]
        for drawn in product(*(options.attributes[name] for name in names)):
            attributes = tuple(zip(names, drawn, strict=True))
            for gate in leaf.gates(options.gate_values, dict(attributes)):
                points.append(Point(leaf=leaf, attributes=attributes, gate=gate))
    return tuple(points)


def least_cost(point: Point, shape: BackboneShape, options: SpaceOptions, step: int = 1) -> int | None:
    """Fewest stored parameters of a point; None if its widths cannot be ``step``.

    The plain gates of a form are judged by the widest of them, so that they are all there or none.

    Args:
        point: A legal one.
        shape: The backbone.
        options: What is searched.
        step: Smallest width that all edits beside it can have, too.
    """
    gate = point.leaf.widest_gate(options.gate_values) if point.gate in PLAIN_GATES else point.gate
    edits = point.leaf.edits(gate=gate, attributes=dict(point.attributes))
    cost = shared_count(edits)
    for edit in edits:
        width = 0 if edit.sized_form is None else math.lcm(step, edit.sized_form.width_step)
        bound = largest_width(edit, shape)
        if bound is not None and bound < width:
            return None
        each = affine_count(edit, shape)
        cost += places(edit, shape) * (each.intercept + each.slope * width)
    return cost


@dataclass(slots=True)
class _Node:
    """A decision: its dimension, what follows each of its choices, and the name it is asked for by."""

    dimension: str
    children: dict[str, "_Node | Point"] = field(default_factory=dict)
    name: str = ""

    @property
    def choices(self) -> tuple[str, ...]:
        return tuple(self.children)


class Tree:
    """What may be asked of one part of a model: ``attention``, ``ffn``, or one kind of attention.

    Args:
        prefix: First word of the names.
        points: The points; at least one.
    """

    def __init__(self, prefix: str, points: Sequence[Point]) -> None:
        """Arrange the points by their decisions, and name those that have a choice."""
        self.prefix = prefix
        self.points = tuple(points)
        self._root = _Node("form")
        for point in points:
            self._add(point)
        forks = [(self._label(ports, node), node) for ports, node in _nodes(self._root) if len(node.choices) > 1]
        self._names: dict[tuple[str, tuple[str, ...]], str] = {}
        for label, node in sorted(forks, key=lambda fork: -len(fork[1].choices)):
            node.name = self._named(label, node.choices)

    def _add(self, point: Point) -> None:
        node, path = self._root, point.path
        for (_, value), (dimension, _) in pairwise(path):
            following = node.children.setdefault(value, _Node(dimension))
            if isinstance(following, _Node):
                node = following
        node.children[point.gate] = point

    def _label(self, ports: Sequence[str], node: _Node) -> str:
        if node.dimension in _PORT_DIMENSIONS:
            return ".".join((self.prefix, *ports, node.dimension))
        return f"{self.prefix}.{ports[0]}.{_gate_label(node) if node.dimension == 'gate' else node.dimension}"

    def _named(self, label: str, choices: tuple[str, ...]) -> str:
        """One name stands for one set of choices; other sets of the same decision have their choices in the name."""
        if (label, choices) not in self._names:
            is_taken = label in self._names.values()
            self._names[label, choices] = f"{label}[{','.join(choices)}]" if is_taken else label
        return self._names[label, choices]

    def parameters(self) -> dict[str, tuple[str, ...]]:
        """Choices of every decision by its name."""
        return {name: choices for (_, choices), name in self._names.items()}

    def walk(self, choose: Callable[[str, Sequence[str]], str]) -> Point:
        """The point that some choices lead to.

        Args:
            choose: Picks one of the choices of a name; it is not asked where there is one.
        """
        node: _Node | Point = self._root
        while isinstance(node, _Node):
            choices = node.choices
            node = node.children[choose(node.name, choices) if len(choices) > 1 else choices[0]]
        return node


def _gate_label(node: _Node) -> str:
    """Gates of attention logits are choices of few edits, so their sets have names of their own."""
    kinds = {choice.partition(":")[0] for choice in node.choices}
    if kinds & {ConvexGate.name, WeightedGate.name}:
        return "prefix_gate"
    return "inducer_gate" if kinds & {InducerGate.name, ConvexInducerGate.name} else "gate"


def _nodes(root: _Node, ports: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], _Node]]:
    """Every decision with the form, the write and the read before it."""
    yield ports, root
    for value, child in root.children.items():
        if isinstance(child, _Node):
            yield from _nodes(child, (*ports, value) if root.dimension in _PORT_DIMENSIONS[:3] else ports)
