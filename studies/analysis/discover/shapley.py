"""What each of several changes is worth when only some of their combinations are legal: exact Shapley values.

The value of a change is its marginal contribution, averaged over all *legal orders*: orders of the changes such that
what has been changed so far is legal at every step (Faigle and Kern 1992 for precedences; here for any family of legal
sets). Where everything is legal these are Shapley's values. The values of all changes sum to the difference of the two
ends, because the contributions along each order do.

Changes that need each other are one player: those that every legal combination has both or neither of. Where no legal
order is left even so, two players are joined, those after which there is one, and most is legal, until there is one.
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
    """The orders in which players can join, every combination on the way being legal.

    A combination is a whole number with a bit for every change that is made.

    Attributes:
        players: The changes that each of them makes.
        legal: Combinations of whole players, ascending; the first has nobody, the last everybody.
    """

    players: tuple[int, ...]
    legal: tuple[int, ...]

    @classmethod
    def of(cls, changes: int, is_legal: Callable[[frozenset[int]], bool]) -> "LegalOrders":
        """The orders of some changes.

        Args:
            changes: How many.
            is_legal: Of the changes that are made; not asked of none and of all, which are.
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
        """Of some players; what has a part of a player only is left out."""
        whole = (one for one in legal if all(one & player in (0, player) for player in players))
        return cls(players=players, legal=tuple(whole))

    @cached_property
    def column(self) -> Mapping[int, int]:
        """The place of every legal combination among all."""
        return {combination: place for place, combination in enumerate(self.legal)}

    @property
    def count(self) -> int:
        """How many orders there are."""
        return self._ways_from_nobody[self.legal[-1]]

    @cached_property
    def _ways_from_nobody(self) -> Mapping[int, int]:
        """Of every combination, in how many legal orders its players can have joined."""
        ways = {0: 1}
        for one in self.legal[1:]:
            ways[one] = sum(ways.get(one ^ player, 0) for player in self.players if one & player)
        return ways

    @cached_property
    def _ways_to_everybody(self) -> Mapping[int, int]:
        """Of every combination, in how many legal orders the others can still join."""
        ways = {self.legal[-1]: 1}
        for one in self.legal[-2::-1]:
            ways[one] = sum(ways.get(one | player, 0) for player in self.players if not one & player)
        return ways

    def weights(self) -> Array:
        """Values of players are ``weights @ values of combinations``, ``(players, legal)``."""
        weights = np.zeros((len(self.players), len(self.legal)))
        for one in self.legal:
            for place, player in enumerate(self.players):
                onwards = 0 if one & player else self._ways_to_everybody.get(one | player, 0)
                if onwards:
                    share = self._ways_from_nobody[one] * onwards / self.count
                    weights[place, self.column[one | player]] += share
                    weights[place, self.column[one]] -= share
        return weights

    def greedy(self, values: Array) -> tuple[int, ...]:
        """Places of the players in the legal order in which that joins next which gains most, the first of equals.

        Args:
            values: Of the legal combinations, ``(legal,)``.
        """
        order: list[int] = []
        made = 0
        while made != self.legal[-1]:
            following = {
                place: made | player
                for place, player in enumerate(self.players)
                if not made & player and self._ways_to_everybody.get(made | player, 0)
            }
            place = max(following, key=lambda one: values[self.column[following[one]]])
            order.append(place)
            made = following[place]
        return tuple(order)


def members(combination: int) -> frozenset[int]:
    """The changes that a combination makes."""
    return frozenset(place for place in range(combination.bit_length()) if combination >> place & 1)


def _with_two_joined(players: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for one, other in combinations(players, 2):
        yield tuple(one | other if player == one else player for player in players if player != other)
