"""Rows with a value and a 90% interval, one below the other."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from dashboards.figures.figure import Figure, error_bars, plain, resolved_marker, rows_layout, zero_line
from studies.queries.discover import NAMES, Answer, Finding
from studies.queries.discover.rules import Rule

MOST_ROWS = 24

_COMMON = {field.name for field in fields(Finding)}


def intervals(answer: Answer, *, across: str, name: str | None = None, title: str | None = None) -> Figure:
    """The findings of an answer; those that are not resolved are grey.

    Args:
        answer: Of at least one row.
        across: What the values are, with their unit.
        name: Of the figure; that of the view without.
        title: The question without.
    """
    rows = answer.rows[:MOST_ROWS]
    labels = [label_of(row) for row in rows]
    left_out = f" The first {len(rows)} of {len(answer.rows)} rows" if len(rows) < len(answer.rows) else ""
    resolved = sum(row.is_resolved for row in rows)
    return Figure(
        name=name or NAMES.get(answer.view, answer.view),
        title=f"{title or answer.question}{left_out}",
        says=f"{len(rows)} values with 90% intervals, {resolved} of them resolved. The table holds the numbers.",
        data=[interval_trace(rows, labels)],
        layout=rows_layout(labels, across, shapes=[zero_line()]),
    )


def interval_trace(rows: Sequence[Finding], labels: Sequence[str]) -> Mapping[str, Any]:
    """Points with their intervals, the first row on top."""
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [row.value for row in rows],
        "y": [-place for place in range(len(rows))],
        "error_x": error_bars([row.value for row in rows], [(row.low, row.high) for row in rows]),
        "marker": resolved_marker([row.is_resolved for row in rows]),
        "text": [
            plain(f"{label}: {row.value:+.4f} ({row.low:+.4f} to {row.high:+.4f})")
            for label, row in zip(labels, rows, strict=True)
        ],
        "hovertemplate": "%{text}<extra></extra>",
    }


def label_of(row: Finding) -> str:
    """What a row is of: a rule in words, else its own texts, in their order."""
    if isinstance(row, Rule):
        place = {"attention": "attention ", "ffn": "FFN "}.get(row.side, "")
        return f"{place}{row.dimension}: {row.better} instead of {row.worse}"
    own = (getattr(row, field.name) for field in fields(row) if field.name not in _COMMON)
    return " · ".join(str(value) for value in own if isinstance(value, str) and value)
