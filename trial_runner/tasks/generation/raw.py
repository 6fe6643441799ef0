"""Sources, targets and references as read."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trial_runner.errors import TaskError
from trial_runner.tasks.data.columns import (
    check_column,
    check_text,
    column,
    given_text,
    has_column,
    read_groups,
    texts_of,
)
from trial_runner.tasks.data.linearise import as_one_text, before_the_answer, last_answer, linearise, up_to_the_question
from trial_runner.tasks.splits import RowTuples, normalised
from trial_runner.tasks.task import Task

if TYPE_CHECKING:
    from datasets import Dataset

PAIR_KEYS = ("source", "target", "references")


QUESTION_KEYS = ("context", "question", "answers")
_REMEMBERED_TURNS = 2  # more did not help the models of Reddy et al. 2019


@dataclass(frozen=True, slots=True, kw_only=True)
class RawTextSplit(RowTuples):
    """Rows of one split of a task whose answer is a text.

    Attributes:
        sources: Input text of each row.
        targets: Text to learn; empty if it is hidden.
        references: References of the measurement; empty if they are hidden.
        subjects: Subject of each source: the context of a question, else the source itself.
        groups: Group of each row; empty without one.
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    references: tuple[tuple[str, ...], ...]
    subjects: tuple[str, ...]
    groups: tuple[str, ...]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.sources)

    def keys(self) -> list[str]:
        """Return a key per row, equal for sources that differ only in case and white space."""
        return [normalised(source) for source in self.sources]

    def origins(self) -> list[str]:
        """Return the keys of the subjects."""
        return [normalised(subject) for subject in self.subjects]

    def read_values(self) -> Iterable[object]:
        """Return the source of each row."""
        return self.sources

    def learned_values(self) -> Iterable[object]:
        """Return the target, the references and the group of each row."""
        return zip(self.targets, self.references, self.groups, strict=True)


def pair_columns(task: Task) -> dict[str, str | None]:
    """Return the columns of a task from text to text."""
    return {key: getattr(task, key) for key in PAIR_KEYS}


def read_pairs(dataset: "Dataset", task: Task, split: str, group: str = "") -> RawTextSplit:
    """Read sources, targets and references from a dataset.

    Args:
        dataset: Dataset.
        task: Task, with the names of the columns.
        split: Name of the split. Train needs its targets, the others their references.
        group: Group of all rows, unless a column names it.

    Raises:
        TaskError: If a column is missing, the split is empty, or a text is blank or none.
    """
    groups = read_groups(dataset, task.group, split, group)
    source, target = task.source or "source", task.target or "target"
    measured = target if split == "train" else task.references or target
    for name in (source, measured):
        check_column(dataset, name, split)
    values = column(dataset, source, split)
    if source == target:
        values = [before_the_answer(value) for value in values]
    sources = tuple(
        given_text(linearise(as_one_text(value, task.join)), source, split, row)
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
    """Convert a source: lists of texts or triples to one text, a conversation up to its last question."""
    asked = up_to_the_question(value) if column == task.target else value
    return linearise(as_one_text(asked, task.join))


def _texts(dataset: "Dataset", name: str, task: Task, split: str) -> tuple[tuple[str, ...], ...]:
    values = column(dataset, name, split)
    return tuple(texts_of(last_answer(value), name, split, row) for row, value in enumerate(values, start=1))


def instructed(text: str, task: Task) -> str:
    """Prepend the instruction of the task to a text, if it has one."""
    return f"{task.instruction} {text}" if task.instruction and text else text


def question_columns(task: Task) -> dict[str, str | None]:
    """Return the columns of a question-answering task, each named by its key unless the task names another one."""
    return {key: getattr(task.questions, key) for key in QUESTION_KEYS}


def read_questions(dataset: "Dataset", task: Task, split: str, group: str = "") -> RawTextSplit:
    """Read questions, their contexts and answers from a dataset; see `read_pairs`."""
    groups = read_groups(dataset, task.group, split, group)
    context_name, question_name, answers_name = (getattr(task.questions, key) for key in QUESTION_KEYS)
    values = [column(dataset, name, split) for name in (context_name, question_name, answers_name)]
    rows: list[tuple[str, str, tuple[str, ...], str]] = []
    for row, (context, question, answers) in enumerate(zip(*values, strict=True), start=1):
        text = given_text(as_one_text(context, task.join), context_name, split, row)
        names = question_name, answers_name
        for asked, given in questions_of(question, answers, names, split, row):
            rows.append((questioned(text, asked), text, given, groups[row - 1]))
    return RawTextSplit(
        sources=tuple(instructed(asked, task) for asked, _, _, _ in rows),
        targets=tuple(next(iter(given), "") for _, _, given, _ in rows),
        references=tuple(given for _, _, given, _ in rows),
        subjects=tuple(text for _, text, _, _ in rows),
        groups=tuple(group for _, _, _, group in rows),
    )


def question_as_read(task: Task, column: str, value: object) -> object:
    """Join the texts of a context; leave a question as it is."""
    return as_one_text(value, task.join) if column == question_columns(task)["context"] else value


def questioned(context: str, question: str) -> str:
    """Return a question and its context in the format for a model."""
    return f"question: {question} context: {context}"


def questions_of(
    question: Any, answers: Any, names: tuple[str, str], split: str, row: int
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each question of a row with its right answers.

    A question of a conversation is preceded by the last two questions and their answers.

    Args:
        question: Text, or list of the questions of a conversation.
        answers: Answers of that question, or of each of the list.
        names: Names of their columns, for messages.
        split: Name of the split, for messages.
        row: Number of the row, from 1.

    Raises:
        TaskError: If a text is blank, or a conversation has not as many answers as questions.
    """
    question_name, answers_name = names
    if not isinstance(question, list):
        right = texts_of(answers, answers_name, split, row)
        yield check_text(question, question_name, split, row), right
        return
    if isinstance(answers, dict):
        answers = answers.get("input_text", answers.get("text"))
    given = answers if isinstance(answers, list) else []
    if len(given) != len(question):
        raise TaskError(
            f"a conversation must have an answer for each of its {len(question)} questions; got {len(given)} in column "
            f"{answers_name!r} of split {split!r}, row {row}."
        )
    turns: list[str] = []
    for asked, answer in zip(question, given, strict=True):
        text = check_text(asked, question_name, split, row)
        right = texts_of(answer, answers_name, split, row)
        yield " ".join([*turns[-_REMEMBERED_TURNS:], text]), right
        turns.append(" ".join([text, *right[:1]]))
