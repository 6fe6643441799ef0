"""Kinds of the columns of a dataset, and of the fields of mappings, inferred from a sample of its rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from trial_runner.tasks.data.columns import column, fields_of
from trial_runner.tasks.data.linearise import is_conversation
from trial_runner.tasks.data.objects import number_of

if TYPE_CHECKING:
    from datasets import Dataset

_FEW_LABELS = 20
_ROWS_OF_A_LABEL = 20
_WORDS_OF_A_LABEL = 6


class ColumnKind(StrEnum):
    """Kind of a column."""

    TEXT = "text"
    LABEL = "labels"
    """Few distinct short texts, whole numbers, or booleans."""
    NUMBER = "numbers"
    TEXTS = "lists of texts"
    CONVERSATION = "messages with a role and a content"
    EMPTY = "nothing"
    OTHER = "something else"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """Column with its kind, inferred from a sample of rows.

    Attributes:
        name: Path of the column.
        kind: Kind of its values.
        values: Values of the sampled rows.
        fields: Columns inside a column of mappings, by their paths, such as ``translation.en``.
    """

    name: str
    kind: ColumnKind
    values: tuple[Any, ...]
    fields: "Mapping[str, Column]" = field(default_factory=dict)

    @property
    def is_scale(self) -> bool:
        """Whether the column holds numbers, at least one of them with a fraction."""
        return self.kind is ColumnKind.NUMBER and any(value % 1 > 0 for value in self.values if value is not None)

    @property
    def is_whole(self) -> bool:
        """Whether each value is an integer of at least 0."""
        return all(isinstance(value, int) and not isinstance(value, bool) and value >= 0 for value in self.values)

    @property
    def is_names(self) -> bool:
        """Whether each value is one of a few short texts."""
        return self.kind is ColumnKind.LABEL and all(isinstance(value, str) and value.strip() for value in self.values)


def look_at(dataset: "Dataset") -> dict[str, Column]:
    """Return the columns of a dataset by name, in their order."""
    if not len(dataset):
        return {}
    features = dataset.features
    return {name: _look(features[name], name, column(dataset, name, "train")) for name in dataset.column_names}


def _look(feature: Any, name: str, values: Sequence[Any]) -> Column:
    values = _numbers(values)
    there = [value for value in values if value is not None and value != "" and value != []]
    fields = {}
    for key, inner in fields_of(feature).items():
        path = f"{name}.{key}"
        fields[path] = _look(inner, path, [value.get(key) if isinstance(value, dict) else None for value in values])
    return Column(name=name, kind=_kind_of(feature, there), values=tuple(values), fields=fields)


def _numbers(values: Sequence[Any]) -> Sequence[Any]:
    """Convert texts to numbers if each of them is a number; files of separated values hold texts alone."""
    texts = [value for value in values if value is not None and value != ""]
    if not all(isinstance(text, str) for text in texts):
        return values
    try:
        numbers = [None if value is None or not value.strip() else number_of(value) for value in values]
    except ValueError:
        return values
    is_whole = all(number is None or number.is_integer() for number in numbers)
    return [int(number) if is_whole and number is not None else number for number in numbers]


def flat(columns: Mapping[str, Column]) -> dict[str, Column]:
    """Return columns and all columns inside of them, by path."""
    found: dict[str, Column] = {}
    for name, one in columns.items():
        found |= {name: one, **flat(one.fields)}
    return found


def _kind_of(feature: Any, there: list[Any]) -> ColumnKind:
    if not there:
        return ColumnKind.EMPTY
    if getattr(feature, "names", None) is not None:
        return ColumnKind.LABEL
    if all(isinstance(value, str | int | float) for value in there):
        return _plain_kind_of(there)
    if all(map(is_conversation, there)):
        return ColumnKind.CONVERSATION
    if all(isinstance(value, list) and all(isinstance(text, str) for text in value) for value in there):
        return ColumnKind.TEXTS
    return ColumnKind.OTHER


def _plain_kind_of(there: list[Any]) -> ColumnKind:
    distinct = len(set(there))
    words = sum(len(str(value).split()) for value in there) / len(there)
    is_few = distinct <= max(_FEW_LABELS, len(there) // _ROWS_OF_A_LABEL) and 2 * distinct <= max(4, len(there))
    if any(isinstance(value, float) for value in there):
        return ColumnKind.NUMBER
    if is_few and words <= _WORDS_OF_A_LABEL:
        return ColumnKind.LABEL
    return ColumnKind.TEXT if any(isinstance(value, str) for value in there) else ColumnKind.NUMBER


def names_of(columns: Mapping[str, Column], label: str) -> str | None:
    """Return the column with one name for each integer of a label; None without one."""
    numbers = columns.get(label)
    if numbers is None or not numbers.is_whole:
        return None
    for name, one in columns.items():
        pairs = set(zip(numbers.values, one.values, strict=True)) if one.is_names else set()
        if len(pairs) > 1 and len(pairs) == len(set(numbers.values)) == len(set(one.values)):
            return name
    return None
