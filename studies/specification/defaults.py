"""Defaults that have changed: studies that are stored keep those that they were begun with."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

EARLIER: Mapping[str, Any] = {
    "search": {
        "sampler": "tpe",
        "replicates": 0,
        "replicates_rival": False,
        "hears_losses": False,
        "priors": "one_task",
        "learn_from": "none",
        "lessons": None,
        "learning_rates_of": "weights",
        "learning_rates": {"softmax_memory": [3e-3, 5e-2], "bottleneck": [1e-3, 1e-2], "lowrank": [1e-3, 2e-2]},
    },
    "pruning": {"rule": "none", "protect_published": True, "examples": "all", "stop_collapsed": False},
}
"""What a stored study was begun with where it does not say so, by section and key."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Keys of ``EARLIER`` that a study file leaves to their defaults, each with those that it stands below.

    Two files that say the same are equal, whether or not they say it by leaving something out.
    """

    keys: tuple[tuple[str, ...], ...] = field(default=(), compare=False)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "LeftOut":
        """Of what a study file holds."""
        return cls(tuple(_absent(given, EARLIER)))


def _absent(given: object, earlier: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    if given is not None and not isinstance(given, Mapping):
        return
    for key, value in earlier.items():
        there = None if given is None else given.get(key)
        if isinstance(value, Mapping):
            yield from ((key, *below) for below in _absent(there, value))
        elif there is None:
            yield (key,)


def with_earlier_defaults(stored: Mapping[str, Any]) -> dict[str, Any]:
    """A stored study with every key that it does not have as it was when there was no other value."""
    return _merged(stored, EARLIER)


def _merged(stored: Mapping[str, Any], earlier: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(stored)
    for key, value in earlier.items():
        there = found.get(key, {} if isinstance(value, Mapping) else value)
        is_section = isinstance(value, Mapping) and isinstance(there, Mapping)
        found[key] = _merged(there, value) if is_section else there
    return found


def take_over(said: dict[str, Any], begun: Mapping[str, Any], left_out: LeftOut) -> dict[str, Any]:
    """A study as JSON, with what its file leaves out as another study has it.

    Args:
        said: The study; changed in place.
        begun: What it is begun with.
        left_out: What the file leaves out.
    """
    for *above, key in left_out.keys:
        values: Any = said
        earlier: Any = begun
        for name in above:
            values, earlier = values[name], earlier[name]
        if isinstance(values, dict) and isinstance(earlier, Mapping):
            values[key] = earlier[key]
    return said
