"""Conditional parameters of one part of the model, and the structures that their values make."""

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
    """Conditional choices of one edit at a part of the model: ``attention``, ``ffn``, or one kind of attention.

    Attributes:
        choices: Choices of every decision, by its name.

    Args:
        prefix: First word of the parameter names.
        points: Points of the part; at least one.
    """

    def __init__(self, prefix: str, points: Sequence[Point]) -> None:
        """Build the tree and name every decision with more than one choice."""
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
            self._names[path] = self._add_name(path)

    def _add_name(self, path: DecisionPath) -> str:
        """Return the name of a decision, unique for its set of choices; later sets append their choices."""
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
        """Return the point that some choices lead to.

        Args:
            choose: Function that selects one of a name's choices; not called for single choices.
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
        """Return the choices that lead `walk` to a point, by parameter name."""
        before = (point.path[:place] for place in range(len(point.path)))
        return {
            self._names[path]: text for path, (_, text) in zip(before, point.path, strict=True) if path in self._names
        }


def _gate_label(choices: Sequence[str]) -> str:
    """Return the name of a gate decision; sets with attention-logit gates fit few edits and have own names."""
    logits = {GATES[choice.partition(":")[0]].logits for choice in choices}
    if Logits.TABLE in logits:
        return "prefix_gate"
    return "inducer_gate" if Logits.QUERY in logits else "gate"


NUMBERS = ("1", "2")
"""Choices of the number of edits."""


class PartSpace:
    """Conditional parameters of one part of the model: those of one edit, or the number of edits and those of both.

    Attributes:
        name: First word of the parameter names.
        tree: Decision tree of the first edit.
        pairs: Pairs of structures; None if at most one edit is allowed.
    """

    def __init__(
        self, name: str, points: Sequence[Point], shape: BackboneShape, options: SpaceOptions, *, part_limit: PointCost
    ) -> None:
        """Build the decision trees.

        Args:
            name: Name of the part.
            points: Structures that fit, without activations and scales; at least one.
            shape: Shape of the backbone.
            options: Options of the space.
            part_limit: Most that the part may cost at its smallest.
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
        """Return the parameters with more than one choice, by name."""
        table = self._choices(self.tree)
        for second in self._trees[1:]:
            table |= {f"{self.name}.edits": NUMBERS} | self._choices(second)
        return table

    @property
    def can_split(self) -> bool:
        """Whether two edits can both have a bottleneck to size."""
        return any(sum(point.is_sized for point in second.points) > 1 for second in self._trees[1:])

    def suggest(self, recorder: ParameterRecorder) -> Structure:
        """Suggest a structure; an illegal second edit is replaced by the next legal one."""
        number = recorder.choose(f"{self.name}.edits", NUMBERS[: len(self._trees)])
        first = self._suggest(self.tree, recorder)
        if self.pairs is None or number == NUMBERS[0] or not self.pairs.has_partner(first):
            return (first,)
        return self.pairs.pair_or_next(first, self._suggest(self._trees[1], recorder))

    def choices_to(self, chosen: Structure) -> dict[str, str]:
        """Return the choices that lead to a structure, possibly with unused ones."""
        choices = {f"{self.name}.edits": NUMBERS[len(chosen) - 1]}
        for tree, point in zip(self._trees, chosen, strict=False):
            open_choices = {
                f"{tree.prefix}.{name}": text for name, text in point.path if name in self._options.open_values
            }
            choices |= tree.choices_to(point) | open_choices
        return choices

    @cached_property
    def structures(self) -> tuple[Point, ...]:
        """Structures of one edit, with every activation and every scale, in the order of their decisions."""
        found = []
        for point in self.tree.points:
            points = [point]
            for dimension, values in self._options.open_values.items():
                if point.is_open(dimension):
                    points = [one.with_value(dimension, value) for one in points for value in values.values()]
            found += points
        return tuple(found)

    def find(self, edits: Sequence[Edit]) -> Point | None:
        """Return the point of some edits, independently of widths and layers, or the point of the same function.

        Raises:
            InvalidEditError: If the edits are not valid on the backbone.
        """
        plain = tuple(replace(edit, form=edit.form.smallest, layers=AllLayers()) for edit in edits)
        if plain in self._by_edits:
            return self._by_edits[plain]
        return self._by_function.get(self._function(plain))

    def match(self, edits: Sequence[Edit]) -> dict[Point, tuple[Edit, ...]]:
        """Return the structure of some edits as its points with their edits; empty if there is none.

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
