"""Hybrids of two trained configurations, with some of the differences between them.

A *change* is one decision taken differently: a design dimension at a side, a further edit, the share of attention, or a
side's learning rate. Rates are relative to the range of their form. The size is a change where only one of the two uses
the budget. A *hybrid* has some of the changes, and its bottlenecks are resized for the same budget. It is legal if it
satisfies the rules of the search space and fits the budget.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from search_space.canonical import canonical
from search_space.configuration import Configuration
from search_space.edit import Edit
from search_space.errors import BudgetError, InvalidEditError
from search_space.parameter_counts.budget import solve
from search_space.parameter_counts.counts import count
from search_space.space.points import ATTENTION, FFN
from search_space.space.space import Candidate, SearchSpace
from studies.analysis.discover.patterns import Pattern, differing, is_sized, mixed, patterns_of
from studies.surrogate.features import lr_at, unit_lr_of

BOTH = "both"
MOST = 10
"""Largest number of separate changes; with more, the smallest ones of a side are merged."""

_LEAST = ("details", "layers", "activation", "scale", "heads", "insertion", "write", "gate")
_SAME_SHARE = 0.02
_USES_BUDGET = 0.95
_SIDES = (ATTENTION, FFN)
_NOTHING = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One or several decisions taken differently.

    Attributes:
        side: ``attention``, ``ffn`` or ``both``.
        dimension: Dimension of the decision, several joined by ``+``.
        before: Value in the first configuration.
        after: Value in the last configuration.
        place: Index of the edit on its side; 0 unless there are several.
    """

    side: str
    dimension: str
    before: str
    after: str
    place: int = 0

    @property
    def decisions(self) -> frozenset[tuple[str, str, int]]:
        """Dimensions that change."""
        return frozenset((self.side, name, self.place) for name in self.dimension.split("+"))

    def joined(self, other: "Change") -> "Change":
        """Return both changes as one."""
        names = f"{self.dimension}+{other.dimension}"
        return replace(
            self, dimension=names, before=f"{self.before}, {other.before}", after=f"{self.after}, {other.after}"
        )

    def __str__(self) -> str:
        """Return text such as ``FFN gate scale_learned instead of add`` or ``LoRA on FFN up added``."""
        if self.dimension == "edit":
            return f"{self.after} added" if self.before == _NOTHING else f"{self.before} removed"
        where = {ATTENTION: "attention ", FFN: "FFN "}.get(self.side, "")
        return f"{where}{self.dimension.replace('+', ' and ')} {self.after} instead of {self.before}"


class Hybrids:
    """Configurations between two candidates.

    Attributes:
        first: Candidate without the changes.
        last: Candidate with all changes.
        changes: Differences, attention first.
    """

    def __init__(self, first: Candidate, last: Candidate, space: SearchSpace) -> None:
        """Find the differences.

        Args:
            first: Candidate such as a published method.
            last: Candidate such as the winner of a study.
            space: Search space with the budget of hybrids and the ranges of learning rates.
        """
        self.first, self.last, self._space = first, last, space
        self._ends = tuple(_End(one, space) for one in (first, last))
        self.changes = _at_most(MOST, tuple(self._differences()))

    def hybrid(self, made: Collection[int]) -> Candidate | None:
        """Return the configuration with some changes; None if it is not legal.

        Args:
            made: Indices of the changes.
        """
        if len(set(made)) in (0, len(self.changes)):
            return self.last if made else self.first
        decisions = frozenset[tuple[str, str, int]]().union(*(self.changes[place].decisions for place in made))
        try:
            return self._built(decisions)
        except (BudgetError, InvalidEditError):
            return None

    def _differences(self) -> Iterator[Change]:
        one, other = self._ends
        for side in _SIDES:
            yield from self._at(side)
        if one.share is not None and other.share is not None and abs(one.share - other.share) > _SAME_SHARE:
            yield Change(
                side=BOTH, dimension="share of attention", before=f"{one.share:.0%}", after=f"{other.share:.0%}"
            )
        if one.parameters != other.parameters:
            yield Change(
                side=BOTH, dimension="size", before=f"{one.parameters:,}", after=f"{other.parameters:,} parameters"
            )

    def _at(self, side: str) -> Iterator[Change]:
        one, other = self._ends
        for place, (mine, theirs) in enumerate(self._pairs[side]):
            if mine is None or theirs is None:
                yield Change(side=side, dimension="edit", before=_words(mine), after=_words(theirs), place=place)
            else:
                for name in differing(mine, theirs):
                    before, after = mine.words(name), theirs.words(name)
                    yield Change(side=side, dimension=name, before=before, after=after, place=place)
        if all(side in end.peak_lrs for end in self._ends):
            same_range = one.ranges.get(side) == other.ranges.get(side)
            rates = [f"{end.peak_lrs[side]:.1e}" for end in self._ends]
            places = rates if same_range else [f"{(end.unit_lrs[side] + 1) / 2:.0%}" for end in self._ends]
            if places[0] != places[1]:
                before, after = rates if rates[0] != rates[1] else map("{} of its range".format, places)
                yield Change(side=side, dimension="learning rate", before=before, after=after)

    @cached_property
    def _pairs(self) -> dict[str, tuple[tuple[Pattern | None, Pattern | None], ...]]:
        """Pairs of the most similar edits of both by side, then edits of one alone."""
        return {side: tuple(_matched(*(end.patterns[side] for end in self._ends))) for side in _SIDES}

    def _built(self, made: frozenset[tuple[str, str, int]]) -> Candidate:
        one, other = self._ends
        chosen = {side: self._mixed(side, made) for side in _SIDES}
        edits = {side: tuple(edit for pattern in some for edit in pattern.edits) for side, some in chosen.items()}
        structure = Configuration(edits=(*edits[ATTENTION], *edits[FFN]))
        first, second = (other, one) if (BOTH, "share of attention", 0) in made else (one, other)
        share = next((end.share for end in (first, second) if end.share is not None), 0.5)
        if not all(is_sized(some) for some in chosen.values()):
            share = float(is_sized(chosen[ATTENTION]))
        size = (other if (BOTH, "size", 0) in made else one).parameters
        splits = {
            chosen[side][0].edits: one.splits.get(side, other.splits.get(side, 0.5))
            for side in _SIDES
            if len(chosen[side]) > 1 and is_sized(chosen[side][:1]) and is_sized(chosen[side][1:])
        }
        rank = self._space.options.rank
        solved = solve(structure, self._space.shape, attention_share=share, parameters=size, splits=splits, rank=rank)
        attention, ffn = (self._peak_lr(side, edits[side], made) for side in _SIDES)
        return Candidate.of(solved, (attention, ffn), self._space.shape)

    def _mixed(self, side: str, made: frozenset[tuple[str, str, int]]) -> tuple[Pattern, ...]:
        found = []
        for place, (mine, theirs) in enumerate(self._pairs[side]):
            if mine is not None and theirs is not None:
                at = place
                found.append(mixed(mine, theirs, lambda name, at=at: (side, name, at) in made))  # type: ignore[misc]
            else:
                kept = theirs if (side, "edit", place) in made else mine
                found += [] if kept is None else [kept]
        return tuple(found)

    def _peak_lr(self, side: str, edits: tuple[Edit, ...], made: frozenset[tuple[str, str, int]]) -> float | None:
        if not edits:
            return None
        one, other = (end.unit_lrs.get(side) for end in self._ends)
        unit_lr = other if one is None or (other is not None and (side, "learning rate", 0) in made) else one
        return lr_at(unit_lr or 0.0, *self._space.peak_lr_range(edits))


