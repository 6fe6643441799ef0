"""Checked reading of the entries of a backbone's ``config.json``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from search_space.errors import UnsupportedBackboneError

T = TypeVar("T")

MAX_ENTRY_VALUES: Mapping[str, int] = {
    "layer": 1 << 8,
    "blocks": 1 << 8,
    "expert": 1 << 12,
    "head": 1 << 16,
    "bucket": 1 << 16,
    "relative_positions": 1 << 16,
    "type_vocab_size": 1 << 16,
    "num_labels": 1 << 16,
    "position": 1 << 28,
    "vocab": 1 << 28,
}
"""Largest value of an entry by a word in its name; the first match applies.

Time and memory for a config are proportional to these entries. All others only enter arithmetic, bounded by the limits
of `BackboneShape`.
"""


def check_bounds(config: Mapping[Any, object]) -> None:
    """Check the numbers of a config before it is used.

    Args:
        config: Entries of the file, or of a loaded model, whose labels have numeric names.

    Raises:
        UnsupportedBackboneError: If an entry, also of a nested config, is too large.
    """
    for name, value in config.items():
        if isinstance(value, Mapping):
            check_bounds(value)
        words = str(name)  # labels have numbers for names
        maximum = next((bound for word, bound in MAX_ENTRY_VALUES.items() if word in words), None)
        if maximum is not None and type(value) is int and value > maximum:
            raise UnsupportedBackboneError(
                f"{name} of a backbone config must be at most {maximum:,}; got {value:,}. "
                "Check the backbone's config.json."
            )


@dataclass(frozen=True, slots=True)
class ConfigEntries:
    """Entries of a config with checked access.

    Every method raises ``UnsupportedBackboneError`` with the entry's name if its value is invalid.

    Attributes:
        family: Name of the family, for the messages.
        entries: Parsed ``config.json``.
        names: Name of a size here to its name in the file, if they differ.
    """

    family: str
    entries: Mapping[str, object]
    names: Mapping[str, str] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        """Return whether the entry exists and is not null."""
        return self.entries.get(self.names.get(name, name)) is not None

    def size(self, name: str) -> int:
        """Return a required integer above 0."""
        name = self.names.get(name, name)
        value = self.entries.get(name)
        if type(value) is not int or not value >= 1:
            got = repr(value) if name in self.entries else "no such entry"
            raise self._error(f"{name} of a {self.family} config must be a whole number above 0; got {got}.")
        return value

    def size_or(self, name: str, default: int) -> int:
        """Return an integer above 0; ``default`` if the entry is missing or null."""
        return self.size(name) if self.has(name) else default

    def flag(self, name: str, *, default: bool) -> bool:
        """Return a boolean; ``default`` if the entry is missing or null."""
        return self._typed(name, bool, "true or false", default)

    def text_or(self, name: str, default: str) -> str:
        """Return a text; ``default`` if the entry is missing or null."""
        return self._typed(name, str, "a text", default)

    def _typed(self, name: str, kind: type[T], words: str, default: T) -> T:
        value = self.entries.get(name)
        if value is None:
            return default
        if not isinstance(value, kind):
            raise self._error(f"{name} of a {self.family} config must be {words}; got {value!r}.")
        return value

    def quotient(self, name: str, among: str) -> int:
        """Return the quotient of two sizes, such as the width of a head; it must be an integer."""
        total, parts = self.size(name), self.size(among)
        if total % parts:
            name, among = self.names.get(name, name), self.names.get(among, among)
            raise self._error(
                f"{name} of a {self.family} config must be a multiple of {among}; got {total} and {parts}."
            )
        return total // parts

    def same_size(self, first: str, second: str) -> int:
        """Return the size that two entries must agree on."""
        value, other = self.size(first), self.size(second)
        if value != other:
            raise self._error(f"{first} and {second} of a {self.family} config must agree; got {value} and {other}.")
        return value

    def check_equal(self, name: str, value: bool | int | str, *, default: bool | int | str) -> None:
        """Check that an entry, or its default if it is absent, has the family's value."""
        actual = self.entries.get(name)
        actual = default if actual is None else actual
        if type(actual) is not type(value) or actual != value:
            got = _as_json(actual) if name in self.entries else "no such entry"
            problem = f"{name} of a {self.family} config must be {_as_json(value)}; got {got}."
            raise UnsupportedBackboneError(f"{problem} Use another backbone.")

    def check_null(self, name: str) -> None:
        """Check that an entry is null, false, zero, empty or absent."""
        if self.entries.get(name):
            raise self._error(f"{name} of a {self.family} config must be null; got {self.entries[name]!r}.")

    def _error(self, problem: str) -> UnsupportedBackboneError:
        return UnsupportedBackboneError(f"{problem} Check the backbone's config.json.")


def _as_json(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)
