"""V4: score against parameters."""

from collections.abc import Mapping, Sequence
from typing import Any

from dashboards.figures.figure import DISCOVERED, GREEN, PUBLISHED, Figure, axis, plain
from studies.queries.discover import Answer
from studies.queries.discover.answer import LEVEL
from studies.queries.discover.sizes import Size
from studies.queries.table import Table

_FILL = "rgba(0, 158, 115, 0.18)"


def sizes_figure(answer: Answer, band: Table, metric: str) -> Figure:
    """Complete trials by what they store, with the best of all that are no larger."""
    rows = [row for row in answer.rows if isinstance(row, Size)]
    traces = [
        *_band(band),
        _trials([row for row in rows if not row.method], "discovered", DISCOVERED, "circle"),
        _trials([row for row in rows if row.method], "published", PUBLISHED, "diamond"),
    ]
    smallest = next(
        (row for row in rows if row.within >= LEVEL), next((row for row in rows if row.within >= 0.5), None)
    )
    notes = [] if smallest is None else [_arrow(smallest)]
    return Figure(
        name="sizes",
        title=answer.question,
        says=f"{len(rows)} complete trials by stored parameters. {' '.join(answer.sentences)}",
        data=[trace for trace in traces if trace["x"]],
        layout={
            "xaxis": axis("stored parameters (logarithmic)", type="log", dtick=1),
            "yaxis": axis(f"estimate of {metric}, 90% interval"),
            "annotations": notes,
            "height": 440,
        },
    )


def _band(band: Table) -> list[Mapping[str, Any]]:
    sizes = [max(1, int(str(size))) for size in band.column("parameters")]
    low, best, high = (list(band.column(name)) for name in ("low", "best", "high"))
    step = {"shape": "hv", "width": 0}
    hidden = {"showlegend": False, "hoverinfo": "skip", "mode": "lines", "type": "scatter", "x": sizes, "line": step}
    line = {"shape": "hv", "color": GREEN, "width": 2}
    return [
        {**hidden, "y": low},
        {**hidden, "y": high, "fill": "tonexty", "fillcolor": _FILL},
        {
            "type": "scatter",
            "mode": "lines",
            "x": sizes,
            "y": best,
            "line": line,
            "name": "best of all no larger, 90% band",
            "hovertemplate": "at most %{x:,} parameters: %{y:.4f}<extra></extra>",
        },
    ]


def _trials(rows: Sequence[Size], name: str, colour: str, symbol: str) -> Mapping[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [max(1, row.parameters) for row in rows],
        "y": [row.value for row in rows],
        "error_y": {
            "type": "data",
            "array": [row.high - row.value for row in rows],
            "thickness": 0.7,
            "width": 0,
            "color": colour,
        },
        "marker": {"color": colour, "symbol": symbol, "size": 9, "line": {"width": 1, "color": "#ffffff"}},
        "customdata": [row.trial for row in rows],
        "text": [plain(row.sentence) for row in rows],
        "hovertemplate": "%{text}<br>%{y:.4f}<extra></extra>",
    }


def _arrow(row: Size) -> dict[str, Any]:
    import math

    return {
        "x": math.log10(max(1, row.parameters)),
        "y": row.value,
        "text": plain(f"trial {row.trial}: {row.parameters:,}"),
        "showarrow": True,
        "arrowhead": 2,
        "ax": -40,
        "ay": -50,
    }
