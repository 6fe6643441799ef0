"""V5: curves by rung, cuts, and forecasts of what was stopped."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from dashboards.figures.figure import BLUE, GREY, ORANGE, PURPLE, VERMILION, Figure, axis, error_bars, plain
from studies.queries.discover import Answer
from studies.queries.discover.pruned import Stopped
from studies.queries.table import Table

_STATES = {"complete": BLUE, "pruned": VERMILION, "running": ORANGE, "failed": GREY}
_FORECASTS = 12


def pruning_figure(answer: Answer, curves: Table, metric: str) -> Figure:
    """Every curve by how its trial ended, the cut of every rung, and forecasts of the likeliest pruned trials."""
    rows = [row for row in answer.rows if isinstance(row, Stopped)]
    cuts = {row.fraction: row.cut for row in rows if row.cut is not None}
    marks = [_cut_marks(cuts)] if cuts else []
    forecasts = [_forecasts(rows[:_FORECASTS])] if rows else []
    return Figure(
        name="pruning",
        title=answer.question,
        says=" ".join(answer.sentences),
        data=[*curve_traces(curves), *marks, *forecasts],
        layout={
            "xaxis": axis("part of a whole trial's steps", tickformat=".0%", range=[0, 1.12]),
            "yaxis": axis(f"{metric} on validation"),
            "height": 460,
        },
    )


def curve_traces(curves: Table) -> list[Mapping[str, Any]]:
    """One trace for each way to end, the curves of its trials one after another."""
    by_state: dict[str, dict[object, list[dict[str, object]]]] = defaultdict(lambda: defaultdict(list))
    for row in curves.to_dicts():
        by_state[str(row["state"])][row["trial"]].append(row)
    return [_curves(state, by_state[state]) for state in dict.fromkeys((*_STATES, *by_state)) if state in by_state]


def _curves(state: str, trials: Mapping[object, Sequence[Mapping[str, object]]]) -> Mapping[str, Any]:
    gap: Mapping[str, object] = dict.fromkeys(("trial", "method", "fraction", "score", "standard_error"))
    rows = [row for readings in trials.values() for row in (*readings, gap)]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": state,
        "x": [row["fraction"] for row in rows],
        "y": [row["score"] for row in rows],
        "line": {"width": 1, "color": _STATES.get(state, GREY)},
        "marker": {"size": 4, "color": _STATES.get(state, GREY)},
        "opacity": 0.6,
        "error_y": {
            "type": "data",
            "array": [row["standard_error"] for row in rows],
            "thickness": 0.7,
            "width": 0,
            "visible": state == "pruned",
        },
        "text": [plain(f"trial {row['trial']} {row['method'] or ''}".strip()) for row in rows],
        "customdata": [[row["trial"], row["standard_error"]] for row in rows],
        "hovertemplate": "%{text}: %{y:.4f} ± %{customdata[1]:.4f} (standard error)<extra></extra>",
    }


def _cut_marks(cuts: Mapping[float, float | None]) -> Mapping[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "lowest that went on",
        "x": list(cuts),
        "y": list(cuts.values()),
        "marker": {"symbol": "line-ew-open", "size": 16, "color": PURPLE, "line": {"width": 3}},
        "hovertemplate": "lowest that went on: %{y:.4f}<extra></extra>",
    }


def _forecasts(rows: Sequence[Stopped]) -> Mapping[str, Any]:
    spread = [1.02 + 0.08 * place / max(1, len(rows) - 1) for place in range(len(rows))]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "forecast of pruned trials, 90% interval",
        "x": spread,
        "y": [row.value for row in rows],
        "error_y": error_bars([row.value for row in rows], [(row.low, row.high) for row in rows])
        | {"color": VERMILION, "thickness": 1, "width": 2},
        "marker": {"symbol": "diamond-open", "size": 8, "color": VERMILION},
        "customdata": [row.trial for row in rows],
        "text": [plain(row.sentence) for row in rows],
        "hovertemplate": "%{text}<br>%{y:.4f}<extra></extra>",
    }
