"""Rows that each have choices of their own, which no kind of task here learns."""

from collections.abc import Sequence
from string import ascii_uppercase
from typing import Any

from trial_runner.errors import TaskError
from trial_runner.tasks.inspection.columns import Column, ColumnKind

_NAMES = ("choices", "choice", "options", "endings", "candidates", "answers", "alternatives")
_PLACES = (ColumnKind.LABEL, ColumnKind.NUMBER)


def refuse_multiple_choice(columns: Sequence[Column], answers: Sequence[Column]) -> None:
    """Refuse a column that lists the choices of its row where another says which is right.

    Args:
        columns: All there are.
        answers: Those of them that may be the label.

    Raises:
        TaskError: If there is such a pair.
    """
    kinds = (ColumnKind.TEXTS, ColumnKind.OTHER)
    for choices in (column for column in columns if column.kind in kinds and column.name in _NAMES):
        for right in answers:
            if right is not choices and _says_which(right, choices):
                raise TaskError(
                    f"multiple choice is no kind of task here: {right.name!r} says which text of {choices.name!r} is "
                    "right. Make a row of every choice, beside its question, and label it right or wrong."
                )


def _says_which(right: Column, choices: Column) -> bool:
    """Whether each value is a place in the list of its row, from 0 or 1 or as a letter, or one of its texts."""
    pairs = list(zip(right.values, map(_offered, choices.values), strict=True))
    is_place = right.kind in _PLACES and any(
        all(isinstance(value, int) and first <= value < first + len(texts) for value, texts in pairs)
        for first in (0, 1)
    )
    return is_place or all(value in (*texts, *ascii_uppercase[: len(texts)]) for value, texts in pairs)


def _offered(value: Any) -> Sequence[str]:
    """The choices of a row: a list of texts, or texts that have labels of their own beside them."""
    found = value.get("label") if isinstance(value, dict) else value
    return found if isinstance(found, list) and all(isinstance(text, str) for text in found) else ()
