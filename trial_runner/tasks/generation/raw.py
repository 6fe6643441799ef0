"""Sources, targets and references as they were read."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trial_runner.tasks.data.columns import check_column, check_text, column, has_column, read_groups, texts_of
from trial_runner.tasks.data.dialogues import as_one_text, before_the_answer, last_answer, up_to_the_question
from trial_runner.tasks.data.linearise import linearise
from trial_runner.tasks.data.rows import RowTuples, normalised
from trial_runner.tasks.task import Task

if TYPE_CHECKING:
    from datasets import Dataset

PAIR_KEYS = ("source", "target", "references")


@dataclass(frozen=True, slots=True, kw_only=True)
class RawTextSplit(RowTuples):
    """The rows of one split of a task whose answer is a text.

    Attributes:
        sources: What is read.
        targets: What is to be written; empty where it is hidden.
        references: What is measured against; none where they are hidden.
        subjects: What a source is about: the context of a question, else the source itself.
        groups: One per row; empty where the row is in none.
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    references: tuple[tuple[str, ...], ...]
    subjects: tuple[str, ...]
    groups: tuple[str, ...]

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.sources)

    def keys(self) -> list[str]:
        """A key per row, equal for sources that differ only in case and white space."""
        return [normalised(source) for source in self.sources]

    def origins(self) -> list[str]:
        """The same of what the sources are about."""
        return [normalised(subject) for subject in self.subjects]


def pair_columns(task: Task) -> dict[str, str | None]:
    """The columns of a task from text to text."""
    return {key: getattr(task, key) for key in PAIR_KEYS}


def read_pairs(dataset: "Dataset", task: Task, split: str, group: str = "") -> RawTextSplit:
    """Take sources, targets and references out of a dataset.

    Args:
        dataset: With the columns.
        task: Their names.
        split: Name of the split. Train needs its targets, the others their references.
        group: Of all rows, unless a column says it.

    Raises:
        TaskError: If a column is missing, the split is empty, or a text is blank or none.
    """
    groups = read_groups(dataset, task.grouping, split, group)
    source, target = task.source or "source", task.target or "target"
    measured = target if split == "train" else task.references or target
    for name in (source, measured):
        check_column(dataset, name, split)
    values = column(dataset, source, split)
    if source == target:
        values = [before_the_answer(value) for value in values]
    sources = tuple(
        read_source(linearise(as_one_text(value, task.join)), source, task, split, row)
        for row, value in enumerate(values, start=1)
    )
    references = _texts(dataset, measured, task, split)
    targets = _texts(dataset, target, task, split) if has_column(dataset, target) else references
    return RawTextSplit(
        sources=tuple(instructed(text, task) for text in sources),
        targets=tuple(next(iter((*own, *others)), "") for own, others in zip(targets, references, strict=True)),
        references=references,
        subjects=sources,
        groups=groups,
    )


def source_as_read(task: Task, column: str, value: object) -> object:
    """A source as it is read: lists of texts or triples as one text, a conversation up to what is to be answered."""
    asked = up_to_the_question(value) if column == task.target else value
    return linearise(as_one_text(asked, task.join))


def read_source(value: object, name: str, task: Task, split: str, row: int) -> str:
    """A text that is read; nothing where the hub's data has none, which nobody can mend."""
    if task.hub is not None and (value is None or value == "" or str(value).isspace()):
        return ""
    return check_text(value, name, split, row)


def _texts(dataset: "Dataset", name: str, task: Task, split: str) -> tuple[tuple[str, ...], ...]:
    values = column(dataset, name, split)
    skips = task.hub is not None
    return tuple(
        texts_of(last_answer(value), name, split, row, skips_blank=skips) for row, value in enumerate(values, start=1)
    )


def instructed(text: str, task: Task) -> str:
    """A text after the instruction of its task, if it has one."""
    return f"{task.instruction} {text}" if task.instruction and text else text
