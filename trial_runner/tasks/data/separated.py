"""Reader of separated values, such as those of spreadsheets: all cells are texts, and all rows have equally many.

``pandas`` drops or moves cells of rows whose length differs from the header's. The rows are therefore read by ``csv``,
which reports the number of cells and lines of each.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from trial_runner.errors import TaskError
from trial_runner.tasks.data.text_file import LONGEST_LINE, blank_end, check_columns, encoding_of, lines_of, opened_text

if TYPE_CHECKING:
    from pyarrow import Table

_SEPARATORS = (",", "\t", ";", "|")
_SNIFFED_LINES = 200
_NAMELESS = "Unnamed: 0"
_DECLARATION = re.compile(r"sep=([^\w\s\"]|\t)\s*", re.IGNORECASE)
_BACKSLASH = re.compile(r'\\["\\]|\\')


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dialect:
    """Format of separated values.

    Attributes:
        separator: Character between cells.
        is_quoted: Whether quotes enclose cells.
        is_escaped: Whether a backslash escapes a quote in a cell.
        is_declared: Whether the first line declares the separator, such as ``sep=;``, as spreadsheets write it.
    """

    separator: str
    is_quoted: bool = True
    is_escaped: bool = False
    is_declared: bool = False

    def rows(self, lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
        """Yield each row that is not blank, with the number of its first line.

        Raises:
            _MalformedRow: If a row does not follow the dialect.
        """
        held = _Lines(lines, self.is_escaped)
        if self.is_declared:
            next(held, None)
        reader = csv.reader(
            held,
            delimiter=self.separator,
            quoting=csv.QUOTE_MINIMAL if self.is_quoted else csv.QUOTE_NONE,
            escapechar="\\" if self.is_escaped else None,
            strict=True,
        )
        while True:
            first = held.begin()
            try:
                row = next(reader, None)
            except csv.Error as error:
                raise _MalformedRow(held.problem(str(error))) from None
            if row is None:
                return
            if len(row) > 1 or (row and row[0].strip()):
                yield first, row


class _MalformedRow(Exception):  # noqa: N818 - ends the attempt to read a dialect; users never get it
    """Row that does not follow a dialect; its text is the error message."""


class _Lines:
    """Iterator of lines for ``csv`` that follows the quotes of the current row; no line is kept."""

    def __init__(self, lines: Iterator[str], is_escaped: bool) -> None:
        """Start before the first line."""
        self._lines, self._is_escaped, self._is_open = lines, is_escaped, False
        self._count = self._opens = self._first = 0

    def __iter__(self) -> "Iterator[str]":
        """Return itself."""
        return self

    def __next__(self) -> str:
        """Return the next line; in a dialect with escapes, double each backslash that escapes no character."""
        line = next(self._lines)
        self._count += 1
        if '"' in line:
            plain = line.replace('\\"', "") if self._is_escaped else line
            if quotes := plain.replace('""', "").count('"'):
                self._opens, self._is_open = self._count, self._is_open ^ bool(quotes % 2)
        if self._is_escaped and "\\" in line:
            return _BACKSLASH.sub(lambda found: found[0] if len(found[0]) > 1 else "\\\\", line)
        return line

    def begin(self) -> int:
        """Begin a row; return the number of its first line."""
        self._first, self._opens, self._is_open = self._count + 1, 0, False
        return self._first

    def problem(self, said: str) -> str:
        """Return the error message for the current row, given that of ``csv``."""
        if self._is_open and ("unexpected end" in said or "field limit" in said):
            return (
                f"the quote that opens in line {self._opens} never ends. Close it, or double it within a quoted text."
            )
        if "field limit" in said:
            return f"line {self._first} has a cell above {LONGEST_LINE:,} characters. Write it with less in it."
        return (
            f"line {self._first} has a quoted text that goes on after its quote. Double the quotes within it, as in "
            '"he said ""no""".'
        )


def read_separated(path: Path, most_bytes: int | None = None) -> "Table":
    """Read a file of separated values; its cells are texts.

    Args:
        path: File to read.
        most_bytes: Approximate number of bytes to read from its beginning; None reads all.

    Raises:
        TaskError: If the first line has no column names, or a row has another number of cells; names the line.
    """
    encoding = encoding_of(path, most_bytes)
    with opened_text(path, encoding) as text:
        lines = list(islice(lines_of(text, most_bytes), _SNIFFED_LINES))
    limit = csv.field_size_limit(LONGEST_LINE)
    try:
        problems: list[_MalformedRow] = []
        for dialect in _dialects(path, lines):
            try:
                return _read(path, encoding, dialect, most_bytes)
            except _MalformedRow as error:
                problems.append(error)
        raise TaskError(f"{path.name} of {path.parent}: {problems[0]}")
    finally:
        csv.field_size_limit(limit)


