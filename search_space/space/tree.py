"""The search tree of one part of a model: which values may follow which, and under what names they are asked for.

Activations and fixed scales go with any point, so they are asked for beside the tree.
"""

from collections.abc import Callable, Sequence

from search_space.gates import GATES
from search_space.gates.gate import Logits
from search_space.space.product import Path, Point

_PORT_DIMENSIONS = ("form", "write", "read", "heads")


class Tree:
    """What may be asked of one part of a model: ``attention``, ``ffn``, or one kind of attention.

    Args:
        prefix: First word of the names.
        points: The points; at least one.
    """

    def __init__(self, prefix: str, points: Sequence[Point]) -> None:
        """List what may follow every decision, and name what has a choice."""
        self.prefix = prefix
        self.points = tuple(points)
        self._by_path = {point.path: point for point in points}
        following: dict[Path, dict[tuple[str, str], None]] = {}
        for point in points:
            for place, decision in enumerate(point.path):
                following.setdefault(point.path[:place], {})[decision] = None
        self._following = {path: tuple(decisions) for path, decisions in following.items()}
        self._choices: dict[str, tuple[str, ...]] = {}
        self._names: dict[Path, str] = {}
        forks = [path for path, decisions in self._following.items() if len(decisions) > 1]
        for path in sorted(forks, key=lambda path: -len(self._following[path])):
            self._names[path] = self._named(path)

    def _named(self, path: Path) -> str:
        """One name stands for one set of choices; other sets of the same decision have their choices in the name."""
        choices = tuple(text for _, text in self._following[path])
        label = self._label(path, choices)
        name = label if self._choices.get(label, choices) == choices else f"{label}[{','.join(choices)}]"
        self._choices[name] = choices
        return name

    def _label(self, path: Path, choices: Sequence[str]) -> str:
        dimension = self._following[path][0][0]
        ports = [text for name, text in path if name in _PORT_DIMENSIONS[:3]]
        if dimension in _PORT_DIMENSIONS:
            return ".".join((self.prefix, *ports, dimension))
        return f"{self.prefix}.{ports[0]}.{_gate_label(choices) if dimension == 'gate' else dimension}"

    def parameters(self) -> dict[str, tuple[str, ...]]:
        """Choices of every decision by its name."""
        return dict(self._choices)

    def walk(self, choose: Callable[[str, Sequence[str]], str]) -> Point:
        """The point that some choices lead to.

        Args:
            choose: Picks one of the choices of a name; it is not asked where there is one.
        """
        path: Path = ()
        while path in self._following:
            decision = self._following[path][0]
            if path in self._names:
                name = self._names[path]
                decision = decision[0], choose(name, self._choices[name])
            path = (*path, decision)
        return self._by_path[path]

    def answers(self, point: Point) -> dict[str, str]:
        """The choices that lead to a point, by their names: what `walk` must be told."""
        before = (point.path[:place] for place in range(len(point.path)))
        return {
            self._names[path]: text for path, (_, text) in zip(before, point.path, strict=True) if path in self._names
        }


def _gate_label(choices: Sequence[str]) -> str:
    """Gates of attention logits are choices of few edits, so their sets have names of their own."""
    logits = {GATES[choice.partition(":")[0]].logits for choice in choices}
    if Logits.TABLE in logits:
        return "prefix_gate"
    return "inducer_gate" if Logits.QUERY in logits else "gate"
