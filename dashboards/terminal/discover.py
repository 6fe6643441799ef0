"""Results of `discover` for the terminal: sentences, then a short table per card."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from dashboards.terminal.frames import frame_table
from studies.analysis.card import Card

_MOST_ROWS = 6


def discovery_renderable(
    cards: Sequence[Card], *, title: str, summary: Sequence[str] = (), is_whole: bool = False
) -> RenderableType:
    """Return cards as a renderable: the sentences, then the tables.

    Args:
        cards: Cards in display order.
        title: Heading, as rich markup.
        summary: Sentences to quote; without them every card has its own.
        is_whole: Whether to show all rows, all sentences and all notes.
    """
    parts: list[RenderableType] = [Text.from_markup(title), *map(Text, summary)]
    for card in cards:
        parts += _section(card, is_whole=is_whole, has_sentences=is_whole or not summary)
    if not is_whole:
        parts += [Text(), Text("--all shows every row, and how to read them.", "dim")]
    return Group(*parts)


def _section(card: Card, *, is_whole: bool, has_sentences: bool) -> Iterator[RenderableType]:
    rows = card.data if is_whole else card.data.head(min(card.shown, _MOST_ROWS))
    if rows.empty and not has_sentences:
        return
    cut = "" if len(rows) == len(card.data) else f" ({len(rows)} of {len(card.data)} rows)"
    yield from (Text(), Text.assemble((card.question, "bold"), (cut, "dim")))
    if has_sentences:
        yield from map(Text, card.sentences)
    if not rows.empty:
        yield frame_table(rows.drop(columns=[] if is_whole else [one for one in _DETAILS if one in rows.columns]))
    if is_whole and card.note:
        yield Text(card.note, "dim")


_DETAILS = ("matters", "reached", "as_good")
