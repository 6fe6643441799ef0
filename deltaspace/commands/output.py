"""Results go to stdout: tables for people, JSON for programs."""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from pathlib import PurePath

import click
from rich.console import Console, RenderableType

_PIPE_WIDTH = 180


def show(renderable: RenderableType) -> None:
    """Print a table; as wide as the terminal, or wide enough for every column when it goes elsewhere."""
    is_terminal = sys.stdout.isatty()
    console = Console(file=sys.stdout, width=None if is_terminal else _PIPE_WIDTH, highlight=False)
    console.print(renderable)


def echo_json(value: object) -> None:
    """Print a value as JSON, indented."""
    click.echo(json.dumps(jsonable(value), indent=2, ensure_ascii=False, allow_nan=False))


def jsonable(value: object) -> object:
    """A frozen value as what JSON knows: fields by name, enumerations by value, times as ISO 8601, paths as text.

    Numbers that JSON does not have (NaN, infinity) become null.
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: jsonable(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(jsonable(key)): jsonable(entry) for key, entry in value.items()}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return [jsonable(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
