"""The look that all tables share."""

import io
from collections.abc import Iterable
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table

from studies.queries.visible import visible

_TEXT_WIDTH = 120


class Terminal(Console):
    """Where everything is printed: no text that reaches the terminal is obeyed by it."""

    def __init__(self, file: TextIO, **options: Any) -> None:
        """Print to a file."""
        super().__init__(file=file, highlight=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What is printed of something; of rich's own, a control passes."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


def plain_table() -> Table:
    """An empty table in the house's look."""
    return Table(header_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))


def plain_text(renderable: RenderableType) -> str:
    """What a terminal would show, as text without colours."""
    file = io.StringIO()
    # In a notebook a console would display what it is told to print into the file.
    console = Terminal(file, width=_TEXT_WIDTH, color_system=None, force_jupyter=False)
    console.print(renderable)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())
