"""What is asked of one part of the model, and the structure that the answers make."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import combinations

from search_space.backbones.shape import BackboneShape
from search_space.canonical import canonical
from search_space.configuration import Configuration
from search_space.edit import Edit
from search_space.gates import GATES
from search_space.gates.gate import Logits
from search_space.layers import AllLayers
from search_space.space.budget_fit import width_step
from search_space.space.options import SpaceOptions
from search_space.space.pairs import SECOND_PREFIX, StructurePairs
from search_space.space.points import PointCost
from search_space.space.product import DecisionPath, Point, Structure
from search_space.space.trial_protocol import ParameterRecorder

_PORT_DIMENSIONS = ("form", "write", "read", "heads")


class DecisionTree:
    """What may be asked of one part of a model: ``attention``, ``ffn``, or one kind of attention.

    Attributes:
        choices: Of every decision, by its name.

    Args:
        prefix: First word of the names.
        points: The points; at least one.
    """

    def __init__(self, prefix: str, points: Sequence[Point]) -> None:
        """List what may follow every decision, and name what has a choice."""
        self.prefix = prefix
        self.points = tuple(points)
        self._by_path = {point.path: point for point in points}
        following: dict[DecisionPath, dict[tuple[str, str], None]] = {}
        for point in points:
            for place, decision in enumerate(point.path):
                following.setdefault(point.path[:place], {})[decision] = None
        self._following = {path: tuple(decisions) for path, decisions in following.items()}
        self.choices: dict[str, tuple[str, ...]] = {}
        self._names: dict[DecisionPath, str] = {}
        forks = [path for path, decisions in self._following.items() if len(decisions) > 1]
        for path in sorted(forks, key=lambda path: -len(self._following[path])):
            self._names[path] = self._named(path)

    def _named(self, path: DecisionPath) -> str:
        """One name stands for one set of choices; other sets of the same decision have their choices in the name."""
        choices = tuple(text for _, text in self._following[path])
        label = self._label(path, choices)
        name = label if self.choices.get(label, choices) == choices else f"{label}[{','.join(choices)}]"
        self.choices[name] = choices
        return name

    def _label(self, path: DecisionPath, choices: Sequence[str]) -> str:
        dimension = self._following[path][0][0]
        ports = [text for name, text in path if name in _PORT_DIMENSIONS[:3]]
        if dimension in _PORT_DIMENSIONS:
            return ".".join((self.prefix, *ports, dimension))
        return f"{self.prefix}.{ports[0]}.{_gate_label(choices) if dimension == 'gate' else dimension}"

    def walk(self, choose: Callable[[str, Sequence[str]], str]) -> Point:
        """The point that some choices lead to.

        Args:
            choose: Picks one of the choices of a name; it is not asked where there is one.
        """
        path: DecisionPath = ()
        while path in self._following:
            decision = self._following[path][0]
            if path in self._names:
                name = self._names[path]
                decision = decision[0], choose(name, self.choices[name])
            path = (*path, decision)
        return self._by_path[path]

    def choices_to(self, point: Point) -> dict[str, str]:
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


NUMBERS = ("1", "2")
"""Of edits, as they are asked for."""


class PartSpace:
    """The questions about one part: one edit's, and where two may be how many and the second one's.

    Attributes:
        name: First word of the questions.
        tree: Of the first edit.
        pairs: What two can be; None where there is at most one.
    """

    def __init__(
        self, name: str, points: Sequence[Point], shape: BackboneShape, options: SpaceOptions, *, part_limit: PointCost
    ) -> None:
        """Arrange the questions.

        Args:
            name: Of the part.
            points: Its structures that fit, without activations and scales; at least one.
            shape: The backbone.
            options: What is searched.
            most: What the part may have at its smallest.
        """
        self.name = name
        self.tree = DecisionTree(name, points)
        self._shape = shape
        self._options = options
        self.pairs: StructurePairs | None = None
        if max(options.edits_per_side) > 1:
            step = width_step(name, options)
            self.pairs = StructurePairs(self.structures, shape, options, part_limit=part_limit, step=step) or None
        seconds = [] if self.pairs is None else [point for point in points if self.pairs.has_partner(point)]
        self._trees: tuple[DecisionTree, ...] = (
            (self.tree, DecisionTree(f"{name}.{SECOND_PREFIX}", seconds)) if seconds else (self.tree,)
        )

    def parameters(self) -> dict[str, tuple[str, ...]]:
        """The questions with a choice, by name."""
        table = self._choices(self.tree)
        for second in self._trees[1:]:
            table |= {f"{self.name}.edits": NUMBERS} | self._choices(second)
        return table

    @property
    def can_split(self) -> bool:
        """Whether two edits can both have something to size."""
        return any(sum(point.is_sized for point in second.points) > 1 for second in self._trees[1:])

    def suggest(self, recorder: ParameterRecorder) -> Structure:
        """What the answers make; a second edit that may not go with the first is the next one that may."""
        number = recorder.choose(f"{self.name}.edits", NUMBERS[: len(self._trees)])
        first = self._suggest(self.tree, recorder)
        if self.pairs is None or number == NUMBERS[0] or not self.pairs.has_partner(first):
            return (first,)
        return self.pairs.pair_or_next(first, self._suggest(self._trees[1], recorder))

    def choices_to(self, chosen: Structure) -> dict[str, str]:
        """What must be answered for a structure, and possibly more."""
        found = {f"{self.name}.edits": NUMBERS[len(chosen) - 1]}
        for tree, point in zip(self._trees, chosen, strict=False):
            values_of_open = {
                f"{tree.prefix}.{name}": text for name, text in point.path if name in self._options.open_values
            }
            found |= tree.choices_to(point) | values_of_open
        return found

    @cached_property
    def structures(self) -> tuple[Point, ...]:
        """All that one edit can be, with every activation and every scale, in the order of their decisions."""
        found = []
        for point in self.tree.points:
            points = [point]
            for dimension, values in self._options.open_values.items():
                if point.is_open(dimension):
                    points = [one.with_value(dimension, value) for one in points for value in values.values()]
            found += points
        return tuple(found)

    def find(self, edits: Sequence[Edit]) -> Point | None:
        """The point that some edits are whatever their widths and layers, or the one that is the same function.

        Raises:
            InvalidEditError: If the edits are not valid on the backbone.
        """
        plain = tuple(replace(edit, form=edit.form.smallest, layers=AllLayers()) for edit in edits)
        if plain in self._by_edits:
            return self._by_edits[plain]
        return self._by_function.get(self._function(plain))

    def match(self, edits: Sequence[Edit]) -> dict[Point, tuple[Edit, ...]]:
        """The structure that some edits are, each of its points with those that it stands for; empty if none.

        Raises:
            InvalidEditError: If the edits are not valid on the backbone.
        """
        one = self.find(edits)
        if one is not None:
            return {one: tuple(edits)}
        for size in range(1, 0 if self.pairs is None else len(edits) // 2 + 1):
            for some in combinations(edits, size):
                others = tuple(edit for edit in edits if edit not in some)
                first, second = self.find(some), self.find(others)
                if first is None or second is None or self.pairs is None:
                    continue
                if self.pairs.are_legal(first, second):
                    found = {first: some, second: others}
                    return {point: found[point] for point in self.pairs.pair(first, second)}
        return {}

    @cached_property
    def _by_edits(self) -> dict[tuple[Edit, ...], Point]:
        return {point.edits: point for point in self.structures}

    @cached_property
    def _by_function(self) -> dict[tuple[Edit, ...], Point]:
        return {self._function(point.edits): point for point in reversed(self.structures)}

    def _function(self, edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
        return canonical(Configuration(edits=edits), self._shape).edits

    def _choices(self, tree: DecisionTree) -> dict[str, tuple[str, ...]]:
        table = dict(tree.choices)
        for dimension, values in self._options.open_values.items():
            if any(point.is_open(dimension) for point in tree.points):
                table[f"{tree.prefix}.{dimension}"] = tuple(values)
        return {name: choices for name, choices in table.items() if len(choices) > 1}

    def _suggest(self, tree: DecisionTree, recorder: ParameterRecorder) -> Point:
        point = tree.walk(recorder.choose)
        for dimension, values in self._options.open_values.items():
            if point.is_open(dimension):
                point = point.with_value(
                    dimension, values[recorder.choose(f"{tree.prefix}.{dimension}", tuple(values))]
                )
        return point
