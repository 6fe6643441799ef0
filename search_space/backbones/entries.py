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
    "position": 1 << 28,
    "vocab": 1 << 28,
}
"""What an entry may be at the most that has such a word in its name; the first of them counts.

What is made of a config takes time and memory in proportion to these; all else is counted by arithmetic, and bounded by
what `BackboneShape` may hold.
"""


def check_bounds(config: Mapping[Any, object]) -> None:
    """Refuse a config whose numbers no backbone has, before anything is made of them.

    Args:
        config: As in the file, or of a loaded model, in which labels have numbers for names.

    Raises:
        UnsupportedBackboneError: If an entry, or one of a config within it, is too large.
    """
    for name, value in config.items():
        if isinstance(value, Mapping):
            check_bounds(value)
        most = next(
            (bound for word, bound in MAX_ENTRY_VALUES.items() if word in str(name)), None
        )  # ids of labels are numbers
        if most is not None and type(value) is int and value > most:
            raise UnsupportedBackboneError(
                f"{name} of a backbone config must be at most {most:,}; got {value:,}. "
                "Check the backbone's config.json."
            )


@dataclass(frozen=True, slots=True)
class ConfigEntries:
    """The entries of a config, read one by one with a check each.

    Every verb raises ``UnsupportedBackboneError`` that names the entry if it does not hold what it must.

    Attributes:
        family: Name of the family, for the messages.
        entries: The parsed ``config.json``.
        names: Of sizes that the family calls otherwise: the name here to the name in the file.
    """

    family: str
    entries: Mapping[str, object]
    names: Mapping[str, str] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        """Whether the entry is there and not null."""
        return self.entries.get(self.names.get(name, name)) is not None

    def size(self, name: str) -> int:
        """A whole number above 0 that must be there."""
        name = self.names.get(name, name)
        value = self.entries.get(name)
        if type(value) is not int or not value >= 1:
            got = repr(value) if name in self.entries else "no such entry"
            raise self._error(f"{name} of a {self.family} config must be a whole number above 0; got {got}.")
        return value

    def size_or(self, name: str, default: int) -> int:
        """A whole number above 0; ``default`` if the entry is missing or null."""
        return self.size(name) if self.has(name) else default

    def flag(self, name: str, *, default: bool) -> bool:
        """True or false; ``default`` if the entry is missing or null."""
        return self._typed(name, bool, "true or false", default)

    def text_or(self, name: str, default: str) -> str:
        """A text; ``default`` if the entry is missing or null."""
        return self._typed(name, str, "a text", default)

    def _typed(self, name: str, kind: type[T], words: str, default: T) -> T:
        value = self.entries.get(name)
        if value is None:
            return default
        if not isinstance(value, kind):
            raise self._error(f"{name} of a {self.family} config must be {words}; got {value!r}.")
        return value

    def quotient(self, name: str, among: str) -> int:
        """Quotient of two sizes, such as the width of a head; it must be whole."""
        total, parts = self.size(name), self.size(among)
        if total % parts:
            name, among = self.names.get(name, name), self.names.get(among, among)
            raise self._error(
                f"{name} of a {self.family} config must be a multiple of {among}; got {total} and {parts}."
            )
        return total // parts

    def same_size(self, first: str, second: str) -> int:
        """One size that two entries must agree on."""
        value, other = self.size(first), self.size(second)
        if value != other:
            raise self._error(f"{first} and {second} of a {self.family} config must agree; got {value} and {other}.")
        return value

    def check_equal(self, name: str, value: bool | int | str, *, default: bool | int | str) -> None:
        """Refuse a config in which an entry, or what its absence means, says another model than the family's."""
        said = self.entries.get(name)
        said = default if said is None else said
        if type(said) is not type(value) or said != value:
            got = _shown(said) if name in self.entries else "no such entry"
            problem = f"{name} of a {self.family} config must be {_shown(value)}; got {got}."
            raise UnsupportedBackboneError(f"{problem} Use another backbone.")

    def check_null(self, name: str) -> None:
        """Refuse a config in which an entry says anything but nothing: null, false, zero, or an empty list."""
        if self.entries.get(name):
            raise self._error(f"{name} of a {self.family} config must be null; got {self.entries[name]!r}.")

    def _error(self, problem: str) -> UnsupportedBackboneError:
        return UnsupportedBackboneError(f"{problem} Check the backbone's config.json.")


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)
