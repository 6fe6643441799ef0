"""What each of several changes is worth when only some of their combinations are legal: exact Shapley values.

The value of a change is its marginal contribution, averaged over all *legal orders*: orders of the changes such that
what has been changed so far is legal at every step (Faigle and Kern 1992 for precedences; here for any family of legal
sets). Where everything is legal these are Shapley's values. The values of all changes sum to the difference of the two
ends, because the contributions along each order do.

Changes that need each other are one player: those that every legal combination has both or neither of. Where no legal
order is left even so, two players are joined, those after which there is one, and most is legal, until there is one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LegalOrders:
    """The orders in which players can join, every combination on the way being legal.

    Attributes:
        players: The changes that each of them makes.
        legal: Combinations of players as bits, ascending; nobody and everybody are among them.
    """

    players: tuple[tuple[int, ...], ...]
    legal: tuple[int, ...]

    @classmethod
    def of(cls, changes: int, is_legal: Callable[[frozenset[int]], bool]) -> "LegalOrders":
        """The orders of some changes.

        Args:
            changes: How many.
            is_legal: Of the changes that are made; not asked of none and of all, which are.
        """
        everybody = (1 << changes) - 1
        inner = (mask for mask in range(1, everybody) if is_legal(frozenset(_members(mask))))
        legal = sorted({0, everybody, *inner})
        orders = cls._joined(_together(changes, legal), legal)
        while not orders.count:
            orders = max(
                (cls._joined(players, legal) for players in _with_two_joined(orders.players)),
                key=lambda joined: (joined.count > 0, len(joined.legal)),
            )
        return orders

    @classmethod
    def _joined(cls, players: Iterable[Sequence[int]], legal: Iterable[int]) -> "LegalOrders":
        """With some changes joined; what has a part of a player only is left out."""
        members = tuple(tuple(player) for player in players)
        masks = [sum(1 << change for change in player) for player in members]
        found = set()
        for combination in legal:
            parts = [combination & mask for mask in masks]
            if all(part in (0, mask) for part, mask in zip(parts, masks, strict=True)):
                found.add(sum(1 << place for place, part in enumerate(parts) if part))
        return cls(players=members, legal=tuple(sorted(found)))

    @property
    def everybody(self) -> int:
        """All players."""
        return (1 << len(self.players)) - 1

    def changes_of(self, combination: int) -> frozenset[int]:
        """What a combination of players changes."""
        return frozenset(change for player in _members(combination) for change in self.players[player])

    @cached_property
    def column(self) -> Mapping[int, int]:
        """The place of every legal combination among all."""
        return {combination: place for place, combination in enumerate(self.legal)}

    @property
    def count(self) -> int:
        """How many orders there are."""
        return self._ways_from_nobody.get(self.everybody, 0)

    @cached_property
    def _ways_from_nobody(self) -> Mapping[int, int]:
        """Of every combination, in how many legal orders its players can have joined."""
        ways = {0: 1}
        for combination in self.legal[1:]:
            ways[combination] = sum(ways.get(combination ^ 1 << player, 0) for player in _members(combination))
        return ways

    @cached_property
    def _ways_to_everybody(self) -> Mapping[int, int]:
        """Of every combination, in how many legal orders the others can still join."""
        ways = {self.everybody: 1}
        for combination in self.legal[-2::-1]:
            left = self.everybody ^ combination
            ways[combination] = sum(ways.get(combination | 1 << player, 0) for player in _members(left))
        return ways

    def weights(self) -> Array:
        """Values of players are ``weights @ values of combinations``, ``(players, legal)``."""
        before, after = self._ways_from_nobody, self._ways_to_everybody
        weights = np.zeros((len(self.players), len(self.legal)))
        for combination in self.legal:
            for player in _members(self.everybody ^ combination):
                following = combination | 1 << player
                share = before[combination] * after.get(following, 0) / self.count
                if share:
                    weights[player, self.column[following]] += share
                    weights[player, self.column[combination]] -= share
        return weights

    def greedy(self, values: Array) -> tuple[int, ...]:
        """The legal order in which the player joins next that gains most, the first of equals.

        Args:
            values: Of the legal combinations, ``(legal,)``.
        """
        order: list[int] = []
        combination = 0
        while combination != self.everybody:
            open_ = [
                player
                for player in _members(self.everybody ^ combination)
                if self._ways_to_everybody.get(combination | 1 << player, 0)
            ]
            order.append(max(open_, key=lambda player: values[self.column[combination | 1 << player]]))
            combination |= 1 << order[-1]
        return tuple(order)


def _members(mask: int) -> list[int]:
    return [place for place in range(mask.bit_length()) if mask >> place & 1]


def _together(changes: int, legal: Sequence[int]) -> list[list[int]]:
    """The changes that every legal combination has both or neither of, in the order of the first of them."""
    players: dict[tuple[int, ...], list[int]] = {}
    for change in range(changes):
        players.setdefault(tuple(mask >> change & 1 for mask in legal), []).append(change)
    return list(players.values())


def _with_two_joined(players: Sequence[Sequence[int]]) -> Iterable[list[tuple[int, ...]]]:
    for one, other in combinations(range(len(players)), 2):
        joined = tuple(sorted((*players[one], *players[other])))
        yield [joined if place == one else tuple(player) for place, player in enumerate(players) if place != other]
