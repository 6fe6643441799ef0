"""The look that all tables share."""

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
"""Columns of what goes to no terminal: nothing is folded, so that a row is a line."""
_GAP = 2


def escape(text: str) -> str:
    """A text from anywhere as rich markup that shows it; a terminal obeys nothing in it."""
    return markup.escape(visible(text))


def value_text(value: object) -> str:
    """A value of an answer: a dash for none, six digits of a number that is not whole."""
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else visible(str(value))


class Terminal(Console):
    """Where everything is printed: no text that reaches the terminal is obeyed by it."""

    def __init__(self, file: TextIO, **options: Any) -> None:
        """Print to a file."""
        super().__init__(file=file, highlight=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What is printed of something; of rich's own, a control passes."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


class Fitted:
    """What is made for a width when it is known: numbers never fold, so that a table has as many columns as fit."""

    def __init__(self, made: Callable[..., RenderableType], given: object) -> None:
        """Make nothing yet of what is given."""
        self._made, self._given = made, given

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Make it."""
        yield self._made(self._given, options.max_width)


def plain_table(
    *heads: str, right: Collection[str] = (), folds: bool = False, rows: Iterable[Iterable[str | Text]] = ()
) -> Table:
    """A table in the house's look.

    Args:
        heads: Names of its columns; more can be added.
        right: Those that stand right.
        folds: Whether words that are too long go on in the next line.
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
    """A table with a line per row: the last column has what the others leave of the width, and is cut there.

    Args:
        heads: Names of the columns; all but the last stand right.
        rows: Cells, as markup.
        width: Of the whole table.
        least: Widths that the first columns have at least.
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


def plain_text(renderable: RenderableType, *, width: int = _TEXT_WIDTH) -> str:
    """What a terminal would show, as text without colours."""
    file = io.StringIO()
    # In a notebook a console would display what it is told to print into the file.
    console = Terminal(file, width=width, color_system=None, force_jupyter=False)
    console.print(renderable)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())
