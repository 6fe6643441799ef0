"""Random candidates without a model: uniform over structures, stratified by the forms of both sides."""

import math
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from search_space.layers import Layers
from search_space.space.points import FFN
from studies.surrogate.encoded_configuration import EncodedConfiguration, EncodedSide, reflect
from studies.surrogate.encoding import Encoding
from studies.surrogate.prior_mean import NO_EXPECTED_RATES, ExpectedRates

BOTH_SIDES = 0.7
"""Share of draws that edit both attention and the FFN."""

TWO_EDITS = 0.5
"""Share of draws of a part with two edits, where two are possible."""

UNSIZED = 0.1
"""Share of single-side draws in which a form without a size may leave much of the budget unused."""

HALVING_FRACTION = 0.5
"""Share of size draws that are the largest size, its half, its quarter, …"""

UNIFORM_FRACTION = 0.2
"""Share of learning rates drawn uniformly in their ranges although a best rate is expected."""

_ROUNDING = 1e-9
_PATIENCE = 20

Cell = tuple[str | None, str | None]


class RandomCandidates:
    """Random encoded configurations of a space."""

    def __init__(self, encoding: Encoding, expected_rates: ExpectedRates = NO_EXPECTED_RATES) -> None:
        """Group the placements by the sides that they edit.

        Args:
            encoding: Encoding of the space.
            expected_rates: Expected best learning rates of some forms; others are drawn uniformly in their ranges.
        """
        self._encoding = encoding
        self._expected_rates = expected_rates
        self._both: list[tuple[str, ...]] = []
        self._single: list[tuple[str, ...]] = []
        for parts in encoding.space.placements.values():
            sides = {part == FFN for part in parts}
            (self._both if len(sides) == 2 else self._single).append(parts)

    def draw(self, draw: random.Random, used: Iterable[Cell] | None = None) -> EncodedConfiguration:
        """Return an encoded configuration, uniform over forms and then over structures.

        Args:
            draw: Random generator.
            used: Forms of the trials so far; if given, forms are drawn among the least used ones.
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
        share = draw.uniform(*self._encoding.space.options.attention_share)
        return self._encoding.normalized(EncodedConfiguration(sides[0], sides[1], share, self.budget_fraction(draw)))

    def budget_fraction(self, draw: random.Random) -> float:
        """Draw a share of the budget: a power-of-two fraction of the largest, or log-uniform in the range."""
        low, high = self._encoding.space.options.budget_fractions
        if low == high:
            return high
        octaves = math.log2(high / low)
        if draw.random() < HALVING_FRACTION:
            octaves = float(draw.randint(0, math.floor(octaves + _ROUNDING)))
        else:
            octaves = draw.uniform(0, octaves)
        return high * math.exp2(-octaves)

    def _cells(self, attention: list[str], ffn: list[str], *, only_sized: bool) -> list[Cell]:
        """Return the combinations of forms of both sides that use the budget.

        A form without a size that leaves much of the budget unused is combined with a sized one, or stands alone if
        allowed.
        """
        forms_by_side: list[list[str | None]] = []
        for parts in (attention, ffn):
            forms_by_side.append([*self._encoding.parts[parts[0]].by_form] if parts else [None])
        cells = [(one, two) for one in forms_by_side[0] for two in forms_by_side[1]]
        sized = [cell for cell in cells if self._uses_budget(attention, cell[0]) or self._uses_budget(ffn, cell[1])]
        return sized if sized and (only_sized or (attention and ffn)) else cells

    def _uses_budget(self, parts: list[str], form: str | None) -> bool:
        return bool(parts) and form in self._encoding.parts[parts[0]].filling_forms

    def _side(self, draw: random.Random, parts: list[str], form: str | None) -> EncodedSide | None:
        if not parts:
            return None
        numbers = []
        for part in parts:
            by_form = self._encoding.parts[part].by_form
            numbers_of_form = (
                by_form[form] if form in by_form and part == parts[0] else by_form[draw.choice([*by_form])]
            )
            numbers.append((part, draw.choice(numbers_of_form)))
        side = EncodedSide(tuple(numbers), self.layers(draw), self._unit_lr(draw, form))
        for part in parts:
            if part in self._encoding.space.pairs and draw.random() < TWO_EDITS:
                side = self.with_second(draw, side, part) or side
        return side

    def _unit_lr(self, draw: random.Random, form: str | None) -> float:
        """Draw a learning rate in its range, near the expected best one or uniformly."""
        expected = None if form is None else self._expected_rates.get(form)
        if expected is None or draw.random() < UNIFORM_FRACTION:
            return draw.uniform(-1, 1)
        return reflect(draw.gauss(expected.mean, expected.deviation), -1, 1)

    def with_second(self, draw: random.Random, side: EncodedSide, part: str) -> EncodedSide | None:
        """Return the side with a second edit at a part, uniform over forms, then structures; None if none is legal."""
        parts = side.parts
        place = next(place for place, (name, _) in enumerate(parts) if name == part)
        by_form = self._encoding.parts[part].by_form
        for _ in range(_PATIENCE):
            number = draw.choice(by_form[draw.choice([*by_form])])
            if self._encoding.is_legal_pair(part, parts[place][1], number):
                split = draw.uniform(*self._encoding.space.options.split)
                both = (*parts[: place + 1], (part, number), *parts[place + 1 :])
                return self._encoding.with_parts(replace(side, split=split), both)
        return None

    def layers(self, draw: random.Random) -> Layers:
        """Draw a kind of layer choice, then one choice of this kind."""
        return draw.choice(self._encoding.layers[draw.choice(self._encoding.space.layers)])

    def side(self, draw: random.Random, side: str, other: EncodedSide | None) -> EncodedSide | None:
        """Return a random side that may be combined with the other one; None if there is none."""
        other_parts = tuple(part for part, _ in other.parts) if other is not None else ()
        fitting = [
            parts
            for parts in self._both
            if tuple(part for part in parts if (part == FFN) is (side != FFN)) == other_parts
        ]
        if not fitting:
            return None
        parts = [part for part in draw.choice(fitting) if (part == FFN) is (side == FFN)]
        return self._side(draw, parts, draw.choice([*self._encoding.parts[parts[0]].by_form]))
