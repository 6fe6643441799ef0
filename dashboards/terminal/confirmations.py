"""Confirmations and ablations for the terminal: tables, conclusions and notes."""

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from dashboards.confirmations import ConfirmationCard
from dashboards.terminal.frames import frame_table
from dashboards.terminal.layout import Fitted

if TYPE_CHECKING:
    import pandas

_WIDE = (
    "trial",
    "optimism",
    "stored_parameters",
    "budget_fraction",
    "attention_learning_rate",
    "ffn_learning_rate",
)
_MIDDLE = ("description", "test_lowest", "p_value")
_OF_STEPS = ("label", "test_deviation", "test_lowest", "p_value")
_MIDDLE_WIDTH, _FULL_WIDTH = 100, 160


def confirmation_renderable(card: ConfirmationCard) -> RenderableType:
    """Return a confirmation as a renderable: all contenders or steps, the conclusions, and the notes."""
    own = card.result
    said = f": {card.subject}, {len(own.seeds)} seeds each, {own.metric} on the test split"
    parts: list[RenderableType] = [Text.assemble((own.name, "bold"), said)]
    for place, (name, table) in enumerate(card.tables.items()):
        parts += [Text(), *([Text(name, "bold")] if place else []), Fitted(_fitted, table)]
    for lines, style in ((card.sentences, "bold"), (card.notes, "dim")):
        if lines:
            parts += [Text(), *(Text(line, style) for line in lines)]
    return Group(*parts)


def _fitted(table: "pandas.DataFrame", width: int) -> Table:
    """Return the columns of a frame that fit the width, as a table whose sentences wrap."""
    left_out = [*(_WIDE if width < _FULL_WIDTH else ()), *(_MIDDLE if width < _MIDDLE_WIDTH else ())]
    if "change" in table and width < _FULL_WIDTH:
        left_out += _OF_STEPS
    return frame_table(table[[name for name in table.columns if name not in left_out]])
