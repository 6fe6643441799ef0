"""Exact Shapley values of changes when only some of their combinations are legal.

The value of a change is its marginal contribution, averaged over all *legal orders*: those in which every intermediate
combination is legal. Faigle and Kern (1992) define them for precedences; here any family of legal sets will do. If
everything is legal these are Shapley's values. The values sum to the difference of the two ends, since the
contributions along each order do.

Changes that need each other are one player: every legal combination has both or neither. If no legal order remains,
players are joined in pairs, those with the most legal combinations first, until there is one.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LegalOrders:
    """Orders in which players can join through legal combinations.

    A combination is a bit mask of changes.

    Attributes:
        players: Changes of each player.
        legal: Combinations of whole players, ascending; the first is empty, the last complete.
    """

    players: tuple[int, ...]
    legal: tuple[int, ...]

    @classmethod
    def of(cls, changes: int, is_legal: Callable[[frozenset[int]], bool]) -> "LegalOrders":
        """Return the legal orders of some changes.

        Args:
            changes: Number of changes.
            is_legal: Function from a set of changes to whether it is legal; the empty and the complete set always are.
        """
        everybody = (1 << changes) - 1
        legal = sorted({0, everybody, *(one for one in range(1, everybody) if is_legal(members(one)))})
        together: dict[tuple[int, ...], int] = {}
        for change in range(changes):
            where = tuple(one >> change & 1 for one in legal)
            together[where] = together.get(where, 0) | 1 << change
        orders = cls._joined(tuple(together.values()), legal)
        while not orders.count:
            orders = max(
                (cls._joined(players, legal) for players in _with_two_joined(orders.players)),
                key=lambda joined: (joined.count > 0, len(joined.legal)),
            )
        return orders

    @classmethod
    def _joined(cls, players: tuple[int, ...], legal: Sequence[int]) -> "LegalOrders":
        """Return the orders of some players, without combinations of parts of players."""
        whole = (one for one in legal if all(one & player in (0, player) for player in players))
        return cls(players=players, legal=tuple(whole))

    @cached_property
    def column(self) -> Mapping[int, int]:
        """Index of every legal combination among all."""
        return {combination: place for place, combination in enumerate(self.legal)}

    @property
    def count(self) -> int:
        """Number of legal orders."""
        return self._orders_from_empty[self.legal[-1]]

    @cached_property
    def _orders_from_empty(self) -> Mapping[int, int]:
        """Number of legal orders in which the players of each combination can have joined."""
        ways = {0: 1}
        for one in self.legal[1:]:
            ways[one] = sum(ways.get(one ^ player, 0) for player in self.players if one & player)
        return ways

    @cached_property
    def _orders_to_full(self) -> Mapping[int, int]:
        """Number of legal orders in which the other players of each combination can still join."""
        ways = {self.legal[-1]: 1}
        for one in self.legal[-2::-1]:
            ways[one] = sum(ways.get(one | player, 0) for player in self.players if not one & player)
        return ways

    def weights(self) -> Array:
        """Return the matrix from values of combinations to values of players, ``(players, legal)``."""
        weights = np.zeros((len(self.players), len(self.legal)))
        for one in self.legal:
            for place, player in enumerate(self.players):
                onwards = 0 if one & player else self._orders_to_full.get(one | player, 0)
                if onwards:
                    share = self._orders_from_empty[one] * onwards / self.count
                    weights[place, self.column[one | player]] += share
                    weights[place, self.column[one]] -= share
        return weights

    def greedy(self, values: Array) -> tuple[int, ...]:
        """Return the players in the legal order in which the largest gain comes next, the first of equals.

        Args:
            values: Values of the legal combinations, ``(legal,)``.
        """
        order: list[int] = []
        made = 0
        while made != self.legal[-1]:
            following = {
                place: made | player
                for place, player in enumerate(self.players)
                if not made & player and self._orders_to_full.get(made | player, 0)
            }
            place = max(following, key=lambda one: values[self.column[following[one]]])
            order.append(place)
            made = following[place]
        return tuple(order)


def members(combination: int) -> frozenset[int]:
    """Return the changes of a combination."""
    return frozenset(place for place in range(combination.bit_length()) if combination >> place & 1)


def _with_two_joined(players: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for one, other in combinations(players, 2):
        yield tuple(one | other if player == one else player for player in players if player != other)
