"""V1: which dimension matters."""

from collections.abc import Mapping, Sequence
from typing import Any

from dashboards.figures.figure import GREEN, ORANGE, RESOLVED, UNRESOLVED, Figure, error_bars, plain, rows_layout
from studies.queries.table import Table

_MOST_ROWS = 20


def importance_figure(table: Table) -> Figure:
    """Total shares of variance with their intervals; first-order shares and PED-ANOVA beside them."""
    rows = table.to_dicts()[:_MOST_ROWS]
    labels, values = [_label(row) for row in rows], _numbers(rows, "value")
    totals = {
        "type": "scatter",
        "mode": "markers",
        "name": "total, 90% interval",
        "x": values,
        "y": [-place for place in range(len(rows))],
        "error_x": error_bars(values, list(zip(*(_numbers(rows, name) for name in ("low", "high")), strict=True))),
        "marker": {"size": 10, "color": [RESOLVED if row["is_resolved"] else UNRESOLVED for row in rows]},
        "text": [plain(row["sentence"]) for row in rows],
        "hovertemplate": "%{text}<extra></extra>",
    }
    traces = [
        totals,
        _marks(rows, "first", "first-order", GREEN, "diamond-open"),
        _marks(rows, "pedanova", "PED-ANOVA (of what was tried)", ORANGE, "x-thin-open"),
    ]
    layout = rows_layout(labels, "share of the variance of scores", showlegend=True)
    layout["xaxis"].update(tickformat=".0%", rangemode="tozero")
    return Figure(
        name="matters",
        title=table.title,
        says=f"Total and first-order shares of variance of {len(rows)} dimensions, the most important first.",
        data=[trace for trace in traces if trace["x"]],
        layout=layout,
    )


def _label(row: Mapping[str, object]) -> str:
    side = {"attention": "attention", "ffn": "FFN", "both": ""}.get(str(row["side"]), str(row["side"]))
    return f"{side} {row['dimension']}".strip()


def _numbers(rows: Sequence[Mapping[str, object]], column: str) -> list[float]:
    return [float(str(row[column])) for row in rows]


def _marks(rows: Sequence[Mapping[str, object]], column: str, name: str, colour: str, symbol: str) -> Mapping[str, Any]:
    """One mark a row, where there is a value."""
    there = [(place, row[column]) for place, row in enumerate(rows) if row[column] is not None]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [value for _, value in there],
        "y": [-place for place, _ in there],
        "marker": {"symbol": symbol, "size": 9, "color": colour, "line": {"width": 2}},
        "hovertemplate": f"{name}: %{{x:.1%}}<extra></extra>",
    }
