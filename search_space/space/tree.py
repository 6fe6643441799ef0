"""The search tree of one part of a model: which values may follow which, and under what names they are asked for.

Activations and fixed scales go with any point, so they are asked for beside the tree.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from search_space.gates import GATES
from search_space.gates.gate import Logits
from search_space.space.product import Point

_PORT_DIMENSIONS = ("form", "write", "read", "heads")


@dataclass(slots=True)
class _TreeNode:
    """A decision: its dimension, what follows each of its choices, and the name it is asked for by."""

    dimension: str
    children: dict[str, "_TreeNode | Point"] = field(default_factory=dict)
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
        self._root = _TreeNode("form")
        for point in points:
            self._add(point)
        forks = [(self._label(ports, node), node) for ports, node in _nodes(self._root) if len(node.choices) > 1]
        self._names: dict[tuple[str, tuple[str, ...]], str] = {}
        for label, node in sorted(forks, key=lambda fork: -len(fork[1].choices)):
            node.name = self._named(label, node.choices)

    def _add(self, point: Point) -> None:
        node, path = self._root, point.path
        for (_, value), (dimension, _) in pairwise(path):
            following = node.children.setdefault(value, _TreeNode(dimension))
            if isinstance(following, _TreeNode):
                node = following
        node.children[path[-1][1]] = point

    def _label(self, ports: Sequence[str], node: _TreeNode) -> str:
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
        node: _TreeNode | Point = self._root
        while isinstance(node, _TreeNode):
            choices = node.choices
            node = node.children[choose(node.name, choices) if len(choices) > 1 else choices[0]]
        return node

    def answers(self, point: Point) -> dict[str, str]:
        """The choices that lead to a point, by their names: what `walk` must be told."""
        node: _TreeNode | Point = self._root
        found: dict[str, str] = {}
        for _, value in point.path:
            if not isinstance(node, _TreeNode):
                break
            if len(node.choices) > 1:
                found[node.name] = value
            node = node.children[value]
        return found


def _gate_label(node: _TreeNode) -> str:
    """Gates of attention logits are choices of few edits, so their sets have names of their own."""
    logits = {GATES[choice.partition(":")[0]].logits for choice in node.choices}
    if Logits.TABLE in logits:
        return "prefix_gate"
    return "inducer_gate" if Logits.QUERY in logits else "gate"


def _nodes(root: _TreeNode, ports: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], _TreeNode]]:
    """Every decision with the form, the write and the read before it."""
    yield ports, root
    for value, child in root.children.items():
        if isinstance(child, _TreeNode):
            yield from _nodes(child, (*ports, value) if root.dimension in _PORT_DIMENSIONS[:3] else ports)
