"""Texts and labels as they were read, before they are split, encoded and tokenised."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from trial_runner.errors import TaskError
from trial_runner.tasks.data.columns import check_column, column, given_text, read_groups
from trial_runner.tasks.data.linearise import as_one_text
from trial_runner.tasks.data.objects import plain_text
from trial_runner.tasks.splits import normalised
from trial_runner.tasks.task import Task

if TYPE_CHECKING:
    from datasets import Dataset

Label = int | str | float
ReadLabel = Callable[[Any, list[str] | None, int, str], Label | None]
_NO_CLASS = -1  # what the hub stores where a label is hidden
_WHOLE_NUMBER = re.compile(r"0|-?[1-9]\d{0,99}")
"""Text that is a number as it is printed: ``7`` of a csv file is the number 7, ``007`` is a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawSplit:
    """The rows of one split of a classification task.

    Attributes:
        columns: One tuple of texts per text column, all of the same length.
        labels: One per row; None where the row has no label.
        groups: One per row; empty where the row is in none.
        class_names: All classes in their order, if the data declares them.
    """

    columns: tuple[tuple[str, ...], ...]
    labels: tuple[Label | None, ...]
    groups: tuple[str, ...]
    class_names: tuple[str, ...] | None = None

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.labels)

    def take(self, rows: Iterable[int]) -> Self:
        """Some of the rows, in the order given."""
        rows = list(rows)
        return type(self)(
            columns=tuple(tuple(column[row] for row in rows) for column in self.columns),
            labels=tuple(self.labels[row] for row in rows),
            class_names=self.class_names,
            groups=tuple(self.groups[row] for row in rows),
        )

    def followed_by(self, other: Self) -> Self:
        """These rows, then those of another part of the same split."""
        if self.class_names != other.class_names:
            raise TaskError(
                f"parts of a split must have the same classes; got {self.class_names} and {other.class_names}."
            )
        return type(self)(
            columns=tuple(one + another for one, another in zip(self.columns, other.columns, strict=True)),
            labels=self.labels + other.labels,
            class_names=self.class_names,
            groups=self.groups + other.groups,
        )

    def keys(self) -> list[str]:
        """A key per row, equal for texts that differ only in case and white space."""
        return ["\x1f".join(normalised(text) for text in row) for row in zip(*self.columns, strict=True)]

    def origins(self) -> list[str]:
        """The same as the keys: rows of one text must not come into different splits."""
        return self.keys()

    def read_values(self) -> Iterable[object]:
        """Return the texts of each row."""
        return zip(*self.columns, strict=True)

    def learned_values(self) -> Iterable[object]:
        """Return the label and the group of each row; a whole number and its digits are one label."""
        return zip(map(str, self.labels), self.groups, strict=True)


def text_columns(task: Task) -> tuple[str, ...]:
    """The column of the text, or the two of a pair."""
    return task.text or ("text",)


def label_column(task: Task) -> str:
    """The column of the label."""
    return task.label or "label"


def read_split(
    dataset: "Dataset", task: Task, split: str, group: str = "", *, read_label: ReadLabel | None = None
) -> RawSplit:
    """Take the text and label columns out of a dataset.

    Args:
        dataset: With the columns.
        task: Their names.
        split: Name of the split, for messages.
        group: Of all rows, unless a column says it.
        read_label: Of a value, the names of the classes if the data declares them, the row and the split; None reads
            classes.

    Raises:
        TaskError: If a column is missing, the split is empty, a text is no string, or a label is neither
            a number nor a string.
    """
    text_names, label_name = text_columns(task), label_column(task)
    for name in (*text_names, label_name):
        check_column(dataset, name, split)
    columns = tuple(
        tuple(
            given_text(as_one_text(value, task.join), name, split, row)
            for row, value in enumerate(column(dataset, name, split), start=1)
        )
        for name in text_names
    )
    class_names = getattr(dataset.features.get(label_name), "names", None)
    values, read = column(dataset, label_name, split), read_label or _read_label
    return RawSplit(
        columns=columns,
        labels=tuple(read(value, class_names, row, split) for row, value in enumerate(values, start=1)),
        class_names=None if class_names is None else tuple(class_names),
        groups=read_groups(dataset, task.group, split, group),
    )


def _read_label(value: Any, class_names: list[str] | None, row: int, split: str) -> Label | None:
    """Return a label; None if there is none. A whole number is one class, ``1``, as 1, 1.0 or text."""
    if value is None or value != value or (class_names is not None and value == _NO_CLASS):
        return None
    if class_names is not None:
        return class_names[int(value)]
    if isinstance(value, bool):
        return plain_text(value)
    if isinstance(value, int):
        return value
    if isinstance(value, float | str):
        text = plain_text(value) or ""
        return int(text) if _WHOLE_NUMBER.fullmatch(text) else value if text.strip() else None
    raise TaskError(
        f"a class label must be a number or a string; got {value!r} ({type(value).__name__}) in split {split!r}, "
        f"row {row}."
    )
