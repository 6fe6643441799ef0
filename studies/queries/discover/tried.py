"""How many trials have what: counted once, however many questions ask."""

from collections import Counter
from collections.abc import Iterable

from search_space.words.describe import side_view
from studies.queries.discover.measure import SIDES
from studies.queries.discover.traits import DIMENSIONS
from studies.search.factored.observation import Observation

BOTH = "both"


class Tried:
    """The trials with a reading, by what they edit.

    Args:
        history: All trials.
    """

    def __init__(self, history: Iterable[Observation]) -> None:
        """Count them."""
        self._values: Counter[tuple[str, str, str]] = Counter()
        self._edited: Counter[str] = Counter()
        for one in history:
            if not one.readings:
                continue
            views = {side: side_view(getattr(one.configuration, side)) for side in SIDES}
            edited = [side for side, view in views.items() if view is not None]
            self._edited[BOTH if len(edited) == len(SIDES) else "".join(edited)] += 1
            for side, view in views.items():
                for dimension in DIMENSIONS:
                    value = None if view is None else getattr(view, dimension)
                    if value is not None:
                        self._values[side, dimension, str(value)] += 1

    def editing(self, sides: str) -> int:
        """How many edit exactly ``attention``, ``ffn`` or ``both``."""
        return self._edited[sides]

    def at(self, side: str) -> int:
        """How many edit a side, alone or beside the other."""
        return self._edited[BOTH] + (self._edited[side] if side != BOTH else 0)

    def having(self, side: str, dimension: str, *values: str) -> int:
        """How many have one of some values of a dimension; any value where none is given."""
        return sum(
            count
            for (at, name, value), count in self._values.items()
            if (at, name) == (side, dimension) and (not values or value in values)
        )
