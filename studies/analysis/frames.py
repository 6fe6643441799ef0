"""Pandas frames with columns typed by their values; small vocabularies are categorical."""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from enum import Enum
from re import compile as pattern
from typing import TYPE_CHECKING, Any

from search_space.dimensions import Heads, Insertion
from studies.records import TrialState

if TYPE_CHECKING:
    import pandas

_STAMP = pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?\+00:00")
_LARGEST_INT = 2**63
_WORDS: Mapping[str, tuple[str, ...]] = {
    "state": tuple(state.value for state in TrialState),
    "origin": ("published", "proposed", "replicate"),
    "method": (),
    "form": (),
    "write": (),
    "read": (),
    "insertion": tuple(one.value for one in Insertion),
    "gate": (),
    "heads": tuple(one.value for one in Heads),
    "activation": (),
}
"""Categorical columns, with the first categories in order; the others follow alphabetically."""


def frame(entries: Sequence[Mapping[str, object]], *, columns: Iterable[str] = ()) -> "pandas.DataFrame":
    """Return a frame of mappings with equal keys; see `frame_of`.

    Args:
        entries: Rows.
        columns: Names of the columns if there are no rows.
    """
    names = tuple(entries[0]) if entries else tuple(columns)
    return frame_of(names, [[entry[name] for name in names] for entry in entries])


def frame_of(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> "pandas.DataFrame":
    """Return a frame of rows under named columns.

    Whole numbers are ``Int64``, booleans ``boolean`` and text ``string``, so that None stays a missing value. Other
    numbers are ``float64``, times ``datetime64`` in UTC. States, origins, methods and words of design dimensions are
    categories.

    Args:
        columns: Names; those of a query are the user's, so one may occur twice.
        rows: One value per column; members of an enumeration become their values.
    """
    import pandas

    values = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    found = {}
    for place, (name, column) in enumerate(zip(columns, values, strict=True)):
        series = _series([value.value if isinstance(value, Enum) else value for value in column])
        word = name.removeprefix("attention_").removeprefix("ffn_")
        is_text = str(series.dtype) == "string" or bool(series.isna().all())
        is_words = columns.count(name) == 1 and word in _WORDS and is_text
        found[place] = _categories(series, _WORDS[word]) if is_words else series
    made = pandas.DataFrame(found)
    made.columns = pandas.Index(columns, dtype="object")
    return made


def frame_rows(table: "pandas.DataFrame") -> list[dict[str, Any]]:
    """Return the rows of a frame as JSON-able mappings; missing values are None."""
    return [
        {str(name): _plain(value) for name, value in zip(table.columns, row, strict=True)}
        for row in table.itertuples(index=False, name=None)
    ]


def _plain(value: Any) -> object:
    """Return a cell as JSON-able value."""
    import pandas

    if isinstance(value, str | bool | tuple | list):
        return value
    if pandas.isna(value):
        return None
    if isinstance(value, datetime):
        return value.isoformat()
    found = value.item() if hasattr(value, "item") else value
    return None if isinstance(found, float) and not math.isfinite(found) else found


def _categories(column: Any, usual: Sequence[str]) -> Any:
    import pandas

    others = sorted(set(column.dropna()) - set(usual))
    return column.astype(pandas.CategoricalDtype([*usual, *others]))


def _series(values: Sequence[object]) -> Any:
    """Return a column of the common type of its values."""
    import pandas

    given = [value for value in values if value is not None]
    kinds = {type(value) for value in given}
    if kinds == {bool}:
        return pandas.Series(values, dtype="boolean")
    if kinds == {int} and all(-_LARGEST_INT <= value < _LARGEST_INT for value in values if isinstance(value, int)):
        return pandas.Series(values, dtype="Int64")
    if float in kinds and kinds <= {int, float}:
        return pandas.Series(values, dtype="float64")
    # or times as a query gives them
    if kinds and (kinds <= {datetime, date} or all(isinstance(one, str) and _STAMP.fullmatch(one) for one in given)):
        return pandas.Series(pandas.to_datetime([_utc(value) for value in values], utc=True))
    return pandas.Series(values, dtype="string" if kinds == {str} else "object")


def _utc(value: object) -> object:
    return datetime.fromisoformat(value).astimezone(UTC) if isinstance(value, str) else value
