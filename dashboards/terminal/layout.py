"""The look that all tables share."""

from rich.table import Table


def plain_table() -> Table:
    """An empty table in the house's look."""
    return Table(header_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
