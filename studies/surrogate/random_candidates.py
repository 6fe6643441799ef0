"""Draws that ask no model: uniform over structures, stratified by the forms of both sides."""

import math
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from search_space.layers import Layers
from search_space.space.points import FFN
from studies.surrogate.encoded_configuration import EncodedConfiguration, EncodedSide, reflected
from studies.surrogate.encoding import Encoding
from studies.surrogate.prior_mean import NO_PLACES, Places

BOTH_SIDES = 0.7
"""Share of draws that edit attention and the FFN."""

TWO_EDITS = 0.5
"""Share of draws of a part with two edits, where there can be two."""

UNSIZED = 0.1
"""Share of draws of a single side that may be of a form that has no size and leaves much of the budget unused."""

MARKED = 0.5
"""Share of the draws of a size that are the largest, its half, its quarter, …"""

ANYWHERE = 0.2
"""Share of rates that are drawn anywhere in their ranges where it is expected which are best."""

_ROUNDING = 1e-9
_PATIENCE = 20

Cell = tuple[str | None, str | None]


class RandomCandidates:
    """Draws genes of a space."""

    def __init__(self, genome: Encoding, places: Places = NO_PLACES) -> None:
        """Sort the placements by the sides that they edit.

        Args:
            genome: Of the space.
            places: Where the rates of some forms are expected to be best; others are drawn anywhere in their ranges.
        """
        self._genome = genome
        self._places = places
        self._both: list[tuple[str, ...]] = []
        self._single: list[tuple[str, ...]] = []
        for parts in genome.space.placements.values():
            sides = {part == FFN for part in parts}
            (self._both if len(sides) == 2 else self._single).append(parts)

    def fresh(self, draw: random.Random, used: Iterable[Cell] | None = None) -> EncodedConfiguration:
        """Genes uniform over forms and then over structures.

        Args:
            draw: The generator.
            used: Forms of the trials so far; if given, forms are drawn among those used least.
        """
        is_both = bool(self._both) and (not self._single or draw.random() < BOTH_SIDES)
        parts = draw.choice(self._both if is_both else self._single)
        attention, ffn = [part for part in parts if part != FFN], [part for part in parts if part == FFN]
        cells = self._cells(attention, ffn, only_sized=not is_both and draw.random() >= UNSIZED)
        if used is not None:
            counts = Counter(used)
            least = min(counts[cell] for cell in cells)
            cells = [cell for cell in cells if counts[cell] == least]
        forms = draw.choice(cells)
        sides = [self._side(draw, some, form) for some, form in zip((attention, ffn), forms, strict=True)]
        share = draw.uniform(*self._genome.space.options.attention_share)
        return self._genome.settled(EncodedConfiguration(sides[0], sides[1], share, self.budget_fraction(draw)))

    def budget_fraction(self, draw: random.Random) -> float:
        """A share of the budget: as often a half, a quarter, … of the largest as anything between, on a log scale."""
        low, high = self._genome.space.options.budget_fractions
        if low == high:
            return high
        octaves = math.log2(high / low)
        if draw.random() < MARKED:
            octaves = float(draw.randint(0, math.floor(octaves + _ROUNDING)))
        else:
            octaves = draw.uniform(0, octaves)
        return high * math.exp2(-octaves)

    def _cells(self, attention: list[str], ffn: list[str], *, only_sized: bool) -> list[Cell]:
        """The forms of both sides that can go together: where one has no size and leaves much unused, the other has."""
        known: list[list[str | None]] = []
        for parts in (attention, ffn):
            known.append([*self._genome.parts[parts[0]].by_form] if parts else [None])
        cells = [(one, two) for one in known[0] for two in known[1]]
        sized = [cell for cell in cells if self._is_filling(attention, cell[0]) or self._is_filling(ffn, cell[1])]
        return sized if sized and (only_sized or (attention and ffn)) else cells

    def _is_filling(self, parts: list[str], form: str | None) -> bool:
        return bool(parts) and form in self._genome.parts[parts[0]].filling

    def _side(self, draw: random.Random, parts: list[str], form: str | None) -> EncodedSide | None:
        if not parts:
            return None
        numbers = []
        for part in parts:
            by_form = self._genome.parts[part].by_form
            known = by_form[form] if form in by_form and part == parts[0] else by_form[draw.choice([*by_form])]
            numbers.append((part, draw.choice(known)))
        side = EncodedSide(tuple(numbers), self.layers(draw), self._unit_lr(draw, form))
        for part in parts:
            if part in self._genome.space.pairs and draw.random() < TWO_EDITS:
                side = self.with_second(draw, side, part) or side
        return side

    def _unit_lr(self, draw: random.Random, form: str | None) -> float:
        """The place of a rate in its range; one in five is drawn anywhere, whatever is expected."""
        place = None if form is None else self._places.get(form)
        if place is None or draw.random() < ANYWHERE:
            return draw.uniform(-1, 1)
        return reflected(draw.gauss(place.mean, place.deviation), -1, 1)

    def with_second(self, draw: random.Random, side: EncodedSide, part: str) -> EncodedSide | None:
        """A side with a second edit at a part that has one: a form, and then a structure; None if none was legal."""
        parts = side.parts
        place = next(place for place, (name, _) in enumerate(parts) if name == part)
        by_form = self._genome.parts[part].by_form
        for _ in range(_PATIENCE):
            number = draw.choice(by_form[draw.choice([*by_form])])
            if self._genome.is_pair(part, parts[place][1], number):
                split = draw.uniform(*self._genome.space.options.split)
                both = (*parts[: place + 1], (part, number), *parts[place + 1 :])
                return self._genome.with_parts(replace(side, split=split), both)
        return None

    def layers(self, draw: random.Random) -> Layers:
        """A choice of layers: its kind, and then one of it."""
        return draw.choice(self._genome.layers[draw.choice(self._genome.space.layers)])

    def side(self, draw: random.Random, side: str, other: EncodedSide | None) -> EncodedSide | None:
        """A side to go with another one; None if nothing may."""
        beside = tuple(part for part, _ in other.parts) if other is not None else ()
        fitting = [
            parts for parts in self._both if tuple(part for part in parts if (part == FFN) is (side != FFN)) == beside
        ]
        if not fitting:
            return None
        parts = [part for part in draw.choice(fitting) if (part == FFN) is (side == FFN)]
        return self._side(draw, parts, draw.choice([*self._genome.parts[parts[0]].by_form]))
