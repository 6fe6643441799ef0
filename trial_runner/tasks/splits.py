"""Rows as read, and splits by hash: missing splits are carved from train, and large ones are subsampled."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from trial_runner.errors import TaskError
from trial_runner.tasks.task import SPLITS, Task

if TYPE_CHECKING:
    from datasets import Dataset


class Rows(Protocol):
    """Rows of one split."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def take(self, rows: Iterable[int]) -> Self:
        """Return some of the rows, in the order given."""

    def followed_by(self, other: Self) -> Self:
        """Return these rows, then those of another part of the same split."""

    def keys(self) -> list[str]:
        """Return a key per row, equal for texts that differ only in case and white space."""

    def origins(self) -> list[str]:
        """Return a key per row, equal for rows that must be in one split: of the same text, or about it."""

    def read_values(self) -> Iterable[object]:
        """Return the texts of each row, JSON-able."""

    def learned_values(self) -> Iterable[object]:
        """Return the label or the answers of each row, with its group, JSON-able."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitDigest:
    """Digest of the rows of a split as they are used, in their order, for any format of their file.

    Attributes:
        rows: Number of rows.
        texts: SHA-256 over the texts, as hex.
        answers: SHA-256 over labels or answers, and groups, as hex.
        unordered: SHA-256 over both in any order of the rows, as hex.
    """

    rows: int
    texts: str
    answers: str
    unordered: str

    @classmethod
    def of(cls, rows: Rows) -> Self:
        """Compute the digest of rows."""
        pairs = [
            (_sha256(text), _sha256(answer))
            for text, answer in zip(rows.read_values(), rows.learned_values(), strict=True)
        ]
        joined = [b"".join(text for text, _ in pairs), b"".join(answer for _, answer in pairs)]
        unordered = b"".join(sorted(text + answer for text, answer in pairs))
        texts, answers, both = (hashlib.sha256(each).hexdigest() for each in (*joined, unordered))
        return cls(rows=len(pairs), texts=texts, answers=answers, unordered=both)

    def difference(self, now: "SplitDigest", answers: str) -> str:
        """Return the present difference as half a sentence; empty without one.

        Args:
            now: Present digest.
            answers: Word for labels or answers.
        """
        if self == now:
            return ""
        if self.unordered == now.unordered:
            return f"the same {self.rows:,} rows in another order"
        if self.rows != now.rows:
            return f"other rows ({self.rows:,} then, {now.rows:,} now)"
        pairs = (("texts", self.texts, now.texts), (answers, self.answers, now.answers))
        what = " and ".join(word for word, before, after in pairs if before != after)
        return f"other {what} ({self.rows:,} rows then, {now.rows:,} now)"


def _sha256(value: object) -> bytes:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class RowTuples:
    """Rows whose every field is a tuple of one value per row."""

    def take(self, rows: Iterable[int]) -> Self:
        """Implement `Rows`."""
        rows = list(rows)
        return type(self)(**{each.name: tuple(getattr(self, each.name)[row] for row in rows) for each in fields(self)})

    def followed_by(self, other: Self) -> Self:
        """Implement `Rows`."""
        return type(self)(**{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """Rows of a split that are not used, for one reason.

    Attributes:
        split: Name of the split.
        what: ``rows`` or ``dialogues``.
        count: Number of dropped rows.
        of: Number of rows before any is dropped for this reason.
        reason: Cause, such as ``no label``.
        remedy: One sentence on how to keep them; empty without a way.
    """

    split: str
    what: str = "rows"
    count: int
    of: int
    reason: str
    remedy: str = ""

    def __str__(self) -> str:
        """Return the line for users."""
        verb = "is" if self.count == 1 else "are"
        line = f"{self.split}: {self.count:,} of {self.of:,} {self.what} {verb} dropped: {self.reason}."
        return f"{line} {self.remedy}".rstrip()


RowsT = TypeVar("RowsT", bound=Rows)

RowsReader = Callable[["Dataset", str, str], RowsT]
"""Reader of a dataset, given the name of its split and the group of its rows, unless a column names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawTask(Generic[RowsT]):
    """Splits of the data, and the changes that led to them.

    Attributes:
        splits: Some or all of train, validation and test.
        notes: One line for each change of the data, except dropped rows.
        dropped: Counts of the unused rows, by split and reason.
    """

    splits: Mapping[str, RowsT]
    notes: tuple[str, ...] = ()
    dropped: tuple[Dropped, ...] = ()

    def with_split(self, name: str, rows: RowsT, note: str) -> "RawTask[RowsT]":
        """Return a copy with other rows in a split, and a note on it."""
        return replace(self, splits={**self.splits, name: rows}, notes=(*self.notes, note))

    def digest(self) -> str:
        """Return the SHA-256 over all rows, as hex."""
        digest = hashlib.sha256()
        for name, split in sorted(self.splits.items()):
            digest.update(repr((name, split)).encode())
        return digest.hexdigest()


