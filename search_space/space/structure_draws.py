"""Draws that are uniform over structures, not over decisions."""

import math
import random
from collections.abc import Iterable, Mapping

from search_space.space.points import FFN
from search_space.space.product import Point, Structure
from search_space.space.space import SearchSpace

BOTH_SIDES_SHARE = 0.7
"""Share of the draws with edits at attention and at the FFN, if both are searched."""

TWO_EDITS_SHARE = 0.5
"""Share of the draws at a part with two edits, if two are searched."""

UNSIZED_WEIGHT = 0.25
"""Relative frequency of forms that cannot be sized: alone they leave the budget unused."""

_OF_LAYERS = (["layers"], ["groups"], ["pattern"])
_Strata = dict[str, list[Point]]
"""Structures of a part of the model by their form."""


class StructureDraws:
    """Uniform draws over structures, and not over decisions, of which deep branches have many.

    First the placement is drawn (both sides in `BOTH_SIDES_SHARE` of the draws), then a functional form for each part.
    Then a structure of the form is drawn, each with equal probability. Draw number ``n`` of a study has a position in a
    sequence that covers placements and forms evenly, even for few draws.

    Args:
        space: Search space with more than published methods.
        seed: Seed of the study.
    """

    def __init__(self, space: SearchSpace, seed: int) -> None:
        """List the structures by form."""
        self._space = space
        self._seed = seed
        self._strata = {part: _strata(space.structures[part]) for part in space.trees}
        self._placements = _placement_weights(space)

    def draw(self, number: int, retry: int = 0) -> dict[str, str]:
        """Draw the categorical parameters of a structure; numbers are left out.

        Args:
            number: Number of the draw.
            retry: Number of earlier attempts; each has another position of the sequence.
        """
        generator = random.Random(f"{self._seed}/{number}/{retry}")
        position = _sequence(self._seed, number) if retry == 0 else generator.random()
        placement, position = _pick(self._placements, position)
        values: dict[str, str] = {}
        if len(self._space.placements) > 1:
            values["placement"] = placement
        for part in self._space.placements[placement]:
            strata = self._strata[part]
            form, position = _pick(_weights(strata), position)
            first = generator.choice(strata[form])
            values |= self._space.questions[part].choices_to(self._with_second(part, first, generator))
        parameters = self._space.parameters()
        for name, choice in parameters.items():
            if isinstance(choice, tuple) and name.split(".")[1:2] in _OF_LAYERS:
                values[name] = generator.choice(choice)
        return {name: value for name, value in values.items() if name in parameters}

    def _with_second(self, part: str, first: Point, generator: random.Random) -> Structure:
        """Return a structure alone, or with a partner: first a form is drawn, then a structure of it."""
        pairs = self._space.pairs.get(part)
        if pairs is None or generator.random() >= TWO_EDITS_SHARE:
            return (first,)
        strata = _strata(pairs.partners(first))
        if not strata:
            return (first,)
        form, _ = _pick(_weights(strata), generator.random())
        return pairs.pair(first, generator.choice(strata[form]))


def _placement_weights(space: SearchSpace) -> dict[str, float]:
    """Return the probability of each set of parts."""
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
    """Return the relative frequency of each form of a part."""
    return {form: 1.0 if points[0].edits[0].sized_form else UNSIZED_WEIGHT for form, points in strata.items()}


def _pick(weights: Mapping[str, float], position: float) -> tuple[str, float]:
    """Return the name at a position in [0, 1) among intervals as long as the weights, and the position within it."""
    position *= sum(weights.values())
    name = ""
    for name, weight in weights.items():
        if position < weight:
            return name, position / weight
        position -= weight
    return name, math.nextafter(1.0, 0.0)


def _sequence(seed: int, number: int) -> float:
    """Return a number of an even sequence in [0, 1): multiples of the golden ratio from a random start."""
    return (random.Random(seed).random() + number * (math.sqrt(5) - 1) / 2) % 1.0
