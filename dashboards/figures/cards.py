"""Figures of the cards of `discover`: one function per analysis."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dashboards.colours import BLUE, DISCOVERED, GREY, PUBLISHED, UNRESOLVED, VERMILION, colour_of
from dashboards.figures.figure import Figure, axis, plain, points, resolved_marker, rows_layout, scatter, zero_line
from studies.analysis.card import PLACES, Card
from studies.analysis.frames import frame_rows
from studies.analysis.methods import DISCOVERED as BY_SEARCH

_MOST_ROWS = 20
_ALIKE = 1.05
"""Ratio of the quartiles of sizes up to which trials count as equally large, as if all use one budget."""

Entries = Sequence[Mapping[str, Any]]


def figures_of(card: Card) -> tuple[Figure, ...]:
    """Return the figures of a card; none if it has no data."""
    return () if card.data.empty or card.name not in _FIGURES else tuple(_FIGURES[card.name](card))


def _intervals(rows: Entries, labels: Sequence[str], value: str, are_clear: Sequence[bool]) -> Mapping[str, Any]:
    """Return points with their intervals, the first row on top."""
    ends = [(row["low"], row["high"]) for row in rows]
    texts = [
        f"{label}: {row[value]:.4g} ({low:.4g} to {high:.4g})"
        for label, row, (low, high) in zip(labels, rows, ends, strict=True)
    ]
    return points([row[value] for row in rows], ends, texts, marker=resolved_marker(are_clear))


def _matters(card: Card) -> Iterator[Figure]:
    rows = frame_rows(card.data)[:_MOST_ROWS]
    labels = [str(row["choice"]) for row in rows]
    layout = rows_layout(labels, "share of the variance of scores, 95% interval")
    layout["xaxis"].update(tickformat=".0%", rangemode="tozero")
    yield Figure(
        name=card.name,
        title=card.question,
        says=" ".join(card.sentences),
        data=[_intervals(rows, labels, "share", [bool(row["matters"]) for row in rows])],
        layout=layout,
    )


def _winner(card: Card) -> Iterator[Figure]:
    rows = frame_rows(card.data)
    yield from (_waterfall(rows, card.metric), _gains(rows, card.metric))


def _waterfall(rows: Entries, metric: str) -> Figure:
    before = [row["reached"] - row["gain"] for row in rows]
    labels = ["the published method", *(f"{row['step']}. {row['change']}" for row in rows)]
    line = {"color": GREY, "width": 1, "dash": "dot"}
    links = [
        {"type": "line", "x0": reached, "x1": reached, "y0": -place, "y1": -place - 1, "line": line}
        for place, reached in enumerate([before[0], *(row["reached"] for row in rows[:-1])])
    ]
    bars = {
        "type": "bar",
        "orientation": "h",
        "base": before,
        "x": [row["gain"] for row in rows],
        "y": [-row["step"] for row in rows],
        "width": 0.24,
        "marker": {"color": [BLUE if row["gain"] >= 0 else VERMILION for row in rows]},
        "text": [f"{row['gain']:+.4f}" for row in rows],
        "textposition": "outside",
        "cliponaxis": False,
        "customdata": [plain(row["change"]) for row in rows],
        "hovertemplate": "%{customdata}<br>%{text}<extra></extra>",
    }
    marker = {"color": GREY, "size": 10, "symbol": "diamond"}
    beginning = scatter("markers", [before[0]], [0], "%{x:.4f}", marker=marker)
    reached = [*before, *(row["reached"] for row in rows)]
    room = 0.25 * (max(reached) - min(reached) or 0.01)
    layout = rows_layout(labels, f"expected {metric}", shapes=links)
    layout["xaxis"]["range"] = [min(reached) - room, max(reached) + room]
    return Figure(
        name="winner-path",
        title="From the published method to the trial, one difference after another",
        says=f"A waterfall of {len(rows)} steps from {before[0]:.4f} to {rows[-1]['reached']:.4f} expected {metric}.",
        data=[bars, beginning],
        layout=layout,
    )


def _gains(rows: Entries, metric: str) -> Figure:
    labels = [f"{row['step']}. {row['change']}" for row in rows]
    are_clear = [row["low"] > 0 or row["high"] < 0 for row in rows]
    return Figure(
        name="winner-gains",
        title="What each step gains, with 95% intervals",
        says=f"Intervals that exclude zero: {sum(are_clear)} of {len(rows)}.",
        data=[_intervals(rows, labels, "gain", are_clear)],
        layout=rows_layout(labels, metric, shapes=[zero_line()]),
    )


def _rates(card: Card) -> Iterator[Figure]:
    """Yield one figure per side, with one curve per form."""
    entries = frame_rows(card.points)
    for side in dict.fromkeys(str(one["at"]) for one in entries):
        traces: list[Mapping[str, Any]] = []
        own = [one for one in entries if one["at"] == side]
        for form in dict.fromkeys(str(one["form"]) for one in own):
            traces += _curve([one for one in own if one["form"] == form], form, colour_of(form))
        where = PLACES[side]
        yield Figure(
            name=f"rates-{side}",
            title=f"Learning rates at {where}; a star is the best of its form",
            says=f"Expected {card.metric} against the peak learning rate at {where}, by form.",
            data=traces,
            layout={
                "xaxis": axis("peak learning rate (logarithmic)", type="log", exponentformat="power"),
                "yaxis": axis(f"expected {card.metric}, 95% band"),
                "height": 420,
            },
        )


def _curve(some: Entries, name: str, colour: str) -> Sequence[Mapping[str, Any]]:
    there, shown = [one["rate"] for one in some], plain(name)
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    hidden = {"type": "scatter", "mode": "lines", "x": there, "showlegend": False, "hoverinfo": "skip"}
    low = {**hidden, "y": [one["low"] for one in some], "line": {"width": 0}, "legendgroup": shown}
    band = {"fill": "tonexty", "fillcolor": f"rgba({red}, {green}, {blue}, 0.12)"}
    high = {**low, **band, "y": [one["high"] for one in some]}
    marker = {
        "color": colour,
        "symbol": ["star" if one["is_best"] else "circle" for one in some],
        "size": [12 if one["is_best"] else 4 for one in some],
    }
    line = scatter(
        "lines+markers",
        there,
        [one["score"] for one in some],
        f"{shown}: %{{y:.4f}}",
        name=shown,
        legendgroup=shown,
        line={"color": colour, "width": 2},
        marker=marker,
    )
    return [low, high, line]


def _sizes(card: Card) -> Iterator[Figure]:
    """Yield the figure of complete trials by stored parameters, with the best of all that are no larger."""
    front, rows = frame_rows(card.data), frame_rows(card.points)
    places, across = _size_axis(rows)
    steps = scatter(
        "lines",
        [places[row["trial"]] for row in front],
        [row["estimate"] for row in front],
        "%{text}: %{y:.4f}",
        text=[f"at most {row['parameters']:,} parameters" for row in front],
        name="best of all no larger",
        line={"shape": "hv", "color": GREY, "width": 2},
    )
    own = [row for row in rows if row["method"] == BY_SEARCH]
    others = [row for row in rows if row["method"] != BY_SEARCH]
    traces = [
        steps,
        _trials(own, places, "discovered", DISCOVERED, "circle"),
        _trials(others, places, "published", PUBLISHED, "diamond"),
    ]
    yield Figure(
        name=card.name,
        title=card.question,
        says=f"Complete trials by stored parameters. {' '.join(card.sentences)}",
        data=[trace for trace in traces if trace["x"]],
        layout={"xaxis": across, "yaxis": axis(f"estimate of {card.metric}, 95% interval"), "height": 440},
    )


def _size_axis(rows: Entries) -> tuple[Mapping[int, int], Mapping[str, Any]]:
    """Return the positions of trials by number, and the axis; evenly spaced where most sizes coincide."""
    ordered = sorted(rows, key=lambda row: (row["parameters"], row["trial"]))
    sizes, last = [max(1, row["parameters"]) for row in ordered], len(ordered) - 1
    if sizes[round(0.75 * last)] > _ALIKE * sizes[round(0.25 * last)]:
        dtick = 1 if sizes[-1] > 10 * sizes[0] else None
        return (
            {row["trial"]: size for row, size in zip(ordered, sizes, strict=True)},
            axis("stored parameters (logarithmic)", type="log", dtick=dtick),
        )
    shown = sorted({round(part * last) for part in (0, 0.25, 0.5, 0.75, 1)})
    names = [f"{ordered[place]['parameters']:,}" for place in shown]
    return (
        {row["trial"]: place for place, row in enumerate(ordered)},
        axis(
            "trials ordered by stored parameters (equal spacing)",
            tickvals=shown,
            ticktext=names,
            tickangle=0,
            zeroline=False,
        ),
    )


def _trials(rows: Entries, places: Mapping[int, int], name: str, colour: str, symbol: str) -> Mapping[str, Any]:
    reach = [row["high"] - row["estimate"] for row in rows]
    return scatter(
        "markers",
        [places[row["trial"]] for row in rows],
        [row["estimate"] for row in rows],
        "%{text}<br>%{y:.4f}",
        name=name,
        error_y={"type": "data", "array": reach, "thickness": 0.7, "width": 0, "color": UNRESOLVED},
        marker={"color": colour, "symbol": symbol, "size": 9, "line": {"width": 1, "color": "#ffffff"}},
        customdata=[row["trial"] for row in rows],
        text=[plain(f"trial {row['trial']} {row['method']}, {row['parameters']:,} parameters") for row in rows],
    )


_FIGURES: Mapping[str, Callable[[Card], Iterator[Figure]]] = {
    "matters": _matters,
    "winner": _winner,
    "rates": _rates,
    "sizes": _sizes,
}
