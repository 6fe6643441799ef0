"""Results go to stdout: tables for people, JSON for programs."""

import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

from studies.analysis.visible import visible, visible_json

if TYPE_CHECKING:
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
