"""Results go to stdout: tables for people, JSON for programs."""

import json
import sys

import click
from rich.console import RenderableType

from dashboards.jsonable import jsonable
from dashboards.terminal.layout import Terminal
from studies.queries.visible import visible_json

_PIPE_WIDTH = 180


def show(renderable: RenderableType) -> None:
    """Print a table; as wide as the terminal, or wide enough for every column when it goes elsewhere."""
    is_terminal = sys.stdout.isatty()
    Terminal(sys.stdout, width=None if is_terminal else _PIPE_WIDTH).print(renderable)


def echo_json(value: object) -> None:
    """Print a value as JSON, indented; a terminal obeys nothing in it."""
    click.echo(visible_json(json.dumps(jsonable(value), indent=2, ensure_ascii=False, allow_nan=False)))
