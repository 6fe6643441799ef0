"""Draws that are uniform over structures, not over decisions."""

import math
import random
from collections.abc import Iterable, Mapping

from search_space.space.points import FFN
from search_space.space.product import Point, Structure
from search_space.space.space import SearchSpace

BOTH_SIDES_SHARE = 0.7
"""Share of the draws with edits at attention and at the FFN, where both are searched."""

TWO_EDITS_SHARE = 0.5
"""Share of the draws at a part with two edits, where two are searched."""

UNSIZED_WEIGHT = 0.25
"""How often a form that cannot be sized is drawn, for once that another is: alone it leaves the budget unused."""

_OF_LAYERS = (["layers"], ["groups"], ["pattern"])
_Strata = dict[str, list[Point]]
"""The structures of a part of the model by their form."""


class StructureDraws:
    """Draws uniformly over structures, and not over decisions, of which deep branches have many.

    First where there are edits (both sides in `BOTH_SIDES_SHARE` of the draws), then a functional form for each of
    them, then a structure of the form, every one as likely. Draw number ``n`` of a study has its place in a sequence
    that covers placements and forms evenly, however few draws there are.

    Args:
        space: With something to search beside published methods.
        seed: Of the study.
    """

    def __init__(self, space: SearchSpace, seed: int) -> None:
        """List the structures."""
        self._space = space
        self._seed = seed
        self._strata = {part: _strata(space.structures[part]) for part in space.trees}
        self._placements = _placement_weights(space)

    def draw(self, number: int, retry: int = 0) -> dict[str, str]:
        """Choices that make a structure, by the names of their parameters; the numbers are left to others.

        Args:
            number: Which draw.
            retry: How often it was drawn before; another place of the sequence each time.
        """
        generator = random.Random(f"{self._seed}/{number}/{retry}")
        place = _sequence(self._seed, number) if retry == 0 else generator.random()
        placement, place = _pick(self._placements, place)
        values: dict[str, str] = {}
        if len(self._space.placements) > 1:
            values["placement"] = placement
        for part in self._space.placements[placement]:
            strata = self._strata[part]
            form, place = _pick(_weights(strata), place)
            first = generator.choice(strata[form])
            values |= self._space.questions[part].choices_to(self._with_second(part, first, generator))
        parameters = self._space.parameters()
        for name, choice in parameters.items():
            if isinstance(choice, tuple) and name.split(".")[1:2] in _OF_LAYERS:
                values[name] = generator.choice(choice)
        return {name: value for name, value in values.items() if name in parameters}

    def _with_second(self, part: str, first: Point, generator: random.Random) -> Structure:
        """A structure alone, or with one of those that may go with it: first a form, then a structure of it."""
        pairs = self._space.pairs.get(part)
        if pairs is None or generator.random() >= TWO_EDITS_SHARE:
            return (first,)
        strata = _strata(pairs.partners(first))
        if not strata:
            return (first,)
        form, _ = _pick(_weights(strata), generator.random())
        return pairs.pair(first, generator.choice(strata[form]))


def _placement_weights(space: SearchSpace) -> dict[str, float]:
    """How often each set of parts is drawn."""
    several = [name for name, parts in space.placements.items() if len(parts) > 1 and FFN in parts]
    others = [name for name in space.placements if name not in several]
    share = BOTH_SIDES_SHARE if several and others else float(bool(several))
    weights = {name: share / len(several) for name in several}
    return weights | {name: (1 - share) / len(others) for name in others}


def _strata(structures: Iterable[Point]) -> _Strata:
    strata: _Strata = {}
    for point in structures:
        strata.setdefault(point.edits[0].form.name, []).append(point)
    return strata


def _weights(strata: _Strata) -> dict[str, float]:
    """How often each form is drawn, beside the others of the part."""
    return {form: 1.0 if some[0].edits[0].sized_form else UNSIZED_WEIGHT for form, some in strata.items()}


def _pick(weights: Mapping[str, float], place: float) -> tuple[str, float]:
    """What stands at a place in [0, 1) when each name is as long as its weight, and the place within it."""
    place *= sum(weights.values())
    name = ""
    for name, weight in weights.items():
        if place < weight:
            return name, place / weight
        place -= weight
    return name, math.nextafter(1.0, 0.0)


def _sequence(seed: int, number: int) -> float:
    """A sequence in [0, 1) without gaps or clusters: multiples of the golden ratio from a random start."""
    return (random.Random(seed).random() + number * (math.sqrt(5) - 1) / 2) % 1.0
