"""A confirmation or an ablation for the terminal: its tables, what follows, and what must be known."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from dashboards.terminal.frames import frame_table
from studies.confirmation.ablation_path import AblationResult, path_notes, path_sentences
from studies.confirmation.results import ConfirmationResult, notes, verdict_sentences

if TYPE_CHECKING:
    import pandas

_WIDE = ("trial", "optimism", "stored_parameters", "attention_learning_rate", "ffn_learning_rate")
_MIDDLE = ("description", "budget_fraction", "test_median", "p_value")
_OF_STEPS = ("label", "test_deviation", "test_median", "p_value")
_MIDDLE_WIDTH, _FULL_WIDTH = 100, 160


def confirmation_renderable(result: ConfirmationResult) -> RenderableType:
    """Every contender, the winner beside every baseline, what follows, and what must be known."""
    said = f"{len(result.contenders)} configurations of {result.study}"
    return _rendered(result, said, result.tables(), verdict_sentences(result), notes(result))


def ablation_renderable(result: AblationResult) -> RenderableType:
    """Every step with what it changes and what that is worth, what follows, and what must be known."""
    own, ends = result.confirmation, [result.steps[place].contender.label for place in (0, -1)]
    said = f"from {ends[0]} to {ends[1]} of {own.study}"
    return _rendered(own, said, result.tables(), path_sentences(result), path_notes(result))


def _rendered(
    own: ConfirmationResult,
    said: str,
    tables: "dict[str, pandas.DataFrame]",
    sentences: Sequence[str],
    remarks: Sequence[str],
) -> RenderableType:
    head = Text.assemble((own.name, "bold"), f": {said}, {len(own.seeds)} seeds each, {own.metric} on the test split")
    parts: list[RenderableType] = [head]
    for place, (name, table) in enumerate(tables.items()):
        parts += [Text(), *([Text(name, "bold")] if place else []), _Fitted(table)]
    for lines, style in ((sentences, "bold"), (remarks, "dim")):
        if lines:
            parts += [Text(), *(Text(line, style) for line in lines)]
    return Group(*parts)


class _Fitted:
    """A frame in as many columns as fit; sentences fold, numbers never do."""

    def __init__(self, table: "pandas.DataFrame") -> None:
        self._table = table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, table = options.max_width, self._table
        left_out = [*(_WIDE if width < _FULL_WIDTH else ()), *(_MIDDLE if width < _MIDDLE_WIDTH else ())]
        if "change" in table and width < _FULL_WIDTH:
            left_out += _OF_STEPS
        yield frame_table(table[[name for name in table.columns if name not in left_out]])
