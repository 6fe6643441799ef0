"""Reader of JSON objects that keeps texts as texts and numbers of any size exact."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from trial_runner.errors import TaskError
from trial_runner.files import halved_character
from trial_runner.tasks.data.text_file import (
    MOST_COLUMNS,
    chunks,
    encoding_of,
    is_json,
    lines_of,
    opened_text,
    too_large,
)

if TYPE_CHECKING:
    from pyarrow import Array, Table

_MOST_LEVELS = 500
"""Largest depth of nested values."""
_EXACT = 2**53
"""Bound below which each integer has a float of its own."""


class _Sizes:
    """Bounds on the names and the depth of a JSON file, checked while it is read."""

    def __init__(self, path: Path) -> None:
        """Start before the first chunk."""
        self._path = path
        self._level = 0
        self._is_text = False
        self._held = b""
        self._names: set[bytes] = set()

    def take(self, chunk: bytes) -> None:
        """Count the nesting depth and the distinct names at every level of a chunk; each name makes a column.

        Raises:
            TaskError: If there are too many.
        """
        chunk = self._held + chunk
        end = len(chunk) - (len(chunk) - len(chunk.rstrip(b"\\"))) % 2
        chunk, self._held = chunk[:end], chunk[end:]
        parts = chunk.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        outside = np.frombuffer(b"".join(parts[self._is_text :: 2]), dtype=np.uint8)
        first = 1 + self._is_text  # a text that began in an earlier chunk has only its end here
        self._names.update(
            text
            for text, after in zip(parts[first::2], parts[first + 1 :: 2], strict=False)
            if after.lstrip()[:1] == b":"
        )
        if len(self._names) > MOST_COLUMNS:
            raise too_large(self._path, f"at most {MOST_COLUMNS:,} columns")
        self._is_text ^= len(parts) % 2 == 0
        steps = np.isin(outside, list(b"[{")).astype(np.int64) - np.isin(outside, list(b"]}"))
        levels = self._level + np.cumsum(steps)
        if len(levels) and levels.max() > _MOST_LEVELS:
            raise too_large(self._path, f"at most {_MOST_LEVELS} values within each other")
        self._level = max(0, int(levels[-1])) if len(levels) else self._level


def read_objects(paths: Sequence[Path], most_bytes: int | None = None) -> "Table":
    """Read files of JSON objects, one per line or in a list.

    Args:
        paths: Parts of one split.
        most_bytes: Approximate number of bytes to read from the beginning of each file of lines; None reads all.

    Raises:
        TaskError: If a row is not an object, or a column has no common type; names file and line.
    """
    import pyarrow

    rows = [row for path in paths for row in _rows(path, most_bytes)]
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = [_column([row.get(name) for row in rows]) for name in names]
    return pyarrow.table(columns, names=names)


def _rows(path: Path, most_bytes: int | None) -> Iterator[Mapping[str, Any]]:
    sizes = _Sizes(path)
    for chunk in chunks(path, most_bytes):
        sizes.take(chunk)
    with opened_text(path, encoding_of(path, most_bytes)) as text:
        begin = text.read(1 << 16).lstrip()[:1]
        text.seek(0)
        if begin == "[" or _is_one_value(text, path, begin):
            values: Any = _parsed(text.read(), path.name)
            rows = values if isinstance(values, list) else _rows_of_columns(values)
            for number, value in enumerate(rows, start=1):
                yield _checked(value, f"row {number} of {path.name}")
            return
        for number, line in enumerate(lines_of(text, most_bytes), start=1):
            if line.strip():
                where = f"line {number} of {path.name}"
                yield _checked(_parsed(line, where), where)


def _is_one_value(text: TextIO, path: Path, begin: str) -> bool:
    """Return whether a file is one JSON object, perhaps over several lines; rewind the text."""
    if begin != "{" or not is_json(path):
        return False
    decoder = json.JSONDecoder()
    content = text.read()
    text.seek(0)
    try:
        _, end = decoder.raw_decode(content, len(content) - len(content.lstrip()))
    except (ValueError, RecursionError):
        return False
    return not content[end:].strip()


def _rows_of_columns(values: Mapping[str, Any]) -> list[Any]:
    """Return the rows of an object of columns: lists of one length, or mappings with the same keys; else one row."""
    columns = list(values.values())
    if columns and all(isinstance(column, dict) and column.keys() == columns[0].keys() for column in columns):
        columns = [list(column.values()) for column in columns]
    if len(columns) < 2 or not all(isinstance(column, list) and len(column) == len(columns[0]) for column in columns):
        return [values]
    return [dict(zip(values, row, strict=True)) for row in zip(*columns, strict=True)]


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TaskError(f"{where} must be readable as json; {getattr(error, 'msg', error)}.") from error


def _checked(row: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(row, dict):
        raise TaskError(f"{where} must be a JSON object; got {type(row).__name__}.")
    if half := halved_character(row):
        raise TaskError(f"{where} {half}")
    return row


def _column(values: list[Any]) -> "Array":
    """Convert values to a column; a mixture of texts, numbers and booleans becomes text, other mixtures stay JSON."""
    import pyarrow

    with suppress(pyarrow.ArrowException, OverflowError):
        return pyarrow.array(values)
    if all(value is None or isinstance(value, str | int | float) for value in values):
        return pyarrow.array([plain_text(value) for value in values], type=pyarrow.string())
    texts = [None if value is None else json.dumps(value) for value in values]
    return pyarrow.array(texts, type=pyarrow.json_())


def plain_text(value: str | float | None) -> str | None:
    """Return a value as text; a whole number has no fraction, so 1 and 1.0 are both ``1``."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return str(int(value))
    return str(value)


_DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+")
THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}")
"""Pattern of a number whose comma may be a decimal comma or a thousands separator."""


def number_of(value: str | float) -> float:
    """Convert a text to a number; a decimal comma is accepted.

    Raises:
        ValueError: If the text is not a number.
    """
    if isinstance(value, str) and _DECIMAL_COMMA.fullmatch(value.strip()):
        value = value.replace(",", ".")
    if isinstance(value, str) and "_" in value:
        raise ValueError(f"{value!r} is no number")
    return float(value)
