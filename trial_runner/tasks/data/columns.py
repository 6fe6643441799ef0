"""Columns of a dataset, found by name or by path, and their values."""

from typing import TYPE_CHECKING, Any

from search_space.closest_name import name_hint
from trial_runner.errors import TaskError
from trial_runner.tasks.task import Grouping

if TYPE_CHECKING:
    from datasets import Dataset

TRANSLATION_COLUMN = "translation"  # the hub's column of texts by language
_LISTS = ("text", "input_text")  # keys of the answer texts in SQuAD and CoQA


def has_column(dataset: "Dataset", name: str) -> bool:
    """Return whether a dataset has a column; `column` describes the names."""
    return _path(dataset, name) is not None


def check_column(dataset: "Dataset", name: str, split: str) -> None:
    """Check that a dataset has a column and at least one row.

    Raises:
        TaskError: If it does not.
    """
    if not has_column(dataset, name):
        present = [path for each in dataset.column_names for path in _paths(dataset.features[each], each)]
        raise TaskError(
            f"split {split!r} must have a column {name!r}; it has: {', '.join(present)}.{name_hint(name, present)}"
        )
    if not len(dataset):
        raise TaskError(f"split {split!r} must hold at least one example; got none.")


def column(dataset: "Dataset", name: str, split: str) -> list[Any]:
    """Return the values of a column, row by row.

    Args:
        dataset: Dataset with the column.
        name: Name of the column, or a path such as ``lex.text`` into a column of mappings or of lists of them. A
            language also selects its field of the hub's column ``translation``.
        split: Name of the split in error messages.

    Raises:
        TaskError: If there is no such column, or no row.
    """
    check_column(dataset, name, split)
    first, *rest = _path(dataset, name) or [name]
    values: list[Any] = list(dataset.select_columns([first])[:][first])  # decoded, unlike its Arrow table
    for step in rest:
        values = [_inside(value, step) for value in values]
    return values


def check_text(value: object, name: str, split: str, row: int) -> str:
    """Return a value if it is a text that is not blank.

    Args:
        value: Value of a cell.
        name: Name of the column.
        split: Name of the split.
        row: Row number, counted from 1.

    Raises:
        TaskError: If it is no string, or blank.
    """
    if isinstance(value, list) and value:
        raise TaskError(
            f"text must be a string, not a list; got a list of {len(value)} in column {name!r} of split {split!r}, row "
            f"{row}. Lists of texts are joined where task.join says with what, such as '\\n'."
        )
    if not isinstance(value, str) or not value.strip():
        raise TaskError(
            f"text must be a string that is not blank; got {value!r} in column {name!r} of split {split!r}, row {row}."
        )
    return value


def given_text(value: object, name: str, split: str, row: int) -> str:
    """Return a text, or an empty one for a missing or blank value; other values as in `check_text`."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return ""
    return check_text(value, name, split, row)


def texts_of(value: object, name: str, split: str, row: int) -> tuple[str, ...]:
    """Return the distinct texts of a text, a list of texts, or ``{"text": [...]}``; blank ones and None are left out.

    Args:
        value: Value of a cell.
        name: Name of the column.
        split: Name of the split.
        row: Row number, counted from 1.

    Raises:
        TaskError: If a text is no string.
    """
    if isinstance(value, dict):
        value = next((value[key] for key in _LISTS if key in value), value)
    values = value if isinstance(value, list) else [value]
    present = [each for each in values if each is not None and str(each).strip()]
    return tuple(dict.fromkeys(check_text(each, name, split, row) for each in present))


def read_groups(dataset: "Dataset", grouping: Grouping | None, split: str, group: str) -> tuple[str, ...]:
    """Return the group of each row: that of the grouping's column, else ``group`` for all rows.

    Raises:
        TaskError: If the column is missing.
    """
    if grouping is None:
        return (group,) * len(dataset)
    return tuple(grouping.name_of(value) for value in column(dataset, grouping.column, split))


def _path(dataset: "Dataset", name: str) -> list[str] | None:
    """Return the keys that lead to a column; None if the dataset lacks it."""
    present = dataset.column_names
    if name in present:
        return [name]
    first, *rest = name.split(".")
    if rest and first in present:
        return [first, *rest] if _leads_on(dataset.features[first], rest) else None
    if TRANSLATION_COLUMN in present and _leads_on(dataset.features[TRANSLATION_COLUMN], [name]):
        return [TRANSLATION_COLUMN, name]
    return None


def fields_of(feature: Any) -> dict[str, Any]:
    """Return the features inside a feature of mappings, by name; the languages of a translation map to None."""
    languages = getattr(feature, "languages", None)
    if languages is not None:
        return dict.fromkeys(languages)
    return dict(feature) if isinstance(feature, dict) else {}


def _paths(feature: Any, name: str) -> list[str]:
    """Return the name of a column, or the paths to the fields of a column of mappings."""
    inner = fields_of(feature)
    return [path for key, each in inner.items() for path in _paths(each, f"{name}.{key}")] if inner else [name]


def _leads_on(feature: Any, steps: list[str]) -> bool:
    """Return whether a feature of the ``datasets`` library has nested fields along these keys."""
    feature = getattr(feature, "feature", feature)
    if not steps:
        return True
    languages = getattr(feature, "languages", None)
    if languages is not None:
        return steps[0] in languages and len(steps) == 1
    if isinstance(feature, list):
        feature = feature[0]
    return isinstance(feature, dict) and steps[0] in feature and _leads_on(feature[steps[0]], steps[1:])


def _inside(value: Any, step: str) -> Any:
    """Return the field of a mapping, or of each mapping of a list."""
    if isinstance(value, dict):
        return value.get(step)
    return [_inside(each, step) for each in value] if isinstance(value, list) else None
