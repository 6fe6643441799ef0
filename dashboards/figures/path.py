"""V2: what differs between the winner and a method."""

from collections.abc import Sequence

from dashboards.figures.figure import BLUE, GREY, VERMILION, Figure, plain, rows_layout, zero_line
from dashboards.figures.intervals import interval_trace
from studies.queries.discover import Answer
from studies.queries.discover.differences import Worth


def differences_figures(answer: Answer, metric: str) -> tuple[Figure, ...]:
    """The greedy path as a waterfall, and the Shapley values with their intervals; none without a difference."""
    rows = [row for row in answer.rows if isinstance(row, Worth)]
    return (_waterfall(rows, metric), _values(rows, metric)) if rows else ()


def _waterfall(rows: Sequence[Worth], metric: str) -> Figure:
    before = [row.reached - row.gain for row in rows]
    labels = ["the published method", *(f"{row.step}. {row.change}" for row in rows)]
    line = {"color": GREY, "width": 1, "dash": "dot"}
    links = [
        {"type": "line", "x0": reached, "x1": reached, "y0": -place, "y1": -place - 1, "line": line}
        for place, reached in enumerate([before[0], *(row.reached for row in rows[:-1])])
    ]
    bars = {
        "type": "bar",
        "orientation": "h",
        "base": before,
        "x": [row.gain for row in rows],
        "y": [-row.step for row in rows],
        "width": 0.3,
        "marker": {"color": [BLUE if row.gain >= 0 else VERMILION for row in rows]},
        "text": [f"{row.gain:+.4f}" for row in rows],
        "textposition": "outside",
        "cliponaxis": False,
        "customdata": [[plain(row.change), f"{row.gain_low:+.4f}", f"{row.gain_high:+.4f}"] for row in rows],
        "hovertemplate": "%{customdata[0]}<br>%{text} (90%: %{customdata[1]} to %{customdata[2]})<extra></extra>",
    }
    ends = {
        "type": "scatter",
        "mode": "markers",
        "x": [before[0], rows[-1].reached],
        "y": [0, -rows[-1].step],
        "marker": {"color": GREY, "size": 10, "symbol": "diamond"},
        "hovertemplate": "%{x:.4f}<extra></extra>",
    }
    reached = [*before, *(row.reached for row in rows)]
    room = 0.18 * (max(reached) - min(reached) or 0.01)
    layout = rows_layout(labels, f"expected {metric}", shapes=links)
    layout["xaxis"]["range"] = [min(reached) - room, max(reached) + room]
    return Figure(
        name="winner-path",
        title="From the published method to the trial, one difference after another",
        says=f"A waterfall of {len(rows)} steps from {before[0]:.4f} to {rows[-1].reached:.4f} expected {metric}.",
        data=[bars, ends],
        layout=layout,
    )


def _values(rows: Sequence[Worth], metric: str) -> Figure:
    ordered = sorted(rows, key=lambda row: -row.value)
    labels = [row.change for row in ordered]
    return Figure(
        name="winner-values",
        title="What each difference is worth: Shapley values with 90% intervals",
        says=f"{len(rows)} values, {sum(row.is_resolved for row in rows)} of them resolved.",
        data=[interval_trace(ordered, labels)],
        layout=rows_layout(labels, f"{metric}, over all legal orders", shapes=[zero_line()]),
    )
