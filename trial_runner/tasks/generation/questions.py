"""Questions and their answers, one by one or in a conversation."""

from collections.abc import Iterator
from typing import Any

from trial_runner.errors import TaskError
from trial_runner.tasks.data.columns import check_text, texts_of
from trial_runner.tasks.generation.source import QuestionColumns

_REMEMBERED_TURNS = 2  # more did not help the models of Reddy et al. 2019


def questions_of(
    question: Any, answers: Any, columns: QuestionColumns, split: str, row: int, *, skips_blank: bool = False
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each question of a row and the answers that are right.

    A question of a conversation is preceded by the last two questions and their answers.

    Args:
        question: A text, or a list of the questions of a conversation.
        answers: Of that question, or of each of the list.
        columns: Their names, for messages.
        split: Of the dataset.
        row: Counted from 1.
        skips_blank: Whether blank answers are left out rather than refused.

    Raises:
        TaskError: If a text is blank, or a conversation has not as many answers as questions.
    """
    if not isinstance(question, list):
        right = texts_of(answers, columns.answers, split, row, skips_blank=skips_blank)
        yield check_text(question, columns.question, split, row), right
        return
    if isinstance(answers, dict):
        answers = answers.get("input_text", answers.get("text"))
    given = answers if isinstance(answers, list) else []
    if len(given) != len(question):
        raise TaskError(
            f"a conversation must have an answer for each of its {len(question)} questions; got {len(given)} in column "
            f"{columns.answers!r} of split {split!r}, row {row}."
        )
    turns: list[str] = []
    for asked, answer in zip(question, given, strict=True):
        text = check_text(asked, columns.question, split, row)
        right = texts_of(answer, columns.answers, split, row, skips_blank=skips_blank)
        yield " ".join([*turns[-_REMEMBERED_TURNS:], text]), right
        turns.append(" ".join([text, *right[:1]]))