class _End:
    """One of two candidates, as decisions.

    Attributes:
        patterns: Patterns by side.
        ranges: Ranges of learning rates by side with edits.
        unit_lrs: Positions of the learning rates in these ranges.
        share: Share of attention in the stored parameters; None unless both sides have a size.
        splits: Share of the first of two edits, by side.
        parameters: Number of parameters of a hybrid of its size: the budget, unless it could be larger than it is.
    """

    def __init__(self, candidate: Candidate, space: SearchSpace) -> None:
        configuration = canonical(candidate.configuration, space.shape)
        edits = {ATTENTION: configuration.attention, FFN: configuration.ffn}
        self.patterns = {side: patterns_of(some) for side, some in edits.items()}
        peak_lrs = {ATTENTION: candidate.attention_learning_rate, FFN: candidate.ffn_learning_rate}
        self.peak_lrs = {side: peak_lr for side, peak_lr in peak_lrs.items() if edits[side] and peak_lr is not None}
        self.ranges = {side: space.peak_lr_range(edits[side]) for side in self.peak_lrs}
        self.unit_lrs = {side: unit_lr_of(peak_lr, *self.ranges[side]) for side, peak_lr in self.peak_lrs.items()}
        self.share = candidate.attention_share if all(map(is_sized, self.patterns.values())) else None
        self.splits = space.splits_of(configuration)
        self.parameters = self._parameters(configuration, candidate, space)

    @staticmethod
    def _parameters(configuration: Configuration, candidate: Candidate, space: SearchSpace) -> int:
        stored = candidate.counts.stored
        try:
            limits: dict[str, Any] = {"parameters": space.budget, "rank": space.options.rank}
            full = solve(configuration, space.shape, attention_share=candidate.attention_share, **limits)
        except (BudgetError, InvalidEditError):
            return max(stored, space.budget)
        return space.budget if stored >= _USES_BUDGET * count(full, space.shape).stored else stored


def _words(pattern: Pattern | None) -> str:
    if pattern is None:
        return _NOTHING
    first = pattern.edits[0]
    return f"{first.form.display_name(first)} on {pattern.words('write')}"


def _matched(mine: tuple[Pattern, ...], theirs: tuple[Pattern, ...]) -> Iterator[tuple[Pattern | None, Pattern | None]]:
    left, right = list(mine), list(theirs)
    while left and right:
        one, other = min(((one, other) for one in left for other in right), key=lambda pair: len(differing(*pair)))
        left.remove(one)
        right.remove(other)
        yield one, other
    yield from ((one, None) for one in left)
    yield from ((None, other) for other in right)


def _at_most(most: int, changes: tuple[Change, ...]) -> tuple[Change, ...]:
    """Return at most ``most`` changes, merging the smallest decisions of an edit."""
    found = list(changes)
    for name in _LEAST:
        for change in [one for one in found if one.dimension.split("+")[0] == name]:
            place = found.index(change)
            alike = [
                other
                for other in found
                if other is not change
                and (other.side, other.place) == (change.side, change.place)
                and other.dimension not in ("edit", "learning rate")
            ]
            if len(found) <= most or not alike:
                continue
            found[found.index(alike[-1])] = alike[-1].joined(change)
            del found[place]
    return tuple(found)
