"""Figures of the leaderboard and of the curves of trials."""

from collections.abc import Mapping, Sequence
from typing import Any

from dashboards.colours import BLUE, GREY, ORANGE, VERMILION
from dashboards.figures.figure import Figure, axis, origin_marker, points, rows_layout, scatter, strokes
from studies.analysis.leaderboard import Leaderboard
from studies.records import TrialState

MOST_ROWS = 20
_STATES = {"complete": BLUE, "pruned": VERMILION, "running": ORANGE, "failed": GREY}

Entries = Sequence[Mapping[str, Any]]


def leaderboard_figure(board: Leaderboard) -> Figure:
    """Return the figure of complete trials, best first: estimate with its 95% interval, and score."""
    rows = [row for row in board.rows if row.state is TrialState.COMPLETE and row.score is not None][:MOST_ROWS]
    labels = [
        f"{row.place}. {row.method if not row.is_discovered else f'trial {row.number}'}: {row.sentence}" for row in rows
    ]
    ends = [
        None if row.estimate_low is None or row.estimate_high is None else (row.estimate_low, row.estimate_high)
        for row in rows
    ]
    numbers = [row.number for row in rows]
    estimates = points(
        [(row.score or 0.0) if row.estimate is None else row.estimate for row in rows],
        ends,
        [row.sentence for row in rows],
        name="estimate, 95% interval",
        marker=origin_marker([not row.is_discovered for row in rows]),
        customdata=numbers,
        hover="%{text}<br>estimate %{x:.4f}",
    )
    scores = strokes(
        [row.score for row in rows],
        range(len(rows)),
        [f"score {row.score:.4f}" for row in rows],
        name="score",
        customdata=numbers,
    )
    return Figure(
        name="leaderboard",
        title=f"The best {len(rows)} trials; published methods are orange diamonds",
        says=board.verdict or f"The best {len(rows)} trials by estimate.",
        data=[scores, estimates],
        layout=rows_layout(labels, f"{board.summary.metric} on validation", showlegend=True),
    )


def curves_figure(readings: Entries, metric: str) -> Figure:
    """Return the learning curves of trials, coloured by state.

    Args:
        readings: Readings, trial by trial, with the keys trial, state, fraction (of the steps) and score.
        metric: Metric of the scores.
    """
    states = dict.fromkeys((*_STATES, *(str(one["state"]) for one in readings)))
    by_state = {state: [one for one in readings if one["state"] == state] for state in states}
    return Figure(
        name="curves",
        title="Every trial by its readings",
        says=f"{len(readings)} readings.",
        data=[_curves(state, some) for state, some in by_state.items() if some],
        layout={
            "xaxis": axis("part of a whole trial's steps", tickformat=".0%", range=[0, 1.05]),
            "yaxis": axis(f"{metric} on validation"),
            "height": 420,
        },
    )


def _curves(state: str, readings: Entries) -> Mapping[str, Any]:
    """Return one trace with the curves of several trials, separated by gaps."""
    rows: list[Mapping[str, Any]] = []
    for one in readings:
        if rows and rows[-1]["trial"] != one["trial"]:
            rows.append({"trial": None, "fraction": None, "score": None})
        rows.append(one)
    colour = _STATES.get(state, GREY)
    return scatter(
        "lines+markers",
        [row["fraction"] for row in rows],
        [row["score"] for row in rows],
        "%{text}: %{y:.4f}",
        name=state,
        line={"width": 1, "color": colour},
        marker={"size": 4, "color": colour},
        opacity=0.6,
        text=[f"trial {row['trial']}" for row in rows],
    )
