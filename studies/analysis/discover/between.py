"""What each difference between two configurations is worth by a posterior, and in which order they are best made."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from search_space.space.space import Candidate, SearchSpace
from studies.analysis.discover.hybrids import Change, Hybrids
from studies.analysis.discover.shapley import LegalOrders, members
from studies.score_evidence import Estimate

Array = NDArray[np.float64]
Joint = Callable[[Sequence[Candidate]], tuple[Array, Array]]
"""Posterior means and covariance of the true scores of some candidates, ``(M,)`` and ``(M, M)``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One player of the differences, where the greedy path makes its changes.

    Attributes:
        changes: What is decided otherwise, all at once.
        value: Shapley value, over all legal orders.
        gain: What the step adds on the path.
        reached: What is expected after it.
        candidate: What there is after it.
    """

    changes: tuple[Change, ...]
    value: Estimate
    gain: Estimate
    reached: Estimate
    candidate: Candidate

    @property
    def words(self) -> str:
        """Its changes in words."""
        return "; ".join(map(str, self.changes))


class Between:
    """All legal hybrids of two candidates, as a posterior sees them.

    Attributes:
        first: Where the path begins.
        last: Where it ends.
        changes: What differs.
    """

    def __init__(self, first: Candidate, last: Candidate, space: SearchSpace, joint: Joint) -> None:
        """Ask the posterior about every legal hybrid.

        Args:
            first: Such as a published method.
            last: Such as the winner.
            space: Of the study.
            joint: The posterior.
        """
        self.first, self.last = first, last
        hybrids = Hybrids(first, last, space)
        self.changes, hybrid = hybrids.changes, cache(hybrids.hybrid)
        self._orders = LegalOrders.of(len(self.changes), lambda made: hybrid(made) is not None)
        found = (hybrid(members(one)) for one in self._orders.legal)
        self._candidates = [one for one in found if one is not None]
        self._means, self._covariance = joint(self._candidates)
        self._each = np.eye(len(self._means))

    @property
    def difference(self) -> Estimate:
        """How much better the last is than the first."""
        return self._weighed(self._each[-1] - self._each[0])

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The players of the differences in the order of the greedy path; their values sum to the difference."""
        weights, players = self._orders.weights(), self._orders.players
        found, before, made = [], 0, 0
        for player in self._orders.greedy(self._means):
            made |= players[player]
            after = self._orders.column[made]
            found.append(
                Step(
                    changes=tuple(self.changes[change] for change in sorted(members(players[player]))),
                    value=self._weighed(weights[player]),
                    gain=self._weighed(self._each[after] - self._each[before]),
                    reached=self._weighed(self._each[after]),
                    candidate=self._candidates[after],
                )
            )
            before = after
        return tuple(found)

    def _weighed(self, row: Array) -> Estimate:
        variance = float(row @ self._covariance @ row)
        return Estimate(mean=float(row @ self._means), deviation=float(np.sqrt(max(variance, 0.0))))
