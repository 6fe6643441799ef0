"""Rows of a task as they were read, of whatever kind, split by split."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

if TYPE_CHECKING:
    from datasets import Dataset


class Rows(Protocol):
    """The rows of one split."""

    def __len__(self) -> int:
        """Number of rows."""

    def take(self, rows: Iterable[int]) -> Self:
        """Some of the rows, in the order given."""

    def followed_by(self, other: Self) -> Self:
        """These rows, then those of another part of the same split."""

    def keys(self) -> list[str]:
        """A key per row, equal for texts that differ only in case and white space."""

    def origins(self) -> list[str]:
        """A key per row, equal for rows that must not come into different splits: the same text, or about it."""


RowsT = TypeVar("RowsT", bound=Rows)

RowsReader = Callable[["Dataset", str, str], RowsT]
"""From a dataset, the name of its split and the group that its rows belong to, unless a column says it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawTask(Generic[RowsT]):
    """The splits that the data has, and what was done to get them.

    Attributes:
        splits: Some or all of train, validation and test.
        notes: One line for each thing that was done to the data.
    """

    splits: Mapping[str, RowsT]
    notes: tuple[str, ...] = ()

    def digest(self) -> str:
        """SHA-256 over all rows, as hex."""
        digest = hashlib.sha256()
        for name, split in sorted(self.splits.items()):
            digest.update(repr((name, split)).encode())
        return digest.hexdigest()


def joined(parts: Sequence[RowsT]) -> RowsT:
    """The rows of several parts of a split, one after the other."""
    rows, *others = parts
    for other in others:
        rows = rows.followed_by(other)
    return rows


def normalised(text: str) -> str:
    """A text in lower case and single spaces."""
    return " ".join(text.lower().split())
