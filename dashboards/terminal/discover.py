"""What a study has taught, for the terminal: a section for every question, and the sentences that end it."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from dashboards.terminal.layout import plain_table
from studies.queries.discover.across import PooledRule
from studies.queries.discover.answer import Answer, Finding
from studies.queries.discover.attention_share import Share
from studies.queries.discover.cells import FORMS, Best
from studies.queries.discover.importance import Importance
from studies.queries.discover.rates import Rate
from studies.queries.discover.rules import Rule
from studies.queries.discover.words import contrast_phrase

_MOST = 12
_SIDES = {"attention": "attention", "ffn": "FFN", "both": "both", "sides": "sides"}
_SHORT = {
    "softmax_memory": "memory",
    "bottleneck": "bottl.",
    "lowrank": "lowrank",
    "const": "const",
    "diag": "diag",
    "none": "none",
}


def discovery_renderable(
    answers: Sequence[Answer], *, title: str, conclusion: Sequence[str] = (), tree: Sequence[str] = ()
) -> RenderableType:
    """A section for every answer, and what can be quoted.

    Args:
        answers: In the order in which they are shown.
        title: Above everything.
        conclusion: Sentences that end it.
        tree: Lines of the tree of rules, which stand below V8.
    """
    parts: list[RenderableType] = [Text.from_markup(title)]
    for answer in answers:
        parts += [Text(), Text(answer.question, "bold"), *_section(answer)]
        if answer.view == "V8" and tree:
            parts += [Text(line, "dim" if number == 0 else "") for number, line in enumerate(tree)]
    if conclusion:
        parts += [Text(), *(Text(sentence, "bold") for sentence in conclusion)]
    return Group(*parts)


def _section(answer: Answer) -> Iterator[RenderableType]:
    make = _TABLES.get(answer.kind)
    tables = list(make(answer.rows)) if make is not None else []
    yield from tables
    said = answer.sentences if make is not None else (*answer.sentences, *_others(answer))
    yield from (Text(escape_free(sentence)) for sentence in said[:_MOST])
    if len(said) > _MOST:
        yield Text(f"… and {len(said) - _MOST} more; --json has them all.", "dim")
    yield Text(answer.note, "dim")


def _others(answer: Answer) -> Iterator[str]:
    """Rows of answers that have no table of their own."""
    return (f"  {row.sentence}" for row in answer.rows[:_MOST])


def escape_free(text: str) -> str:
    """Text without what a terminal would obey."""
    return "".join(character if character.isprintable() else " " for character in text)


def _mark(row: Finding) -> str:
    return "" if row.is_resolved else "not resolved"


def _importance(rows: Sequence[Finding]) -> Iterator[RenderableType]:
    table = plain_table()
    some = [row for row in rows if isinstance(row, Importance)]
    has_other = any(row.pedanova is not None for row in some)
    table.add_column("at", no_wrap=True)
    table.add_column("dimension", no_wrap=True)
    for name in ("total", "90%", "first-order", *(["PED-ANOVA"] if has_other else []), "trials"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for row in some:
        other = ["-" if row.pedanova is None else f"{row.pedanova:.0%}"] if has_other else []
        first = "-" if row.first is None else f"{row.first:.0%}"
        interval = f"{row.low:.0%}–{row.high:.0%}"
        mark = "" if row.is_resolved or row.first is None else "not resolved"
        table.add_row(_SIDES[row.side], row.dimension, f"{row.value:.0%}", interval, first, *other, str(row.n), mark)
    yield table


def _cells(rows: Sequence[Finding]) -> Iterator[RenderableType]:
    some = [row for row in rows if isinstance(row, Best)]
    for name in dict.fromkeys(row.table for row in some):
        yield _grid([row for row in some if row.table == name], name)
    yield Text("expected score, and how many trials; (0): never tried; *: not resolved as worse than the best", "dim")


def _grid(rows: Sequence[Best], name: str) -> Table:
    table = plain_table()
    table.padding = (0, 1, 0, 0)
    table.add_column("att. \\ FFN" if name == FORMS else f"at {_SIDES[name]}", no_wrap=True)
    columns = list(dict.fromkeys(row.column for row in rows))
    known = {(row.row, row.column): row for row in rows}
    for column in columns:
        table.add_column(_SHORT.get(column, column), justify="right", no_wrap=True)
    for first in dict.fromkeys(row.row for row in rows):
        cells = (known.get((first, column)) for column in columns)
        table.add_row(_SHORT.get(first, first), *("" if cell is None else _cell(cell) for cell in cells))
    return table


def _cell(row: Best) -> str:
    may_lead = row.gap == 0 or not row.is_resolved
    return f"{row.value:.3f}{'*' if may_lead else ' '}({row.n})"


def _shares(rows: Sequence[Finding]) -> Iterator[RenderableType]:
    table = plain_table()
    some = [row for row in rows if isinstance(row, Share)]
    table.add_column("attention + FFN", no_wrap=True)
    for name in ("budget", "best share", "score", "90%", "not worse"):
        table.add_column(name, justify="right", no_wrap=True)
    curves: dict[tuple[str, str, float], list[Share]] = {}
    for row in some:
        curves.setdefault((row.attention, row.ffn, row.budget), []).append(row)
    for (attention, ffn, budget), curve in curves.items():
        best = next(row for row in curve if row.is_best)
        fine = [row.share for row in curve if not row.is_resolved]
        table.add_row(
            f"{_SHORT.get(attention, attention)} + {_SHORT.get(ffn, ffn)}",
            f"{budget:.0%}",
            f"{best.share:.0%}",
            f"{best.value:.4f}",
            f"{best.low:.4f}–{best.high:.4f}",
            f"{min(fine):.0%}–{max(fine):.0%}",
        )
    yield table


def _rates(rows: Sequence[Finding]) -> Iterator[RenderableType]:
    table = plain_table()
    table.add_column("at", no_wrap=True)
    table.add_column("form", no_wrap=True)
    for name in ("best rate", "place", "score", "not worse", "trials"):
        table.add_column(name, justify="right", no_wrap=True)
    curves: dict[tuple[str, str], list[Rate]] = {}
    for row in rows:
        if isinstance(row, Rate):
            curves.setdefault((row.side, row.form), []).append(row)
    for (side, form), curve in curves.items():
        best = next(row for row in curve if row.is_best)
        fine = [row.rate for row in curve if not row.is_resolved]
        table.add_row(
            _SIDES[side],
            _SHORT.get(form, form),
            f"{best.rate:.1e}",
            f"{best.place:.0%}",
            f"{best.value:.4f} ± {best.high - best.value:.4f}",
            f"{min(fine):.0e}–{max(fine):.0e}",
            str(best.n),
        )
    yield table
    yield Text("place: where the best rate lies in its form's range, from its low end to its high one", "dim")


def _rules(rows: Sequence[Finding]) -> Iterator[RenderableType]:
    """The rules that are resolved, then those of the papers' dimensions."""
    some = [row for row in rows if isinstance(row, Rule)]
    shown = [row for row in some if row.is_resolved]
    shown += [row for row in some if not row.is_resolved and row.dimension in ("edited", "insertion", "heads", "gate")]
    table = plain_table()
    table.add_column("at", no_wrap=True)
    table.add_column("what instead of what", ratio=1)
    for name in ("effect", "90%", "trials"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in shown[: 2 * _MOST]:
        style = "bold" if row.is_resolved else None
        table.add_row(
            _SIDES[row.side],
            contrast_phrase(row.dimension, row.better, row.worse),
            f"{row.value:+.4f}",
            f"{row.low:+.4f} to {row.high:+.4f}",
            str(row.n),
            style=style,
        )
    yield table


def _pooled(rows: Sequence[Finding]) -> Iterator[RenderableType]:
    table = plain_table()
    table.add_column("the papers say", ratio=1)
    table.add_column("at", no_wrap=True)
    for name in ("effect", "90%", "between"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for row in rows:
        if isinstance(row, PooledRule):
            verdict = ("holds" if row.agrees else "does not") if row.is_resolved else "not resolved"
            table.add_row(
                escape(f"{row.claim} ({row.source})"),
                _SIDES[row.side],
                f"{row.value:+.4f}",
                f"{row.low:+.4f} to {row.high:+.4f}",
                f"{row.between:.4f}",
                verdict,
                style="bold" if row.is_resolved else None,
            )
            for told in (f"here: {'; '.join(row.effects)}", f"published: {'; '.join(row.published)}"):
                table.add_row(Text(told, "dim"))
    yield table


_TABLES: Mapping[type[Finding], Callable[[Sequence[Finding]], Iterator[RenderableType]]] = {
    Importance: _importance,
    Best: _cells,
    Share: _shares,
    Rate: _rates,
    Rule: _rules,
    PooledRule: _pooled,
}