_NO_TEXT = "no text"
"""Reason that does not remove a split: answers may be hidden, texts may not."""


def drop_rows(
    raw: RawTask[RowsT],
    reasons_of: Callable[[str, RowsT], Sequence[str | None]],
    *,
    what: str = "rows",
) -> RawTask[RowsT]:
    """Leave out unusable rows, and splits without any other rows, and count them by reason.

    Args:
        raw: Splits of the task.
        reasons_of: Function of the name of a split and its rows: for each row the reason why it is unusable, or None.
        what: Name of a row in messages.

    Raises:
        TaskError: If train is missing, or has no usable row, or if no row of another split has a text.
    """
    if "train" not in raw.splits:
        raise TaskError(f"a task must have a split 'train'; got {', '.join(raw.splits) or 'none'}.")
    splits: dict[str, RowsT] = {}
    dropped = [*raw.dropped]
    for name, split in raw.splits.items():
        reasons = reasons_of(name, split)
        counts = Counter(reason for reason in reasons if reason is not None)
        of_split = [
            Dropped(split=name, what=what, count=count, of=len(split), reason=reason)
            for reason, count in counts.items()
        ]
        dropped += of_split
        if counts.total() < len(split):
            kept = [row for row, reason in enumerate(reasons) if reason is None]
            splits[name] = split if not counts else split.take(kept)
        elif name == "train" or _NO_TEXT in counts:
            raise TaskError(f"{name} must have {what} that can be used; got none. {' '.join(map(str, of_split))}")
    return replace(raw, splits=splits, dropped=tuple(dropped))


def joined(parts: Sequence[RowsT]) -> RowsT:
    """Return the rows of several parts of a split, one after the other."""
    rows, *others = parts
    for other in others:
        rows = rows.followed_by(other)
    return rows


def normalised(text: str) -> str:
    """Return a text in lower case and with single spaces."""
    return " ".join(text.lower().split())


_SHOWN = 40


def beginning(text: str) -> str:
    """Return the beginning of a text, by which a message names its row: rows move as others are dropped or carved."""
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


_CARVED = {"validation": range(100), "test": range(100, 200)}  # of 1,000 equal shares of the hash


def text_hash(text: str, salt: str) -> int:
    """Return a 64-bit hash of a text; hashes with different salts are independent."""
    return int.from_bytes(hashlib.sha256(f"{salt}\x1f{text}".encode()).digest()[:8], "big")


@lru_cache(maxsize=8)
def some_rows(count: int, most: int) -> npt.NDArray[np.int64]:
    """Return at most ``most`` of ``count`` rows in their order: a fixed choice, which only grows with ``most``."""
    by_hash = sorted(range(count), key=lambda row: text_hash(str(row), "measured at rungs"))
    rows = np.array(sorted(by_hash[:most]), dtype=np.int64)
    rows.setflags(write=False)
    return rows


