"""Shapley values over legal orders, against closed forms and against every order written out."""

import random
from collections.abc import Callable
from itertools import pairwise, permutations

import numpy as np
import pytest

from studies.analysis.discover.shapley import LegalOrders, members


def values_of(orders: LegalOrders, worth: Callable[[frozenset[int]], float]) -> list[float]:
    combinations = np.array([worth(members(one)) for one in orders.legal])
    return [float(value) for value in orders.weights() @ combinations]


def by_every_order(players: int, legal: set[frozenset[int]], worth: Callable[[frozenset[int]], float]) -> list[float]:
    """The definition: mean marginal contribution over the permutations that are legal at every step."""
    found: list[list[float]] = []
    for order in permutations(range(players)):
        steps = [frozenset(order[:count]) for count in range(players + 1)]
        if all(step in legal for step in steps):
            gains = [worth(after) - worth(before) for before, after in pairwise(steps)]
            found.append([gains[order.index(player)] for player in range(players)])
    return [float(mean) for mean in np.mean(found, axis=0)]


@pytest.mark.parametrize("seed", range(8))
def test_values_are_those_of_the_definition_and_sum_to_the_difference(seed):
    draw = random.Random(seed)
    table: dict[frozenset[int], float] = {}

    def worth(made: frozenset[int]) -> float:
        return table.setdefault(made, draw.gauss(0, 1))

    forbidden = {frozenset(draw.sample(range(5), draw.choice((1, 2, 3)))) for _ in range(5)}
    orders = LegalOrders.of(5, lambda made: made not in forbidden)
    legal = {members(one) for one in orders.legal}
    players = [*map(members, orders.players)]

    def joined(made: frozenset[int]) -> frozenset[int]:
        return frozenset().union(*(players[one] for one in made))

    own = {frozenset(i for i in range(len(players)) if players[i] <= made) for made in legal}
    found = values_of(orders, worth)
    assert found == pytest.approx(by_every_order(len(players), own, lambda made: worth(joined(made))), abs=1e-12)
    assert sum(found) == pytest.approx(worth(frozenset(range(5))) - worth(frozenset()), abs=1e-12)


def test_players_are_joined_until_an_order_is_legal():
    pairs = ({0, 1}, {1, 2}, {0, 2})  # no single change is legal, yet no two always go together
    orders = LegalOrders.of(3, lambda made: made in pairs)
    assert orders.count >= 1
    assert sorted(change for player in orders.players for change in members(player)) == [0, 1, 2]
    assert len(orders.players) == 2
    assert sum(values_of(orders, lambda made: len(made) ** 2)) == pytest.approx(9.0)


def test_no_more_players_are_joined_than_an_order_needs():
    legal = ({2}, {3}, {0, 2, 3})
    orders = LegalOrders.of(4, lambda made: made in legal)
    assert {*map(members, orders.players)} == {frozenset(some) for some in ({0, 2}, {1}, {3})}
    assert orders.count >= 1


def test_the_greedy_order_takes_what_gains_most_and_can_still_be_finished():
    orders = LegalOrders.of(3, lambda made: made not in ({1, 2}, {2}))
    worth = {frozenset({1}): 5.0, frozenset({0}): 1.0, frozenset({0, 1}): 6.0, frozenset({0, 2}): 9.0}
    values = np.array([worth.get(members(one), 0.0) for one in orders.legal])
    assert orders.greedy(values) == (1, 0, 2)
    dead_end = LegalOrders.of(3, lambda made: made in ({0}, {1}, {0, 2}))
    values = np.array([{frozenset({1}): 9.0}.get(members(one), 0.0) for one in dead_end.legal])
    assert dead_end.greedy(values) == (0, 2, 1)