def _dialects(path: Path, lines: Sequence[str]) -> list[_Dialect]:
    """Return possible dialects, most likely first; the first one that reads all rows is used."""
    if declared := _DECLARATION.fullmatch(lines[0]) if lines else None:
        return [_Dialect(separator=declared[1], is_escaped=each, is_declared=True) for each in (False, True)]
    separator = "\t" if ".tsv" in path.name.lower() else max(_SEPARATORS, key=lambda each: _fit(lines, each))
    quoted = [_Dialect(separator=separator), _Dialect(separator=separator, is_escaped=True)]
    if separator != "\t":
        return quoted
    odd = [line for line in lines if line.count('"') % 2]
    is_quoted = not odd or len({line.count("\t") for line in lines if line.strip()}) > 1
    plain = [_Dialect(separator=separator, is_quoted=False)]
    return quoted + plain if is_quoted else plain + quoted


def _fit(lines: Sequence[str], separator: str) -> tuple[bool, float, int]:
    """Return the fit of a separator: whether it gives several columns, the share of rows of that width, the width."""
    try:
        rows = [row for _, row in _Dialect(separator=separator).rows(iter(lines))]
    except _MalformedRow:
        rows = list(csv.reader(lines, delimiter=separator))
    names = len(rows[0]) if rows else 0
    return names > 1, sum(len(row) == names for row in rows) / max(1, len(rows)), names


def _read(path: Path, encoding: str, dialect: _Dialect, most_bytes: int | None) -> "Table":
    import pyarrow

    with opened_text(path, encoding) as text:
        rows = dialect.rows(lines_of(text, most_bytes))
        found: list[list[str]] = []
        _, header = next(rows, (1, []))
        names = header[: len(header) - blank_end(header)]
        _check_header(path, names)
        width, first_length, arrays = len(names), 0, [[] for _ in names]  # type: ignore[var-annotated]
        for line, row in _whole(rows, most_bytes):
            first_length = first_length or len(row)
            cells, more = row[:width], row[width:]
            if any(cell.strip() for cell in more):
                if len(row) <= len(header) and len(header) > width:
                    raise _MalformedRow(_nameless(header, row, width, line))
                raise _MalformedRow(_uneven(line, len(row), len(header), dialect.separator))
            if len(cells) < width or (len(row) != first_length and max(len(row), first_length) > len(header)):
                raise _MalformedRow(_uneven(line, len(row), len(header), dialect.separator))
            found.append(cells)
            if len(found) == _BATCH_ROWS:
                _add(arrays, found)
        _add(arrays, found)
    columns = [pyarrow.chunked_array(parts, type=pyarrow.string()) for parts in arrays]
    return pyarrow.table(columns, names=[name or _NAMELESS for name in names])


_BATCH_ROWS = 20_000


def _add(arrays: list[list[object]], rows: list[list[str]]) -> None:
    """Move rows to the arrays of their columns."""
    import pyarrow

    for parts, cells in zip(arrays, zip(*rows, strict=True), strict=bool(rows)):
        parts.append(pyarrow.array(cells, type=pyarrow.string()))
    rows.clear()


def _whole(rows: Iterator[tuple[int, list[str]]], most_bytes: int | None) -> Iterator[tuple[int, list[str]]]:
    """Yield rows, without an incomplete last one where the file is read in part."""
    try:
        yield from rows
    except _MalformedRow as error:
        if most_bytes is None or "never ends" not in str(error):
            raise


def _uneven(line: int, got: int, wanted: int, separator: str) -> str:
    word = {"\t": "tab"}.get(separator, repr(separator))
    return (
        f"line {line} has {got} cells where the first line names {wanted}. Put quotes around texts that contain the "
        f"separator, which is {word}."
    )


def _nameless(header: list[str], row: list[str], width: int, line: int) -> str:
    filled = [str(number) for number, cell in enumerate(row, start=1) if number > width and cell.strip()]
    return (
        f"line {line} has values in column{'s' * (len(filled) > 1)} {', '.join(filled)}, which the first line does "
        f"not name. Delete the {len(header) - width} separators at the end of the first line, or name the columns."
    )


def _check_header(path: Path, names: list[str]) -> None:
    """Check that the first line names the columns, rather than being a row of data."""
    check_columns(path, len(names))
    blank = [str(number) for number, name in enumerate(names, start=1) if not name.strip() and number > 1]
    odd = [name for name in names if _is_number(name) or len(name) > 100]
    if odd or blank or len(set(names)) < len(names) or not names:
        got = ", ".join(repr(name if len(name) <= 30 else f"{name[:29]}…") for name in names[:4])
        raise TaskError(
            f"the first line of {path.name} must name its columns, each once; got {got}. Put a line such as "
            "'text,label' before it."
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