class Sliceable(ABC):
    """Examples from which a subset can be selected."""

    __slots__ = ()

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of examples."""

    @abstractmethod
    def take(self, rows: npt.NDArray[np.int64]) -> Self:
        """Return the examples of the given indices, in their order."""

    def first(self, count: int) -> Self:
        """Return the first examples."""
        return self.take(np.arange(min(count, len(self))))

    def some(self, most: int | None) -> Self:
        """Return at most ``most`` of the examples, a fixed choice; all of them for None."""
        return self if most is None or most >= len(self) else self.take(some_rows(len(self), most))


def complete_splits(task: RawTask[RowsT]) -> RawTask[RowsT]:
    """Carve a missing validation or test split, each a tenth of train, out of it.

    The hash of the normalised text decides, so equal texts never end up in two splits, nor does a text of an existing
    split. For a question, the hash of its context decides.

    Raises:
        TaskError: If train is too small to be carved.
    """
    missing = [name for name in SPLITS if name not in task.splits]
    if not missing:
        return task
    train = task.splits["train"]
    held = {key for name, split in task.splits.items() if name != "train" for key in split.origins()}
    rows: dict[str, list[int]] = {name: [] for name in ("train", *missing)}
    for row, key in enumerate(train.origins()):
        share = text_hash(key, "carve") % 1000
        carved = (name for name in missing if share in _CARVED[name] and key not in held)
        rows[next(carved, "train")].append(row)
    splits: dict[str, RowsT] = {**task.splits}
    notes = list(task.notes)
    for name, chosen in rows.items():
        if not chosen:
            raise TaskError(
                f"train must be large enough to carve a tenth of it for {name}; it has {len(train)} rows. "
                f"Give a file or split for {name}."
            )
        splits[name] = train.take(chosen)
        if name != "train":
            notes.append(f"{name}: carved from train by a hash of the text, {len(chosen)} of {len(train)} rows")
    return replace(task, splits={name: splits[name] for name in SPLITS}, notes=tuple(notes))


def drop_repeated(task: RawTask[RowsT]) -> RawTask[RowsT]:
    """Leave out rows of train whose text is in validation or test too, and note texts of validation that are in test.

    Raises:
        TaskError: If nothing of train remains.
    """
    train = task.splits["train"]
    known = {name: set(split.keys()) for name, split in task.splits.items() if name != "train"}
    unseen = [row for row, key in enumerate(train.keys()) if not any(key in keys for keys in known.values())]
    if not unseen:
        raise TaskError(
            f"train must have a text that is in no other split; each of its {len(train)} is in validation or test too."
        )
    if count := len(train) - len(unseen):
        repeated = Dropped(split="train", count=count, of=len(train), reason="text also in validation or test")
        splits = {**task.splits, "train": train.take(unseen)}
        task = replace(task, splits=splits, dropped=(*task.dropped, repeated))
    if shared := len(known["validation"] & known["test"]):
        task = replace(task, notes=(*task.notes, f"test: {shared} texts are in validation too"))
    return task


def subsample(raw: RawTask[RowsT], task: Task) -> RawTask[RowsT]:
    """Keep the wanted number of examples of train and validation, chosen by hash, in their order."""
    for name, count in (("train", task.examples.train), ("validation", task.examples.validation)):
        split = raw.splits[name]
        if count is None or count >= len(split):
            continue
        salt = f"{task.title}\x1f{name}"
        keys = _numbered(split.keys())
        by_hash = sorted(range(len(split)), key=lambda row: (text_hash(keys[row], salt), row))
        note = f"{name}: {count} of {len(split)} rows, chosen by a hash of the text"
        raw = raw.with_split(name, split.take(sorted(by_hash[:count])), note)
    return raw


def _numbered(keys: list[str]) -> list[str]:
    """Append the number of earlier occurrences to repeated keys, so that rows of one text are chosen independently."""
    seen: Counter[str] = Counter()
    numbered = []
    for key in keys:
        numbered.append(f"{key}\x1f{seen[key]}" if seen[key] else key)
        seen[key] += 1
    return numbered
