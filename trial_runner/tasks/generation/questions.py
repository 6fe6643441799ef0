"""Questions and their answers, one by one or in a conversation."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from trial_runner.errors import TaskError
from trial_runner.tasks.data.columns import check_text, column, read_groups, texts_of
from trial_runner.tasks.data.dialogues import as_one_text
from trial_runner.tasks.generation.raw import RawTextSplit, instructed, read_source
from trial_runner.tasks.task import Task

if TYPE_CHECKING:
    from datasets import Dataset

QUESTION_KEYS = ("context", "question", "answers")
_REMEMBERED_TURNS = 2  # more did not help the models of Reddy et al. 2019


def question_columns(task: Task) -> dict[str, str | None]:
    """The columns of a question-answering task, each named by its key unless the task says otherwise."""
    return {key: getattr(task.questions, key) for key in QUESTION_KEYS}


def read_questions(dataset: "Dataset", task: Task, split: str, group: str = "") -> RawTextSplit:
    """Take questions, what they are about, and answers out of a dataset; see `read_pairs`."""
    groups = read_groups(dataset, task.group, split, group)
    context_name, question_name, answers_name = (getattr(task.questions, key) for key in QUESTION_KEYS)
    values = [column(dataset, name, split) for name in (context_name, question_name, answers_name)]
    skips = task.hub is not None
    rows: list[tuple[str, str, tuple[str, ...], str]] = []
    for row, (context, question, answers) in enumerate(zip(*values, strict=True), start=1):
        text = read_source(as_one_text(context, task.join), context_name, task, split, row)
        names = question_name, answers_name
        for asked, given in questions_of(question, answers, names, split, row, skips_blank=skips):
            rows.append((questioned(text, asked), text, given, groups[row - 1]))
    return RawTextSplit(
        sources=tuple(instructed(asked, task) for asked, _, _, _ in rows),
        targets=tuple(next(iter(given), "") for _, _, given, _ in rows),
        references=tuple(given for _, _, given, _ in rows),
        subjects=tuple(text for _, text, _, _ in rows),
        groups=tuple(group for _, _, _, group in rows),
    )


def question_as_read(task: Task, column: str, value: object) -> object:
    """A context whose texts are joined; a question as it is."""
    return as_one_text(value, task.join) if column == question_columns(task)["context"] else value


def questioned(context: str, question: str) -> str:
    """A question and what it is about, as a model reads them."""
    return f"question: {question} context: {context}"


def questions_of(
    question: Any, answers: Any, names: tuple[str, str], split: str, row: int, *, skips_blank: bool = False
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each question of a row and the answers that are right.

    A question of a conversation is preceded by the last two questions and their answers.

    Args:
        question: A text, or a list of the questions of a conversation.
        answers: Of that question, or of each of the list.
        names: Of their columns, for messages.
        row: Counted from 1.
        skips_blank: Whether blank answers are left out rather than refused.

    Raises:
        TaskError: If a text is blank, or a conversation has not as many answers as questions.
    """
    question_name, answers_name = names
    if not isinstance(question, list):
        right = texts_of(answers, answers_name, split, row, skips_blank=skips_blank)
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
        right = texts_of(answer, answers_name, split, row, skips_blank=skips_blank)
        yield " ".join([*turns[-_REMEMBERED_TURNS:], text]), right
        turns.append(" ".join([text, *right[:1]]))
