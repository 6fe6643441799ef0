"""Pairs of structures at one part of the model: their legality and their number."""

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
"""Prefix of the parameter names of the second edit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """Properties of a structure that decide which others it can be paired with.

    Attributes:
        ends: Form, write and read of its edits.
        has_logits: Whether it has a log-sum-exp gate.
        shared: Keys of parameters that its edits share with others, with their numbers.
        cost: Least cost, shared parameters included.
    """

    ends: frozenset[tuple[str, Port, Port | None]]
    has_logits: bool
    shared: frozenset[tuple[Hashable, int]]
    cost: PointCost

    def cost_with(self, other: "_Kind") -> PointCost:
        """Return the least cost of both together."""
        counted_twice = sum(parameters for _, parameters in self.shared & other.shared)
        return PointCost(
            parameters=self.cost.parameters + other.cost.parameters - counted_twice,
            extra_flops=self.cost.extra_flops + other.cost.extra_flops,
        )


class StructurePairs:
    """Unordered pairs of the structures of a part.

    Legality depends on few properties of the structures, so these are compared and not the structures.

    Args:
        structures: Structures of the part.
        shape: Shape of the backbone.
        options: Options of the space.
        part_limit: Most that a part may cost at its smallest.
        step: Smallest width that all edits at the other parts can have, too.
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
        """Sort the structures into kinds."""
        self._structures = structures
        self._shape = shape
        self._options = options
        self._most = part_limit
        self._step = step
        self._kinds = tuple(self._kind(point) for point in structures)
        self._examples = dict(zip(reversed(self._kinds), reversed(structures), strict=True))
        self._legal: dict[frozenset[_Kind], bool] = {}

    def __len__(self) -> int:
        """Return the number of pairs."""
        numbers = Counter(self._kinds)
        return sum(
            numbers[kind] * numbers[other] if kind is not other else numbers[kind] * (numbers[kind] - 1) // 2
            for kind, other in combinations_with_replacement(numbers, 2)
            if self._are_compatible(kind, other)
        )

    def are_legal(self, first: Point, second: Point) -> bool:
        """Return whether two structures can be paired."""
        return self._are_compatible(self._kind_of(first), self._kind_of(second))

    def has_partner(self, point: Point) -> bool:
        """Return whether a structure has a partner, independently of activation and scale."""
        kind = self._kind(point)
        return any(self._are_compatible(kind, other) for other in self._examples)

    def partners(self, point: Point) -> tuple[Point, ...]:
        """Return the structures that can be paired with one: the choices of a second edit."""
        kind = self._kind_of(point)
        fitting = {other for other in self._examples if self._are_compatible(kind, other)}
        return tuple(one for one, other in zip(self._structures, self._kinds, strict=True) if other in fitting)

    def pair_or_next(self, first: Point, second: Point) -> Structure:
        """Return two structures as a pair, or the first one with the next legal structure after the second.

        Raises:
            InvalidEditError: If the first one has no partner.
        """
        start = self._indices[second]
        for one in (*self._structures[start:], *self._structures[:start]):
            if self.are_legal(first, one):
                return self.pair(first, one)
        raise InvalidEditError("the first edit must have a legal second edit; got none.", rule="twice")

    def pair(self, one: Point, other: Point) -> Structure:
        """Return two structures in their order."""
        return tuple(sorted((one, other), key=self._indices.__getitem__))

    @cached_property
    def _indices(self) -> dict[Point, int]:
        return {point: index for index, point in enumerate(self._structures)}

    @cached_property
    def _joint_ends(self) -> set[frozenset[tuple[str, Port, Port | None]]]:
        """Ends of the structures that write several tensors."""
        return {self._ends(point.edits) for point in self._structures if len(point.edits) > 1}

    def _kind_of(self, point: Point) -> _Kind:
        return self._kinds[self._indices[point]]

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

    def _are_compatible(self, kind: _Kind, other: _Kind) -> bool:
        """Return whether structures of two kinds can be paired."""
        both = frozenset((kind, other))
        if both not in self._legal:
            self._legal[both] = self._is_legal(kind, other)
        return self._legal[both]

    def _is_legal(self, kind: _Kind, other: _Kind) -> bool:
        """Refuse equal forms and writes, pairs that are one structure of several ports, and costs beyond the limit."""
        writes = [{(form, write) for form, write, _ in one.ends} for one in (kind, other)]
        if writes[0] & writes[1] or kind.ends | other.ends in self._joint_ends:
            return False
        try:
            check_on((*self._examples[kind].edits, *self._examples[other].edits), self._shape)
        except InvalidEditError:
            return False
        return kind.cost_with(other).is_within(self._most)
