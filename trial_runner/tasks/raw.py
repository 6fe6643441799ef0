"""Text and labels as they were read, before they are split, encoded and tokenised."""

import difflib
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trial_runner.errors import TaskError
from trial_runner.tasks.source import TaskSource

if TYPE_CHECKING:
    from datasets import Dataset

__all__ = ["Label", "RawSplit", "RawTask", "read_split"]

Label = int | str
_NO_CLASS = -1  # what the hub stores where a label is hidden


@dataclass(frozen=True, slots=True, kw_only=True)
class RawSplit:
    """The rows of one split.

    Attributes:
        columns: One tuple of texts per text column, all of the same length.
        labels: One per row; None where the row has no label.
        class_names: All classes in their order, if the data declares them.
    """

    columns: tuple[tuple[str, ...], ...]
    labels: tuple[Label | None, ...]
    class_names: tuple[str, ...] | None = None

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.labels)

    def take(self, rows: Iterable[int]) -> "RawSplit":
        """Some of the rows, in the order given."""
        rows = list(rows)
        columns = tuple(tuple(column[row] for row in rows) for column in self.columns)
        labels = tuple(self.labels[row] for row in rows)
        return RawSplit(columns=columns, labels=labels, class_names=self.class_names)

    def keys(self) -> list[str]:
        """A key per row, equal for texts that differ only in case and white space."""
        return ["\x1f".join(" ".join(text.lower().split()) for text in row) for row in zip(*self.columns, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RawTask:
    """The splits that the data has, and what was done to get them.

    Attributes:
        splits: Some or all of train, validation and test.
        notes: One line for each thing that was done to the data.
    """

    splits: Mapping[str, RawSplit]
    notes: tuple[str, ...] = ()

    def digest(self) -> str:
        """SHA-256 over all rows, as hex."""
        digest = hashlib.sha256()
        for name, split in sorted(self.splits.items()):
            digest.update(repr((name, split.class_names, split.columns, split.labels)).encode())
        return digest.hexdigest()


def read_split(dataset: "Dataset", source: TaskSource, split: str) -> RawSplit:
    """Take the text and label columns out of a dataset.

    Raises:
        TaskError: If a column is missing, the split is empty, a text is missing or blank, or a label is neither
            an integer nor a string.
    """
    for column in (*source.text, source.label):
        _check_column(column, dataset.column_names, split)
    if not len(dataset):
        raise TaskError(f"split {split!r} must hold at least one example; got none.")
    table = dataset.with_format("arrow")[:]
    columns = tuple(tuple(table.column(name).to_pylist()) for name in source.text)
    for name, texts in zip(source.text, columns, strict=True):
        _check_texts(texts, name, split)
    class_names = getattr(dataset.features[source.label], "names", None)
    values = table.column(source.label).to_pylist()
    return RawSplit(
        columns=columns,
        labels=tuple(_read_label(value, class_names, row, split) for row, value in enumerate(values, start=1)),
        class_names=None if class_names is None else tuple(class_names),
    )


def _check_column(name: str, present: list[str], split: str) -> None:
    if name not in present:
        close = difflib.get_close_matches(name, present, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise TaskError(f"split {split!r} must have a column {name!r}; it has: {', '.join(present)}.{hint}")


def _check_texts(texts: tuple[Any, ...], column: str, split: str) -> None:
    for row, text in enumerate(texts, start=1):
        if not isinstance(text, str) or not text.strip():
            raise TaskError(
                f"text must be a string that is not blank; got {text!r} in column {column!r} of split {split!r}, "
                f"row {row}."
            )


def _read_label(value: Any, class_names: list[str] | None, row: int, split: str) -> Label | None:
    """A label as an integer or a string; None if there is none."""
    if value is None or (class_names is not None and value == _NO_CLASS):
        return None
    if class_names is not None:
        return class_names[int(value)]
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        return value if value.strip() else None
    raise TaskError(
        f"a class label must be an integer or a string; got {value!r} ({type(value).__name__}) in split {split!r}, "
        f"row {row}."
    )
