"""A table as a value: what every question about studies is answered with."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import Enum
from html import escape
from re import compile as pattern
from typing import Any

_MOST_SHOWN = 100
_SENTENCE = 40
_STAMP = pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?\+00:00")
_LARGEST_INT = 2**63


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Table:
    """Rows under named columns; a notebook shows it as HTML, ``print`` as text.

    Example:
        >>> table = Table(columns=("trial", "score"), rows=((3, 0.85), (0, 0.8)))
        >>> print(table)
        trial  score
            3   0.85
            0    0.8
        >>> table.column("score")
        (0.85, 0.8)

    Attributes:
        columns: Names; those of a query are the user's, so one may stand twice.
        rows: Text, numbers, booleans, times in UTC, None; one value per column.
        title: One line above it; empty for none.
        is_cut: Whether there are more rows than were asked for.

    Raises:
        ValueError: If a row has not one value per column.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    title: str = ""
    is_cut: bool = False

    def __post_init__(self) -> None:
        """Check that it is a rectangle."""
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"a row must have {len(self.columns)} values; got {len(row)}.")

    @classmethod
    def of(cls, entries: Sequence[Mapping[str, object]], *, columns: Iterable[str] = (), title: str = "") -> "Table":
        """A table of mappings that have the same keys.

        Args:
            entries: The rows; members of an enumeration become their values.
            columns: Names where there are no entries to take them from.
            title: One line above it.
        """
        names = tuple(entries[0]) if entries else tuple(columns)
        rows = tuple(tuple(_plain(entry[name]) for name in names) for entry in entries)
        return cls(columns=names, rows=rows, title=title)

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.rows)

    def column(self, name: str) -> tuple[object, ...]:
        """The values of a column, of the first of that name.

        Raises:
            KeyError: If there is none.
        """
        if name not in self.columns:
            raise KeyError(f"no column {name!r}; there are: {', '.join(self.columns)}")
        place = self.columns.index(name)
        return tuple(row[place] for row in self.rows)

    def of_columns(self, names: Sequence[str]) -> "Table":
        """The same rows with some of the columns, in the order of their names."""
        places = [self.columns.index(name) for name in names]
        rows = tuple(tuple(row[place] for place in places) for row in self.rows)
        return Table(columns=tuple(names), rows=rows, title=self.title, is_cut=self.is_cut)

    def to_text(self, form: str) -> str:
        """All rows as ``table`` (aligned columns), ``markdown``, ``csv`` or ``tsv``."""
        if form in ("csv", "tsv"):
            text = io.StringIO()
            writer = csv.writer(text, lineterminator="\n", delimiter="," if form == "csv" else "\t")
            writer.writerow(self.columns)
            writer.writerows(self.rows)
            return text.getvalue()
        rows = [[_on_one_line(_text(value)) for value in row] for row in self.rows]
        if form == "markdown":
            marks = ["---:" if right else "---" for right in self.is_numeric()]
            lines = [[cell.replace("|", "\\|") for cell in row] for row in (self.columns, marks, *rows)]
            return "".join(f"| {' | '.join(line)} |\n" for line in lines)
        return "".join(f"{line}\n" for line in _aligned([self.columns, *rows], self.is_numeric()))

    def to_dicts(self) -> list[dict[str, object]]:
        """One dictionary a row."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame`` with typed columns.

        Whole numbers are ``Int64``, booleans ``boolean`` and text ``string``, so that None stays a missing value; other
        numbers are ``float64``, times ``datetime64`` in UTC.
        """
        import pandas

        values = list(zip(*self.rows, strict=True)) if self.rows else [()] * len(self.columns)
        frame = pandas.DataFrame({place: _series(column) for place, column in enumerate(values)})
        frame.columns = pandas.Index(self.columns, dtype="object")
        return frame

    def __str__(self) -> str:
        """Aligned text; of a long table the beginning."""
        texts = [self.columns, *([_text(value) for value in row] for row in self.rows[:_MOST_SHOWN])]
        lines = _aligned([[_on_one_line(text) for text in row] for row in texts], self.is_numeric())
        return "\n".join([*([_on_one_line(self.title)] if self.title else []), *lines, *self._rest()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """What a notebook shows; whatever a name or a text contains is text."""
        styles = [
            f' style="text-align: {"right" if right else "left"}{"; min-width: 20em" if long else ""}"'
            for right, long in zip(self.is_numeric(), self._long(), strict=True)
        ]
        caption = f"<caption>{escape(self.title)}</caption>" if self.title else ""
        head = "".join(f"<th{style}>{escape(name)}</th>" for name, style in zip(self.columns, styles, strict=True))
        body = "".join(
            "<tr>"
            + "".join(f"<td{style}>{escape(_text(value))}</td>" for value, style in zip(row, styles, strict=True))
            + "</tr>"
            for row in self.rows[:_MOST_SHOWN]
        )
        rest = "".join(f"<p>{line}</p>" for line in self._rest())
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"

    def is_numeric(self) -> list[bool]:
        """Of every column, whether it holds numbers."""
        return [
            any(_is_number(row[place]) for row in self.rows)
            and all(row[place] is None or _is_number(row[place]) for row in self.rows)
            for place in range(len(self.columns))
        ]

    def _long(self) -> list[bool]:
        """Of every column, whether it holds sentences, which many columns would press into a word a line."""
        shown = self.rows[:_MOST_SHOWN]
        return [any(len(_text(row[place])) > _SENTENCE for row in shown) for place in range(len(self.columns))]

    def _rest(self) -> list[str]:
        hidden = len(self.rows) - _MOST_SHOWN
        if self.is_cut:
            return ["… and more rows"]
        return [f"… and {hidden:,} more rows"] if hidden > 0 else []


def _aligned(cells: Sequence[Sequence[str]], is_right: Sequence[bool]) -> list[str]:
    """Rows of texts in columns as wide as their widest; numbers stand right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(row, widths, is_right, strict=True)
        ).rstrip()
        for row in cells
    ]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _plain(value: object) -> object:
    return value.value if isinstance(value, Enum) else value


def _text(value: object) -> str:
    """A value as people read it."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    return str(value)


def _on_one_line(text: str) -> str:
    """Without line breaks, and without what a terminal would obey."""
    return "".join(character if character.isprintable() else " " for character in text)


def _series(values: Sequence[object]) -> Any:
    """A column of pandas, of the type that all its values have."""
    import pandas

    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return pandas.Series(values, dtype="boolean")
    if kinds == {int} and all(-_LARGEST_INT <= value < _LARGEST_INT for value in values if isinstance(value, int)):
        return pandas.Series(values, dtype="Int64")
    if float in kinds and kinds <= {int, float}:
        return pandas.Series(values, dtype="float64")
    if (kinds and kinds <= {datetime, date}) or _are_stamps(values):
        return pandas.Series(pandas.to_datetime([_utc(value) for value in values], utc=True))
    return pandas.Series(values, dtype="string" if kinds == {str} else "object")


def _are_stamps(values: Sequence[object]) -> bool:
    """Whether all values are times as a query gives them."""
    given = [value for value in values if value is not None]
    return bool(given) and all(isinstance(value, str) and _STAMP.fullmatch(value) for value in given)


def _utc(value: object) -> object:
    return datetime.fromisoformat(value).astimezone(UTC) if isinstance(value, str) else value
