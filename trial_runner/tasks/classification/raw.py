"""Texts and labels as read, before they are split, encoded and tokenised."""

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
_NO_CLASS = -1  # the hub's value of a hidden label
_WHOLE_NUMBER = re.compile(r"0|-?[1-9]\d{0,99}")
"""Text of an integer as it is printed: ``7`` of a csv file is the number 7, ``007`` is a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawSplit:
    """Rows of one split of a classification task.

    Attributes:
        columns: One tuple of texts per text column, all of the same length.
        labels: Label of each row; None where it has no label.
        groups: Group of each row; empty where it is in none.
        class_names: All classes in their order, if the data declares them.
    """

    columns: tuple[tuple[str, ...], ...]
    labels: tuple[Label | None, ...]
    groups: tuple[str, ...]
    class_names: tuple[str, ...] | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.labels)

    def take(self, rows: Iterable[int]) -> Self:
        """Return the rows of the given indices, in their order."""
        rows = list(rows)
        return type(self)(
            columns=tuple(tuple(column[row] for row in rows) for column in self.columns),
            labels=tuple(self.labels[row] for row in rows),
            class_names=self.class_names,
            groups=tuple(self.groups[row] for row in rows),
        )

    def followed_by(self, other: Self) -> Self:
        """Append the rows of another part of the same split.

        Raises:
            TaskError: If the parts declare different classes.
        """
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
        """Return a key per row, equal for texts that differ only in case and white space."""
        return ["\x1f".join(normalised(text) for text in row) for row in zip(*self.columns, strict=True)]

    def origins(self) -> list[str]:
        """Return the keys: rows with the same text must be in the same split."""
        return self.keys()

    def read_values(self) -> Iterable[object]:
        """Return the texts of each row."""
        return zip(*self.columns, strict=True)

    def learned_values(self) -> Iterable[object]:
        """Return the label and the group of each row; an integer and its text are one label."""
        return zip(map(str, self.labels), self.groups, strict=True)


def text_columns(task: Task) -> tuple[str, ...]:
    """Return the column of the text, or the two columns of a pair."""
    return task.text or ("text",)


def label_column(task: Task) -> str:
    """Return the column of the label."""
    return task.label or "label"


def read_split(
    dataset: "Dataset", task: Task, split: str, group: str = "", *, read_label: ReadLabel | None = None
) -> RawSplit:
    """Read the text and label columns of a dataset.

    Args:
        dataset: Dataset with the columns.
        task: Task with the names of the columns.
        split: Name of the split, for error messages.
        group: Group of all rows, unless the task has a column of groups.
        read_label: Function from a value, the class names that the data declares or None, the row and the split to a
            label; None reads classes.

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
    """Return a label; None for a missing one. An integer is one class, whether given as 1, 1.0 or text."""
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
