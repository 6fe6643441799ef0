"""A few configurations of which, on every task that is known, one is good."""

import numpy as np
from numpy.typing import NDArray

LARGEST = 6

_LEAST_GAIN = 1e-9


def portfolio(worth: NDArray[np.float64], most: int = LARGEST) -> list[int]:
    """The rows that are chosen greedily for the mean over columns of the best entry; the best one first.

    The value of a set grows by less the more it holds, so a greedy choice has at least 1 - 1/e of what the best choice
    of so many has (Nemhauser et al. 1978). It ends when no row adds anything.

    Args:
        worth: Of every configuration on every task, at least 0, (C, S).
        most: How many at most.
    """
    chosen: list[int] = []
    best = np.zeros(worth.shape[1])
    while len(chosen) < min(most, len(worth)):
        values = np.maximum(worth, best).mean(axis=1)
        place = int(np.argmax(values))
        if not values[place] > best.mean() + _LEAST_GAIN:
            break
        chosen.append(place)
        best = np.maximum(best, worth[place])
    return chosen
