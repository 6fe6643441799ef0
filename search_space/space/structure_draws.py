"""Draws that are uniform over structures, not over decisions."""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass

from search_space.space.asking import Choice
from search_space.space.points import FFN
from search_space.space.product import Point
from search_space.space.space import SearchSpace

SEVERAL_SIDES = 0.7
"""Share of the draws with edits at attention and at the FFN, where both are searched."""

UNSIZED_WEIGHT = 0.25
"""How often a form that cannot be sized is drawn, for once that another is: alone it leaves the budget unused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stratum:
    """The structures of one form at a part of the model.

    Attributes:
        weight: How often the form is drawn, beside the others of the part.
        answers: The choices that lead to each structure.
    """

    weight: float
    answers: tuple[Mapping[str, str], ...]


class StructureDraws:
    """Draws uniformly over structures, and not over decisions, of which deep branches have many.

    First where there are edits (both sides in `SEVERAL_SIDES` of the draws), then a functional form for each of
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
        self._strata = {part: _strata(space, part) for part in space.trees}
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
            form, place = _pick({form: one.weight for form, one in strata.items()}, place)
            values |= generator.choice(strata[form].answers)
        for name, choice in self._space.parameters().items():
            if isinstance(choice, Choice) and name.partition(".")[2] in ("layers", "groups"):
                values[name] = generator.choice(choice.choices)
        return values


def _placement_weights(space: SearchSpace) -> dict[str, float]:
    """How often each set of parts is drawn."""
    several = [name for name, parts in space.placements.items() if len(parts) > 1 and FFN in parts]
    others = [name for name in space.placements if name not in several]
    share = SEVERAL_SIDES if several and others else float(bool(several))
    weights = {name: share / len(several) for name in several}
    return weights | {name: (1 - share) / len(others) for name in others}


def _strata(space: SearchSpace, part: str) -> dict[str, _Stratum]:
    points: dict[str, list[Point]] = {}
    for point in space.structures[part]:
        points.setdefault(point.edits[0].form.name, []).append(point)
    return {
        form: _Stratum(
            weight=1.0 if some[0].edits[0].sized_form else UNSIZED_WEIGHT,
            answers=tuple(_answers(space, part, point) for point in some),
        )
        for form, some in points.items()
    }


def _answers(space: SearchSpace, part: str, point: Point) -> dict[str, str]:
    known = space.parameters()
    varied = {f"{part}.{name}": text for name, text in point.path if name in ("activation", "scale")}
    return space.trees[part].answers(point) | {name: text for name, text in varied.items() if name in known}


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
