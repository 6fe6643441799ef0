"""What the columns of a dataset hold, from some of its rows."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from trial_runner.tasks.data.columns import column
from trial_runner.tasks.data.dialogues import is_conversation
from trial_runner.tasks.data.linearise import linearise

if TYPE_CHECKING:
    from datasets import Dataset

_FEW_LABELS = 20
_ROWS_OF_A_LABEL = 20
_WORDS_OF_A_LABEL = 6


class ColumnKind(StrEnum):
    """What stands in a column."""

    TEXT = "text"
    LABEL = "labels"
    """Few different short texts, whole numbers, or true and false."""
    NUMBER = "numbers"
    TEXTS = "lists of texts"
    CONVERSATION = "messages with a role and a content"
    TRIPLES = "lists of triples"
    LANGUAGES = "texts by language"
    EMPTY = "nothing"
    OTHER = "something else"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column as some rows show it.

    Attributes:
        kind: What stands in it.
        values: Of the rows looked at.
        distinct: Different values among them, of plain texts, numbers and labels; 0 of others.
        words: Mean words of a text; of a list of texts of all of them; 0 of others.
        keys: Of texts by language, the languages.
        filled: Share of the rows that have a value.
    """

    name: str
    kind: ColumnKind
    values: tuple[Any, ...]
    distinct: int = 0
    words: float = 0.0
    keys: tuple[str, ...] = ()
    filled: float = 1.0


def look_at(dataset: "Dataset") -> tuple[Column, ...]:
    """The columns of a dataset, in their order."""
    return tuple(_look(dataset, name) for name in dataset.column_names) if len(dataset) else ()


def _look(dataset: "Dataset", name: str) -> Column:
    values = tuple(column(dataset, name, "train"))
    there = [value for value in values if value is not None and value != "" and value != []]
    if not there:
        return Column(name=name, kind=ColumnKind.EMPTY, values=values, filled=0.0)
    return replace(_filled(dataset, name, values, there), filled=len(there) / len(values))


def _filled(dataset: "Dataset", name: str, values: tuple[Any, ...], there: list[Any]) -> Column:
    if getattr(dataset.features[name], "names", None) is not None:
        return Column(name=name, kind=ColumnKind.LABEL, values=values, distinct=len(set(there)))
    if all(isinstance(value, str | int | float) for value in there):
        return _plain(name, values, there)
    if all(isinstance(value, list) for value in there):
        return _lists(name, values, there)
    if all(isinstance(value, dict) for value in there):
        keys = tuple(dict.fromkeys(key for value in there for key in value))
        if all(isinstance(text, str | None) for value in there for text in value.values()):
            return Column(name=name, kind=ColumnKind.LANGUAGES, values=values, keys=keys)
    return Column(name=name, kind=ColumnKind.OTHER, values=values)


def _plain(name: str, values: tuple[Any, ...], there: list[Any]) -> Column:
    distinct = len(set(there))
    words = sum(len(str(value).split()) for value in there) / len(there)
    is_few = distinct <= max(_FEW_LABELS, len(there) // _ROWS_OF_A_LABEL) and 2 * distinct <= max(4, len(there))
    if any(isinstance(value, float) for value in there):
        kind = ColumnKind.NUMBER
    elif is_few and words <= _WORDS_OF_A_LABEL:
        kind = ColumnKind.LABEL
    else:
        kind = ColumnKind.TEXT if any(isinstance(value, str) for value in there) else ColumnKind.NUMBER
    return Column(name=name, kind=kind, values=values, distinct=distinct, words=words)


def _lists(name: str, values: tuple[Any, ...], there: list[list[Any]]) -> Column:
    if all(map(is_conversation, there)):
        kind = ColumnKind.CONVERSATION
    elif any(len(value) != 3 for value in there) and all(isinstance(linearise(value), str) for value in there):
        kind = ColumnKind.TRIPLES
    elif all(isinstance(text, str) for value in there for text in value):
        kind = ColumnKind.TEXTS
    elif all(isinstance(linearise(value), str) for value in there):
        kind = ColumnKind.TRIPLES
    else:
        return Column(name=name, kind=ColumnKind.OTHER, values=values)
    words = sum(len(str(text).split()) for value in there for text in value) / len(there)
    return Column(name=name, kind=kind, values=values, words=words)
