"""Pandas frames as text: aligned columns for the terminal; CSV, TSV and Markdown for programs."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from dashboards.terminal.layout import escape, plain_table, value_text

if TYPE_CHECKING:
    import pandas

_FORMATS: Mapping[str, str] = {
    **dict.fromkeys(("share", "of_budget"), ".0%"),
    **dict.fromkeys(("gain", "difference"), "+.4f"),
    **dict.fromkeys(("best_rate", "from", "to", "attention_learning_rate", "ffn_learning_rate"), ".1e"),
    **dict.fromkeys(("validation_score", "test_mean", "test_lowest", "test_deviation"), ".4f"),
    **dict.fromkeys(("mean", "deviation", "optimism"), ".4f"),
    **dict.fromkeys(("p_value", "adjusted_p"), ".2g"),
    "budget_fraction": ".1%",
    "as_good": ".2f",
}
"""Format of a fraction by name of its column."""

_MOST_CHARACTERS = 10_000
_ENDS = ("low", "high")
_WITH_ENDS = ("share", "gain", "difference")


def cell_text(name: str, value: object, others: Mapping[str, object]) -> str:
    """Return the text of a cell in the format of its column; interval ends have the format of their estimate."""
    if name in _ENDS:
        name = next((other for other in _WITH_ENDS if other in others), name)
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "not shown" if name == "matters" else "no"
    if isinstance(value, int):
        planned = others.get("planned") if name == "seeds" else None
        return f"{value:,}" if planned in (None, value) else f"{value} of {planned}"
    if not isinstance(value, float):
        return str(value)
    usual = ".4f" if 1e-3 <= abs(value) < 10 else ".4g"
    return format(value, _FORMATS.get(name, usual))


def frame_cells(frame: "pandas.DataFrame") -> dict[str, list[Any]]:
    """Return a frame as values for JSON: its columns, its rows, and the texts of their cells."""
    from studies.analysis.frames import frame_rows

    rows = frame_rows(frame)
    return {
        "columns": [*map(str, frame.columns)],
        "rows": [[*row.values()] for row in rows],
        "texts": [[cell_text(column, value, row) for column, value in row.items()] for row in rows],
    }


def frame_table(frame: "pandas.DataFrame") -> Table:
    """Return the rows of a card as a table; the ends of an interval share one column."""
    from studies.analysis.frames import frame_rows

    entries = frame_rows(frame)
    has_interval = set(_ENDS) <= set(frame.columns)
    columns = [name for name in frame.columns if not (has_interval and name == "high") and name != "planned"]
    table = plain_table()
    for name in columns:
        is_text = any(isinstance(entry[name], str) for entry in entries)
        head = "95%" if has_interval and name == "low" else name.replace("_", " ")
        table.add_column(escape(head), justify="left" if is_text else "right", no_wrap=not is_text, overflow="fold")
    for entry in entries:
        texts = {name: cell_text(name, value, entry) for name, value in entry.items()}
        if has_interval and entry["low"] is not None:
            texts["low"] = f"{texts['low']} to {texts['high']}"
        table.add_row(*(Text(texts[name]) for name in columns))
    return table


def rows_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """Return arbitrary rows, such as the result of a query, as a table."""
    texts = ((Text(_shortened(value_text(value))) for value in row) for row in rows)
    table = plain_table(*map(escape, columns), folds=True, rows=texts)
    for column, is_number in zip(table.columns, _are_numeric(columns, rows), strict=True):
        column.justify = "right" if is_number else "left"
    return table


def _shortened(text: str) -> str:
    """Return the beginning of a text: laying out millions of characters takes minutes."""
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}… ({len(text):,} characters)"


def rows_text(columns: Sequence[str], rows: Sequence[Sequence[object]], form: str) -> str:
    """Return rows as ``markdown``, ``csv`` or ``tsv``."""
    if form == "markdown":
        marks = ["---:" if right else "---" for right in _are_numeric(columns, rows)]
        cells = ([_on_one_line(value_text(value)) for value in row] for row in rows)
        lines = [[cell.replace("|", "\\|") for cell in row] for row in (columns, marks, *cells)]
        return "".join(f"| {' | '.join(line)} |\n" for line in lines)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", delimiter="," if form == "csv" else "\t")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def _are_numeric(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[bool]:
    """Return for each column whether all its values are numbers, and there are any."""
    given = [[row[place] for row in rows if row[place] is not None] for place in range(len(columns))]
    return [bool(values) and all(map(_is_number, values)) for values in given]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _on_one_line(text: str) -> str:
    """Return a text without line breaks and control characters."""
    return "".join(character if character.isprintable() else " " for character in text)
