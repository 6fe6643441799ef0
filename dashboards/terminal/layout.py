"""Common layout of all tables, and a console that escapes control characters."""

import io
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, TextIO

from rich import markup
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from studies.analysis.visible import visible

_TEXT_WIDTH = 120
UNBOUNDED = 10_000
"""Width of output that goes to no terminal: nothing wraps, so each row is one line."""
_GAP = 2


def escape(text: str) -> str:
    """Return rich markup that displays an untrusted text, with its control characters escaped."""
    return markup.escape(visible(text))


def value_text(value: object) -> str:
    """Return a value of a query's result as text: a dash for None, six digits of a float."""
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else visible(str(value))


class Terminal(Console):
    """Console of all output, which escapes the control characters of texts."""

    def __init__(self, file: TextIO, **options: Any) -> None:
        """Print to a file."""
        super().__init__(file=file, highlight=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of a renderable with control characters escaped; rich's own control segments pass."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


class Fitted:
    """Renderable that is built for the width when it is drawn, so that a table has as many columns as fit."""

    def __init__(self, made: Callable[..., RenderableType], given: object) -> None:
        """Store the function and its argument; it is called with the width when drawn."""
        self._made, self._given = made, given

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the renderable for the width of the console."""
        yield self._made(self._given, options.max_width)


def plain_table(
    *heads: str, right: Collection[str] = (), folds: bool = False, rows: Iterable[Iterable[str | Text]] = ()
) -> Table:
    """Return a table in the common layout.

    Args:
        heads: Names of the columns; more can be added.
        right: Names of right-aligned columns.
        folds: Whether long texts wrap.
        rows: Cells, as markup.
    """
    table = Table(header_style="bold", box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    for head in heads:
        table.add_column(head, justify="right" if head in right else "left", overflow="fold" if folds else "ellipsis")
    for row in rows:
        table.add_row(*row)
    return table


def one_line_table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], *, width: int, least: Sequence[int] = ()
) -> Table:
    """Return a table with one line per row; the last column takes the remaining width and is cut there.

    Args:
        heads: Names of the columns; all but the last are right-aligned.
        rows: Cells, as markup.
        width: Width of the whole table.
        least: Minimum widths of the first columns.
    """
    *first, last = heads
    table = plain_table(*heads, right=first, rows=rows)
    left = width
    for place, column in enumerate(table.columns):
        column.no_wrap = True
        if place < len(first):
            cells = (heads[place], *(row[place] for row in rows))
            column.width = max(*(Text.from_markup(cell).cell_len for cell in cells), *least[place : place + 1])
            left -= column.width + _GAP
        else:
            column.width = max(len(last), left)
    return table


def terminal_text(renderable: RenderableType, *, width: int = _TEXT_WIDTH) -> str:
    """Return the terminal output of a renderable, as text without colours."""
    file = io.StringIO()
    # In a notebook a console would also display what it prints into the file.
    console = Terminal(file, width=width, color_system=None, force_jupyter=False)
    console.print(renderable)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())
