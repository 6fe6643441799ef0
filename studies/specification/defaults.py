"""Defaults that have changed: studies that are stored keep those that they were begun with."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

EARLIER: Mapping[str, Mapping[str, object]] = {
    "search": {"sampler": "tpe", "draws": "decisions", "replicates": 0, "first_rates": "drawn"},
    "pruning": {"rule": "ranks", "protect_published": True},
}
"""What a stored study was begun with where it does not say so, by section and key."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Keys of ``EARLIER`` that a study file leaves to their defaults.

    Two files that say the same are equal, whether or not they say it by leaving something out.
    """

    keys: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "LeftOut":
        """Of what a study file holds."""
        return cls(tuple(_absent(given)))


def _absent(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for section, keys in EARLIER.items():
        there = given.get(section)
        for key in keys:
            if there is None or (isinstance(there, Mapping) and key not in there):
                yield section, key


def with_earlier_defaults(stored: Mapping[str, Any]) -> dict[str, Any]:
    """A stored study with every key that it does not have as it was when there was no other value."""
    found = dict(stored)
    for section, keys in EARLIER.items():
        there = found.get(section, {})
        if isinstance(there, Mapping):
            found[section] = {**keys, **there}
    return found
