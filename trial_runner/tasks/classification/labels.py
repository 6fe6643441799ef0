"""From labels as they were read to class indices."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trial_runner.errors import TaskError
from trial_runner.tasks.classification.raw import Label, RawSplit
from trial_runner.tasks.data.rows import RawTask, usable_rows

_HIDDEN = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelling:
    """The classes of a task.

    Attributes:
        names: One per class index.
        by_position: Whether integers in the data are positions in ``names`` rather than names themselves.
    """

    names: tuple[str, ...]
    by_position: bool = False

    def encode(self, labels: tuple[Label | None, ...], split: str) -> npt.NDArray[np.int64]:
        """Class index of each label, ``(B,)``.

        Raises:
            TaskError: If a label is not among the names.
        """
        index: dict[Label, int] = {(row if self.by_position else name): row for row, name in enumerate(self.names)}
        keys = labels if self.by_position else tuple(str(label) for label in labels)
        for row, key in enumerate(keys, start=1):
            if key not in index:
                raise TaskError(
                    f"labels must be among those of train: {_listed(self.names)}; got the unknown label {key!r} in "
                    f"split {split!r}, row {row}."
                )
        return np.array([index[key] for key in keys if key is not None], dtype=np.int64)


def drop_unlabelled(task: RawTask[RawSplit]) -> RawTask[RawSplit]:
    """Leave out splits whose labels are hidden (-1 or null everywhere) and rows of a declared class that have none.

    Raises:
        TaskError: If train is missing or has no labels, or if a row of otherwise labelled data lacks its label.
    """
    minus_one_is_a_label = "train" in task.splits and _HIDDEN in task.splits["train"].labels

    def labelled(name: str, split: RawSplit) -> list[int]:
        if set(split.labels) <= ({None} if minus_one_is_a_label else {None, _HIDDEN}):
            if name == "train":
                raise TaskError("split 'train' must have labels; every one is missing.")
            return []
        rows = [row for row, label in enumerate(split.labels) if label is not None]
        if len(rows) < len(split) and split.class_names is None:
            row = split.labels.index(None) + 1
            raise TaskError(f"each row must have a label; split {name!r} has none in row {row}.")
        return rows

    return usable_rows(task, labelled, hidden="labels", unused="{count} rows without a label are")


def labelling_of(splits: Mapping[str, RawSplit], declared: tuple[str, ...] | None) -> Labelling:
    """The classes of a task: as declared, else those that occur in train.

    The order is that of the declaration, else of the data's own class list, else sorted (integers by value).
    Declared names that are none of train's integers name them by position.

    Raises:
        TaskError: If train has fewer than two labels, or one that is not declared.
    """
    train = splits["train"]
    found = {label for label in train.labels if label is not None}
    if len(found) < 2:
        raise TaskError(f"train must have at least two different labels; got {_listed([str(f) for f in found])}.")
    if declared is not None:
        positions = {label for label in found if isinstance(label, int) and 0 <= label < len(declared)}
        by_position = positions == found and not {str(label) for label in found} & set(declared)
        labelling = Labelling(names=declared, by_position=by_position)
        labelling.encode(train.labels, "train")
        return labelling
    if train.class_names is not None:
        return Labelling(names=tuple(name for name in train.class_names if name in found))
    ordered = sorted(found, key=lambda label: (isinstance(label, str), label))
    return Labelling(names=tuple(str(label) for label in ordered))


def _listed(names: tuple[str, ...] | list[str]) -> str:
    """Names for a message, at most ten of them."""
    return ", ".join(names[:10]) + (f", … ({len(names)} in all)" if len(names) > 10 else "")
