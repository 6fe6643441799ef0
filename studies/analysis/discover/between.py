"""Gains of the differences between two configurations by a posterior, along the greedy path between them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from search_space.space.space import Candidate, SearchSpace
from studies.analysis.discover.hybrids import Change, Hybrids
from studies.score_evidence import Estimate

Array = NDArray[np.float64]
Joint = Callable[[Sequence[Candidate]], tuple[Array, Array]]
"""Function from candidates to posterior means and covariance of their true scores, ``(M,)`` and ``(M, M)``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Step of the greedy path between two configurations.

    Attributes:
        changes: Decisions that change together.
        gain: Gain of the step.
        reached: Expected score after the step.
        candidate: Configuration after the step.
    """

    changes: tuple[Change, ...]
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
        self.changes = hybrids.changes
        found = {made: hybrids.hybrid(members(made)) for made in range(1 << len(self.changes))}
        self._legal = {made: one for made, one in found.items() if one is not None}
        self._places = {made: place for place, made in enumerate(self._legal)}
        self._means, self._covariance = joint(tuple(self._legal.values()))

    @property
    def difference(self) -> Estimate:
        """Estimate of the last candidate's score minus the first one's."""
        return self._estimate(max(self._legal), 0)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """Steps of the greedy path; their gains sum to the difference.

        Each step reaches the highest mean by as few changes as are legal together; the first of equals.
        """
        found, before = [], 0
        while before != max(self._legal):
            after = max(smallest_supersets(before, self._legal), key=lambda made: self._means[self._places[made]])
            found.append(
                Step(
                    changes=tuple(self.changes[change] for change in sorted(members(after ^ before))),
                    gain=self._estimate(after, before),
                    reached=self._estimate(after),
                    candidate=self._legal[after],
                )
            )
            before = after
        return tuple(found)

    def _estimate(self, after: int, before: int | None = None) -> Estimate:
        """Return the estimate of a hybrid's score, or of its difference to another's."""
        row = np.zeros(len(self._means))
        row[self._places[after]] = 1.0
        if before is not None:
            row[self._places[before]] -= 1.0
        variance = float(row @ self._covariance @ row)
        return Estimate(mean=float(row @ self._means), deviation=float(np.sqrt(max(variance, 0.0))))


def members(made: int) -> frozenset[int]:
    """Return the changes of a bit mask."""
    return frozenset(place for place in range(made.bit_length()) if made >> place & 1)


def smallest_supersets(made: int, legal: Iterable[int]) -> list[int]:
    """Return the legal proper supersets of a bit mask that contain no other one, by their first added change."""
    found: list[int] = []
    for one in sorted(legal, key=int.bit_count):
        if one & made == made != one and not any(one & smaller == smaller for smaller in found):
            found.append(one)
    return sorted(found, key=lambda one: (one ^ made) & -(one ^ made))
