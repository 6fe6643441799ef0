"""The leaderboard, and the curves of trials."""

from dashboards.figures.figure import UNRESOLVED, Figure, axis, error_bars, origin_marker, plain, rows_layout
from dashboards.figures.pruning import curve_traces
from studies.queries.leaderboard import Leaderboard
from studies.queries.table import Table
from studies.records import TrialState

MOST_ROWS = 20


def leaderboard_figure(board: Leaderboard) -> Figure:
    """The complete trials, best first: estimate with its 95% interval, and the score."""
    rows = [row for row in board.rows if row.state is TrialState.COMPLETE and row.score is not None][:MOST_ROWS]
    labels = [
        f"{row.place}. {row.method if not row.is_discovered else f'trial {row.number}'}: {row.sentence}" for row in rows
    ]
    down = [-place for place in range(len(rows))]
    expected = [(row.score or 0.0) if row.estimate is None else row.estimate for row in rows]
    ends = [
        None if row.estimate_low is None or row.estimate_high is None else (row.estimate_low, row.estimate_high)
        for row in rows
    ]
    estimates = {
        "type": "scatter",
        "mode": "markers",
        "name": "estimate, 95% interval",
        "x": expected,
        "y": down,
        "error_x": error_bars(expected, ends),
        "marker": origin_marker([not row.is_discovered for row in rows]),
        "customdata": [row.number for row in rows],
        "text": [plain(row.sentence) for row in rows],
        "hovertemplate": "%{text}<br>estimate %{x:.4f}<extra></extra>",
    }
    scores = {
        "type": "scatter",
        "mode": "markers",
        "name": "score",
        "x": [row.score for row in rows],
        "y": down,
        "marker": {"symbol": "line-ns-open", "size": 12, "color": UNRESOLVED, "line": {"width": 2}},
        "customdata": [row.number for row in rows],
        "hovertemplate": "score %{x:.4f}<extra></extra>",
    }
    return Figure(
        name="leaderboard",
        title=f"The best {len(rows)} trials; published methods are orange diamonds",
        says=board.verdict or f"The best {len(rows)} trials by estimate.",
        data=[scores, estimates],
        layout=rows_layout(labels, f"{board.summary.metric} on validation", showlegend=True),
    )


def curves_figure(curves: Table, metric: str) -> Figure:
    """What was read of every trial, by how it ended."""
    return Figure(
        name="curves",
        title="Every trial by its readings",
        says=f"{len(curves)} readings.",
        data=curve_traces(curves),
        layout={
            "xaxis": axis("part of a whole trial's steps", tickformat=".0%", range=[0, 1.05]),
            "yaxis": axis(f"{metric} on validation"),
            "height": 420,
        },
    )
