"""What the columns of a dataset hold, from some of its rows: kinds of values, choices, lengths in tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

from trial_runner.errors import TaskError
from trial_runner.huggingface import quiet_transformers
from trial_runner.tasks.data.columns import column
from trial_runner.tasks.data.linearise import is_conversation, linearise

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedTokenizerFast


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
    kind, more = _kind_of(dataset.features[name], there) if there else (ColumnKind.EMPTY, {})
    return Column(name=name, kind=kind, values=values, filled=len(there) / len(values), **more)


def _kind_of(feature: Any, there: list[Any]) -> tuple[ColumnKind, dict[str, Any]]:
    """What values are, and other fields of their column."""
    if getattr(feature, "names", None) is not None:
        return ColumnKind.LABEL, {"distinct": len(set(there))}
    if all(isinstance(value, str | int | float) for value in there):
        return _plain(there)
    if all(isinstance(value, list) for value in there):
        return _lists(there)
    if all(isinstance(value, dict) for value in there):
        keys = tuple(dict.fromkeys(key for value in there for key in value))
        if all(isinstance(text, str | None) for value in there for text in value.values()):
            return ColumnKind.LANGUAGES, {"keys": keys}
    return ColumnKind.OTHER, {}


def _plain(there: list[Any]) -> tuple[ColumnKind, dict[str, Any]]:
    distinct = len(set(there))
    words = sum(len(str(value).split()) for value in there) / len(there)
    is_few = distinct <= max(_FEW_LABELS, len(there) // _ROWS_OF_A_LABEL) and 2 * distinct <= max(4, len(there))
    if any(isinstance(value, float) for value in there):
        kind = ColumnKind.NUMBER
    elif is_few and words <= _WORDS_OF_A_LABEL:
        kind = ColumnKind.LABEL
    else:
        kind = ColumnKind.TEXT if any(isinstance(value, str) for value in there) else ColumnKind.NUMBER
    return kind, {"distinct": distinct, "words": words}


def _lists(there: list[list[Any]]) -> tuple[ColumnKind, dict[str, Any]]:
    are_triples = all(isinstance(linearise(value), str) for value in there)
    if all(map(is_conversation, there)):
        kind = ColumnKind.CONVERSATION
    elif are_triples and any(len(value) != 3 for value in there):
        kind = ColumnKind.TRIPLES
    elif all(isinstance(text, str) for value in there for text in value):
        kind = ColumnKind.TEXTS
    elif are_triples:
        kind = ColumnKind.TRIPLES
    else:
        return ColumnKind.OTHER, {}
    return kind, {"words": sum(len(str(text).split()) for value in there for text in value) / len(there)}


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
    for choices in (one for one in columns if one.kind in kinds and one.name in _NAMES):
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


_STEP = 8
_WHOLE = 0.98
"""Share of the texts that a proposed length leaves whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Tokens of some texts, special ones among them.

    Attributes:
        tokens: Ascending, at least one.
    """

    tokens: tuple[int, ...]

    def quantile(self, share: float) -> int:
        """The smallest length that so large a share of the texts do not exceed."""
        return self.tokens[min(len(self.tokens) - 1, max(0, -int(-share * len(self.tokens) // 1) - 1))]

    def share_cut(self, longest: int) -> float:
        """Share of the texts that are longer."""
        return sum(length > longest for length in self.tokens) / len(self.tokens)

    def proposed(self, *, most: int) -> int:
        """A multiple of 8 that leaves 98 in 100 texts whole, if it is not above ``most``; at least 8."""
        wanted = -(-self.quantile(_WHOLE) // _STEP) * _STEP
        return max(_STEP, min(wanted, most))


def longest(lengths: Sequence[Lengths]) -> Lengths:
    """Those of several splits of which most are longest."""
    return max(lengths, key=lambda each: (each.quantile(_WHOLE), each.tokens[-1]))


def token_lengths(tokenizer: "PreTrainedTokenizerFast", columns: Sequence[Sequence[str]], *, extra: int = 0) -> Lengths:
    """The lengths of texts, or of pairs.

    Args:
        columns: The texts; of pairs also the second ones.
        extra: Tokens that the task adds to each.
    """
    with quiet_transformers():
        ids = tokenizer(*(list(column) for column in columns), truncation=False, padding=False)["input_ids"]
    return Lengths(tokens=tuple(sorted(len(row) + extra for row in ids)))
