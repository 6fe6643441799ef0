"""Output of commands to stdout: tables for people, JSON for programs."""

import codecs
import io
import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

from studies.analysis.visible import visible, visible_json

if TYPE_CHECKING:
    from rich.console import RenderableType

T = TypeVar("T")

_SYMBOLS = {
    **dict(zip("─│├└×–→±²³·█▇▆▅▄▃▂▁", "-|++x->~23.########", strict=True)),
    **{"…": "...", "→": "->", "±": "+-", "≥": ">=", "≤": "<=", "⊙": "(.)", "⊗": "(x)", "√": "sqrt", "ᵀ": "^T"},
    **{"λ": "lambda", "θ": "theta", "σ": "sigma", "μ": "mu", "Σ": "Sigma", "Δ": "Delta"},
}
"""ASCII replacements of symbols in answers."""
_FALLBACK = "deltaspace.fallback"


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    """Return the replacement of characters that a stream cannot encode: ASCII for symbols, else their escapes."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_SYMBOLS.get(one) or one.encode("unicode_escape").decode() for one in lacking), error.end


codecs.register_error(_FALLBACK, _in_ascii)


def never_fail_to_encode() -> None:
    """Make stdout and stderr accept any text in any encoding."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_FALLBACK)


def answer(
    value: T,
    shown: "Callable[[T], RenderableType]",
    *,
    as_json: bool,
    entries: Callable[[T], object] = lambda value: value,
) -> None:
    """Print an answer: a table for people, or its entries as JSON."""
    if as_json:
        echo_json(entries(value))
    else:
        show(shown(value))


def show(renderable: "RenderableType") -> None:
    """Print a table: as wide as the terminal; elsewhere plain, one line per row."""
    from dashboards.terminal.layout import UNBOUNDED, Terminal, terminal_text

    if sys.stdout.isatty():
        Terminal(sys.stdout).print(renderable)
    else:
        sys.stdout.write(f"{terminal_text(renderable, width=UNBOUNDED)}\n")


def json_text(value: object, *, is_ascii: bool = False) -> str:
    """Return a value as indented JSON."""
    from dashboards.jsonable import jsonable

    return json.dumps(jsonable(value), indent=2, ensure_ascii=is_ascii, allow_nan=False)


def echo_json(value: object) -> None:
    """Print a value as JSON without control characters, in ASCII if stdout does not accept UTF-8."""
    is_ascii = "utf" not in (getattr(sys.stdout, "encoding", None) or "utf-8").lower()
    click.echo(visible_json(json_text(value, is_ascii=is_ascii)), file=sys.stdout)


def write_rows(text: str) -> None:
    """Print rows for programs; tabs separate those of TSV, other control characters are escaped."""
    sys.stdout.write(visible(text) if sys.stdout.isatty() else text)
