"""Where a classification task's text and labels come from. A plain value: nothing is opened here."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from trial_runner.errors import TaskError
from trial_runner.tasks.classification.metrics import metric
from trial_runner.tasks.data.groups import Grouping
from trial_runner.tasks.data.names import nearest
from trial_runner.tasks.data.place import SourceKind, SplitNames, check_place, title_of

EMBEDDED_TASKS = ("docstrings",)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSource:
    """A text or text-pair classification task, as it is asked for.

    Attributes:
        kind: ``embedded``, ``folder`` (local jsonl, csv or parquet files) or ``hub``.
        name: Name of the embedded task, path of the folder, or hub name such as ``nyu-mll/glue``.
        configuration: Configuration of a hub dataset, such as ``sst2``.
        revision: Branch, tag or commit of a hub dataset; None takes the newest.
        text: Column of the text, or the two columns of a pair.
        label: Column of the label.
        group: Column of the groups that are measured on their own too; None if there is none.
        metric: The score that the search maximises; a name in ``metrics.METRICS``.
        max_tokens: Longer inputs are cut; of a pair, the longer text first.
        splits: Names of splits that are not called train, validation and test:
            ``{"validation": "validation_matched"}``; of a folder, names of files. A mapping from groups to names
            joins several: ``{"test": {"matched": "validation_matched", "mismatched": "validation_mismatched"}}``.
        train_examples: Use only so many of train, chosen by hash; None uses all.
        validation_examples: The same for validation.
        labels: The labels in the order of their indices; None takes them from train, sorted.

    Raises:
        TaskError: If a value cannot be.
    """

    kind: SourceKind
    name: str
    configuration: str | None = None
    revision: str | None = None
    text: tuple[str, ...] = ("text",)
    label: str = "label"
    group: Grouping | None = None
    metric: str = "accuracy"
    max_tokens: int = 128
    splits: Mapping[str, SplitNames] = field(default_factory=dict)
    train_examples: int | None = None
    validation_examples: int | None = None
    labels: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Check each value on its own; whether the data has the columns is seen when it is read."""
        check_place(self)
        if self.kind == "embedded" and self.name not in EMBEDDED_TASKS:
            raise TaskError(
                f"no embedded task {self.name!r}; known: {', '.join(EMBEDDED_TASKS)}."
                f"{nearest(self.name, EMBEDDED_TASKS)}"
            )
        if len(self.text) not in (1, 2) or len({*self.text, self.label}) != len(self.text) + 1:
            raise TaskError(
                f"a task must have one or two text columns beside its label column; got {', '.join(self.text)} "
                f"and {self.label}."
            )
        metric(self.metric)
        if self.labels is not None and not len(set(self.labels)) == len(self.labels) >= 2:
            raise TaskError(f"labels must be at least two different ones; got {', '.join(self.labels) or 'none'}.")

    @property
    def title(self) -> str:
        """Short name of the task, the same wherever its folder is."""
        return title_of(self)
