"""Where a task's text and labels come from. A plain value: nothing is opened here."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from trial_runner.errors import TaskError
from trial_runner.tasks.metrics import metric

__all__ = ["EMBEDDED_TASKS", "SPLITS", "SourceKind", "TaskSource"]

SourceKind = Literal["embedded", "folder", "hub"]
SPLITS = ("train", "validation", "test")
EMBEDDED_TASKS = ("docstrings",)
_SMALLEST_MAX_TOKENS = 8  # room for the special tokens of a pair and a token of each text


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSource:
    """A text or text-pair classification task, as it is asked for.

    Attributes:
        kind: ``embedded``, ``folder`` (local jsonl, csv or parquet files) or ``hub``.
        name: Name of the embedded task, path of the folder, or hub name such as ``nyu-mll/glue``.
        configuration: Configuration of a hub dataset, such as ``sst2``.
        text: Column of the text, or the two columns of a pair.
        label: Column of the label.
        metric: The score that the search maximises; a name in ``metrics.METRICS``.
        max_tokens: Longer inputs are cut; of a pair, the longer text first.
        splits: Names of splits that are not called train, validation and test:
            ``{"validation": "validation_matched"}``; of a folder, names of files.
        train_examples: Use only so many of train, chosen by hash; None uses all.
        validation_examples: The same for validation.
        labels: The labels in the order of their indices; None takes them from train, sorted.

    Raises:
        TaskError: If a value cannot be.
    """

    kind: SourceKind
    name: str
    configuration: str | None = None
    text: tuple[str, ...] = ("text",)
    label: str = "label"
    metric: str = "accuracy"
    max_tokens: int = 128
    splits: Mapping[str, str] = field(default_factory=dict)
    train_examples: int | None = None
    validation_examples: int | None = None
    labels: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Check each value on its own; whether the data has the columns is seen when it is read."""
        if self.kind not in get_args(SourceKind):
            raise TaskError(f"kind of a task must be one of {', '.join(get_args(SourceKind))}; got {self.kind!r}.")
        if self.kind == "embedded" and self.name not in EMBEDDED_TASKS:
            close = difflib.get_close_matches(self.name, EMBEDDED_TASKS, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise TaskError(f"no embedded task {self.name!r}; known: {', '.join(EMBEDDED_TASKS)}.{hint}")
        if len(self.text) not in (1, 2) or len({*self.text, self.label}) != len(self.text) + 1:
            raise TaskError(
                f"a task must have one or two text columns beside its label column; got {', '.join(self.text)} "
                f"and {self.label}."
            )
        metric(self.metric)
        if not self.max_tokens >= _SMALLEST_MAX_TOKENS:
            raise TaskError(f"max_tokens must be at least {_SMALLEST_MAX_TOKENS}; got {self.max_tokens}.")
        for split in self.splits:
            if split not in SPLITS:
                raise TaskError(f"keys of splits must be among {', '.join(SPLITS)}; got {split!r}.")
        for count in (self.train_examples, self.validation_examples):
            if count is not None and not count >= 1:
                raise TaskError(f"number of examples must be at least 1; got {count}.")
        if self.labels is not None and not len(set(self.labels)) == len(self.labels) >= 2:
            raise TaskError(f"labels must be at least two different ones; got {', '.join(self.labels) or 'none'}.")

    @property
    def title(self) -> str:
        """Short name of the task, the same wherever its folder is."""
        if self.kind == "folder":
            return Path(self.name).expanduser().absolute().name
        return "/".join((self.name, self.configuration)) if self.configuration else self.name
