"""The look that all tables share."""

import io

from rich.console import Console, RenderableType
from rich.table import Table

_TEXT_WIDTH = 120


def plain_table() -> Table:
    """An empty table in the house's look."""
    return Table(header_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))


def plain_text(renderable: RenderableType) -> str:
    """What a terminal would show, as text without colours."""
    file = io.StringIO()
    # In a notebook a console would display what it is told to print into the file.
    console = Console(file=file, width=_TEXT_WIDTH, highlight=False, color_system=None, force_jupyter=False)
    console.print(renderable)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())
