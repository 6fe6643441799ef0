"""Rows of a task as they were read, of whatever kind, split by split."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

from trial_runner.errors import TaskError

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


@dataclass(frozen=True, slots=True, kw_only=True)
class RowTuples:
    """Rows whose every field is a tuple of one value per row."""

    def take(self, rows: Iterable[int]) -> Self:
        """See `Rows`."""
        rows = list(rows)
        return type(self)(**{each.name: tuple(getattr(self, each.name)[row] for row in rows) for each in fields(self)})

    def followed_by(self, other: Self) -> Self:
        """See `Rows`."""
        return type(self)(**{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)})


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


def usable_rows(
    raw: RawTask[RowsT], usable: Callable[[str, RowsT], Sequence[int]], *, hidden: str, unused: str
) -> RawTask[RowsT]:
    """Leave out rows that cannot be used, and splits that have no others, and note it.

    Args:
        usable: Of the name of a split and its rows the indices of those that can be used.
        hidden: What a split that is left out does not show.
        unused: Says of the rows that are left out, ``{count}`` of ``{of}``, why.

    Raises:
        TaskError: If train is missing.
    """
    if "train" not in raw.splits:
        raise TaskError(f"a task must have a split 'train'; got {', '.join(raw.splits) or 'none'}.")
    splits: dict[str, RowsT] = {}
    notes = [*raw.notes]
    for name, split in raw.splits.items():
        rows = usable(name, split)
        if not rows:
            notes.append(f"{name}: its {hidden} are hidden, so it is not used")
            continue
        if len(rows) < len(split):
            notes.append(f"{name}: {unused.format(count=len(split) - len(rows), of=len(split))} not used")
        splits[name] = split if len(rows) == len(split) else split.take(rows)
    return RawTask(splits=splits, notes=tuple(notes))


def joined(parts: Sequence[RowsT]) -> RowsT:
    """The rows of several parts of a split, one after the other."""
    rows, *others = parts
    for other in others:
        rows = rows.followed_by(other)
    return rows


def normalised(text: str) -> str:
    """A text in lower case and single spaces."""
    return " ".join(text.lower().split())
