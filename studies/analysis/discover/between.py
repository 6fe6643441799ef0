"""Values of the differences between two configurations by a posterior, and the greedy path between them."""

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
"""Function from candidates to posterior means and covariance of their true scores, ``(M,)`` and ``(M, M)``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Step of the greedy path between two configurations.

    Attributes:
        changes: Decisions that change together.
        value: Shapley value over all legal orders.
        gain: Gain of the step on the path.
        reached: Expected score after the step.
        candidate: Configuration after the step.
    """

    changes: tuple[Change, ...]
    value: Estimate
    gain: Estimate
    reached: Estimate
    candidate: Candidate

    @property
    def words(self) -> str:
        """Changes in words."""
        return "; ".join(map(str, self.changes))


class Between:
    """All legal hybrids of two candidates with their posterior.

    Attributes:
        first: Begin of the path.
        last: End of the path.
        changes: Differences between the two.
    """

    def __init__(self, first: Candidate, last: Candidate, space: SearchSpace, joint: Joint) -> None:
        """Compute the posterior of every legal hybrid.

        Args:
            first: Candidate such as a published method.
            last: Candidate such as the winner.
            space: Search space of the study.
            joint: Posterior of candidates.
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
        """Estimate of the last candidate's score minus the first one's."""
        return self._weighed(self._each[-1] - self._each[0])

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """Steps of the greedy path; their values sum to the difference."""
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
