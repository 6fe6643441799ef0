"""Sources, targets and references as they were read."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from trial_runner.tasks.data.columns import check_column, check_text, column, has_column, read_groups, texts_of
from trial_runner.tasks.data.linearise import linearise
from trial_runner.tasks.data.rows import normalised
from trial_runner.tasks.generation.questions import questions_of
from trial_runner.tasks.generation.source import QuestionColumns, TextColumns, TextTaskSource

if TYPE_CHECKING:
    from datasets import Dataset


@dataclass(frozen=True, slots=True, kw_only=True)
class RawTextSplit:
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

    def take(self, rows: Iterable[int]) -> Self:
        """Some of the rows, in the order given."""
        rows = list(rows)
        return type(self)(
            sources=tuple(self.sources[row] for row in rows),
            targets=tuple(self.targets[row] for row in rows),
            references=tuple(self.references[row] for row in rows),
            subjects=tuple(self.subjects[row] for row in rows),
            groups=tuple(self.groups[row] for row in rows),
        )

    def followed_by(self, other: Self) -> Self:
        """These rows, then those of another part of the same split."""
        return type(self)(
            sources=self.sources + other.sources,
            targets=self.targets + other.targets,
            references=self.references + other.references,
            subjects=self.subjects + other.subjects,
            groups=self.groups + other.groups,
        )

    def keys(self) -> list[str]:
        """A key per row, equal for sources that differ only in case and white space."""
        return [normalised(source) for source in self.sources]

    def origins(self) -> list[str]:
        """The same of what the sources are about."""
        return [normalised(subject) for subject in self.subjects]


def read_text_split(dataset: "Dataset", source: TextTaskSource, split: str, group: str = "") -> RawTextSplit:
    """Take sources, targets and references out of a dataset.

    Args:
        dataset: With the columns.
        source: Their names.
        split: Name of the split. Train needs its targets, the others their references.
        group: Of all rows, unless a column says it.

    Raises:
        TaskError: If a column is missing, the split is empty, or a text is blank or none.
    """
    groups = read_groups(dataset, source.group, split, group)
    if isinstance(source.columns, QuestionColumns):
        return _read_questions(dataset, source, source.columns, split, groups)
    return _read_pairs(dataset, source, source.columns, split, groups)


def _read_pairs(
    dataset: "Dataset", source: TextTaskSource, columns: TextColumns, split: str, groups: tuple[str, ...]
) -> RawTextSplit:
    measured = columns.target if split == "train" else columns.references or columns.target
    for name in (columns.source, measured):
        check_column(dataset, name, split)
    values = column(dataset, columns.source, split)
    sources = tuple(_source(linearise(value), source, split, row) for row, value in enumerate(values, start=1))
    references = _texts(dataset, measured, source, split)
    targets = _texts(dataset, columns.target, source, split) if has_column(dataset, columns.target) else references
    return RawTextSplit(
        sources=tuple(instructed(text, source) for text in sources),
        targets=tuple(next(iter((*own, *others)), "") for own, others in zip(targets, references, strict=True)),
        references=references,
        subjects=sources,
        groups=groups,
    )


def _read_questions(
    dataset: "Dataset", source: TextTaskSource, columns: QuestionColumns, split: str, groups: tuple[str, ...]
) -> RawTextSplit:
    values = [column(dataset, name, split) for name in (columns.context, columns.question, columns.answers)]
    skips = source.kind == "hub"
    rows: list[tuple[str, str, tuple[str, ...], str]] = []
    for row, (context, question, answers) in enumerate(zip(*values, strict=True), start=1):
        text = _source(context, source, split, row)
        for asked, given in questions_of(question, answers, columns, split, row, skips_blank=skips):
            rows.append((questioned(asked, text), text, given, groups[row - 1]))
    return RawTextSplit(
        sources=tuple(instructed(asked, source) for asked, _, _, _ in rows),
        targets=tuple(next(iter(given), "") for _, _, given, _ in rows),
        references=tuple(given for _, _, given, _ in rows),
        subjects=tuple(text for _, text, _, _ in rows),
        groups=tuple(group for _, _, _, group in rows),
    )


def _source(value: object, source: TextTaskSource, split: str, row: int) -> str:
    """A text that is read; nothing where the hub's data has none, which nobody can mend."""
    if source.kind == "hub" and (value is None or value == "" or str(value).isspace()):
        return ""
    columns = source.columns
    name = columns.context if isinstance(columns, QuestionColumns) else columns.source
    return check_text(value, name, split, row)


def _texts(dataset: "Dataset", name: str, source: TextTaskSource, split: str) -> tuple[tuple[str, ...], ...]:
    values = column(dataset, name, split)
    skips = source.kind == "hub"
    return tuple(texts_of(value, name, split, row, skips_blank=skips) for row, value in enumerate(values, start=1))


def questioned(question: str, context: str) -> str:
    """A question and what it is about, as a model reads them."""
    return f"question: {question} context: {context}"


def instructed(text: str, source: TextTaskSource) -> str:
    """A text after the instruction of its task, if it has one."""
    return f"{source.instruction} {text}" if source.instruction and text else text
