"""Two structures at one part of the model: which may go together and how many there are."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement

from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Port
from search_space.edit import Edit
from search_space.errors import InvalidEditError
from search_space.space.options import SpaceOptions
from search_space.space.points import PointCost, min_cost
from search_space.space.product import Point, Structure
from search_space.validity import canonical_read, check_on

SECOND_PREFIX = "second"
"""Before the names of what is asked of the second edit, and of its dimensions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """All of a structure that decides with what others it may go.

    Attributes:
        ends: Form, write and read of its edits.
        has_logits: Whether a gate of it is of log-sum-exps.
        shared: What its edits have in shared with others, with the parameters of it.
        cost: The least it takes, with what is in shared.
    """

    ends: frozenset[tuple[str, Port, Port | None]]
    has_logits: bool
    shared: frozenset[tuple[Hashable, int]]
    cost: PointCost

    def cost_with(self, other: "_Kind") -> PointCost:
        """The least that both together take."""
        twice = sum(parameters for _, parameters in self.shared & other.shared)
        return PointCost(
            parameters=self.cost.parameters + other.cost.parameters - twice,
            extra_flops=self.cost.extra_flops + other.cost.extra_flops,
        )


class StructurePairs:
    """Pairs of the structures of a part; the order of the two means nothing, so each is there once.

    Whether two go together depends on few of their properties, so these are compared and not the structures.

    Args:
        structures: Of the part.
        shape: The backbone.
        options: What is searched.
        part_limit: What a part may have at its smallest.
        step: Smallest width that all edits beside it can have, too.
    """

    def __init__(
        self,
        structures: Sequence[Point],
        shape: BackboneShape,
        options: SpaceOptions,
        *,
        part_limit: PointCost,
        step: int = 1,
    ) -> None:
        """Sort the structures by what matters."""
        self._structures = structures
        self._shape = shape
        self._options = options
        self._most = part_limit
        self._step = step
        self._kinds = tuple(self._kind(point) for point in structures)
        self._examples = dict(zip(reversed(self._kinds), reversed(structures), strict=True))
        self._legal: dict[frozenset[_Kind], bool] = {}

    def __len__(self) -> int:
        """How many pairs there are."""
        numbers = Counter(self._kinds)
        return sum(
            numbers[kind] * numbers[other] if kind is not other else numbers[kind] * (numbers[kind] - 1) // 2
            for kind, other in combinations_with_replacement(numbers, 2)
            if self._go_together(kind, other)
        )

    def are_legal(self, first: Point, second: Point) -> bool:
        """Whether two structures may go together."""
        return self._go_together(self._kind_of(first), self._kind_of(second))

    def has_partner(self, point: Point) -> bool:
        """Whether there is a pair with a structure, whatever its activation and its scale."""
        kind = self._kind(point)
        return any(self._go_together(kind, other) for other in self._examples)

    def partners(self, point: Point) -> tuple[Point, ...]:
        """The structures that may go with one: what a second edit can be."""
        kind = self._kind_of(point)
        fitting = {other for other in self._examples if self._go_together(kind, other)}
        return tuple(one for one, other in zip(self._structures, self._kinds, strict=True) if other in fitting)

    def pair_or_next(self, first: Point, second: Point) -> Structure:
        """Two structures together, or with the first the next one after the second that may go with it.

        Raises:
            InvalidEditError: If none may.
        """
        start = self._places[second]
        for one in (*self._structures[start:], *self._structures[:start]):
            if self.are_legal(first, one):
                return self.pair(first, one)
        raise InvalidEditError("an edit that may go with the first must be left; got none.", rule="twice")

    def pair(self, one: Point, other: Point) -> Structure:
        """Two structures in their order."""
        return tuple(sorted((one, other), key=self._places.__getitem__))

    @cached_property
    def _places(self) -> dict[Point, int]:
        return {point: place for place, point in enumerate(self._structures)}

    @cached_property
    def _together(self) -> set[frozenset[tuple[str, Port, Port | None]]]:
        """What those structures write and read that write several tensors."""
        return {self._ends(point.edits) for point in self._structures if len(point.edits) > 1}

    def _kind_of(self, point: Point) -> _Kind:
        return self._kinds[self._places[point]]

    def _kind(self, point: Point) -> _Kind:
        cost = min_cost(point, self._shape, self._options, self._step)
        return _Kind(
            ends=self._ends(point.edits),
            has_logits=any(edit.gate.logits is not None for edit in point.edits),
            shared=frozenset(
                edit.form.shared_parameters for edit in point.edits if edit.form.shared_parameters is not None
            ),
            cost=self._most if cost is None else cost,
        )

    def _ends(self, edits: Sequence[Edit]) -> frozenset[tuple[str, Port, Port | None]]:
        return frozenset((edit.form.name, edit.write, canonical_read(edit.read, self._shape)) for edit in edits)

    def _go_together(self, kind: _Kind, other: _Kind) -> bool:
        """Whether structures of two kinds may go together."""
        both = frozenset((kind, other))
        if both not in self._legal:
            self._legal[both] = self._is_legal(kind, other)
        return self._legal[both]

    def _is_legal(self, kind: _Kind, other: _Kind) -> bool:
        """Not where one form writes one tensor in both, where both are one structure, and beyond the budget."""
        writes = [{(form, write) for form, write, _ in one.ends} for one in (kind, other)]
        if writes[0] & writes[1] or kind.ends | other.ends in self._together:
            return False
        try:
            check_on((*self._examples[kind].edits, *self._examples[other].edits), self._shape)
        except InvalidEditError:
            return False
        return kind.cost_with(other).is_within(self._most)
