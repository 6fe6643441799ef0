"""Results go to stdout: tables for people, JSON for programs."""

import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

from studies.analysis.visible import visible, visible_json

if TYPE_CHECKING:
    import pandas
    from rich.console import RenderableType

T = TypeVar("T")


def answer(
    value: T,
    shown: "Callable[[T], RenderableType]",
    *,
    as_json: bool,
    entries: Callable[[T], object] = lambda value: value,
) -> None:
    """Print what a command answers: a table for people, or its entries as JSON."""
    if as_json:
        echo_json(entries(value))
    else:
        show(shown(value))


def show(renderable: "RenderableType") -> None:
    """Print a table: as wide as the terminal; elsewhere plain, a line per row."""
    from dashboards.terminal.layout import UNBOUNDED, Terminal, plain_text

    if sys.stdout.isatty():
        Terminal(sys.stdout).print(renderable)
    else:
        sys.stdout.write(f"{plain_text(renderable, width=UNBOUNDED)}\n")


def json_text(value: object) -> str:
    """A value as JSON, indented."""
    from dashboards.jsonable import jsonable

    return json.dumps(jsonable(value), indent=2, ensure_ascii=False, allow_nan=False)


def echo_json(value: object) -> None:
    """Print a value as JSON; a terminal obeys nothing in it."""
    click.echo(visible_json(json_text(value)))


def write_rows(text: str) -> None:
    """Print rows for programs; tabs part those of TSV, and whatever else a terminal would obey is written out."""
    sys.stdout.write(visible(text) if sys.stdout.isatty() else text)


def show_table(table: "pandas.DataFrame", columns: str | None, form: str | None) -> None:
    """Print some columns of a table in a format; all of them, and as plain columns, unless it is said.

    Raises:
        UsageError: If there is no such column.
    """
    from dashboards.terminal.frames import rows_text
    from studies.analysis.frames import entries_of

    chosen = table if columns is None else _chosen(table, columns)
    entries = entries_of(chosen)
    if form == "json":
        echo_json(entries)
    else:
        rows = [[*entry.values()] for entry in entries]
        write_rows(rows_text([*map(str, chosen.columns)], rows, form or "table"))


def _chosen(table: "pandas.DataFrame", columns: str) -> "pandas.DataFrame":
    from search_space.nearest import nearest

    names = [name.strip() for name in columns.split(",") if name.strip()]
    for name in names:
        if name not in table.columns:
            hint = nearest(name, [*table.columns])
            raise click.UsageError(f"no column {name!r}; there are: {', '.join(table.columns)}.{hint}")
    if not names:
        raise click.UsageError(f"--columns must name some; there are: {', '.join(table.columns)}.")
    return table[names]
