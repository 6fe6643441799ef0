"""V6 and V7: expected scores along the share of attention, and along learning rates."""

from collections.abc import Mapping, Sequence
from typing import Any

from dashboards.colours import colour_of
from dashboards.figures.figure import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, Figure, axis, plain
from studies.queries.table import Table

_COLOURS = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY)
"""Of pairs of forms, which have no colour of their own."""

_DASHES = {1.0: "solid", 0.5: "dash", 0.25: "dot"}

Entries = list[dict[str, object]]


def share_figure(table: Table, metric: str) -> Figure:
    """One curve a pair of forms and budget, with the band of the whole budget."""
    entries = table.to_dicts()
    traces: list[Mapping[str, Any]] = []
    for place, pair in enumerate(dict.fromkeys((str(one["attention"]), str(one["ffn"])) for one in entries)):
        colour = _COLOURS[place % len(_COLOURS)]
        own = [one for one in entries if (str(one["attention"]), str(one["ffn"])) == pair]
        for budget in dict.fromkeys(float(str(one["budget"])) for one in own):
            some = [one for one in own if float(str(one["budget"])) == budget]
            name = f"{pair[0]} + {pair[1]}" + ("" if budget == 1 else f", {budget:.0%} of the budget")
            traces += _curve(some, "share", name, colour, dash=_DASHES.get(budget, "dashdot"), has_band=budget == 1)
    return Figure(
        name="budget",
        title=table.title,
        says=f"Expected {metric} against attention's share of the budget. The table holds the numbers.",
        data=traces,
        layout={
            "xaxis": axis("attention's share of the budget", tickformat=".0%"),
            "yaxis": axis(f"expected {metric}, 90% band"),
            "height": 460,
        },
    )


def rate_figures(table: Table, metric: str) -> tuple[Figure, ...]:
    """One figure a side, one curve a form."""
    entries = table.to_dicts()
    found = []
    for side in dict.fromkeys(str(one["side"]) for one in entries):
        traces: list[Mapping[str, Any]] = []
        forms = dict.fromkeys(str(one["form"]) for one in entries if one["side"] == side)
        for form in forms:
            some = [one for one in entries if (one["side"], one["form"]) == (side, form)]
            traces += _curve(some, "rate", form, colour_of(form), dash="solid", has_band=True)
        where = {"attention": "attention", "ffn": "the FFN"}.get(side, side)
        found.append(
            Figure(
                name=f"rates-{side}",
                title=f"Learning rates at {where}; a star is the best of its form",
                says=f"Expected {metric} against the peak learning rate at {where}, by form.",
                data=traces,
                layout={
                    "xaxis": axis("peak learning rate (logarithmic)", type="log", exponentformat="power"),
                    "yaxis": axis(f"expected {metric}, 90% band"),
                    "height": 420,
                },
            )
        )
    return tuple(found)


def _curve(
    some: Entries, across: str, name: str, colour: str, *, dash: str, has_band: bool
) -> Sequence[Mapping[str, Any]]:
    there = [one[across] for one in some]
    shown = plain(name)
    hidden = {"type": "scatter", "mode": "lines", "x": there, "showlegend": False, "hoverinfo": "skip"}
    low = {**hidden, "y": [one["low"] for one in some], "line": {"width": 0}, "legendgroup": shown}
    high = {**low, "y": [one["high"] for one in some], "fill": "tonexty", "fillcolor": _faint(colour)}
    line = {
        "type": "scatter",
        "mode": "lines+markers",
        "name": shown,
        "legendgroup": shown,
        "x": there,
        "y": [one["value"] for one in some],
        "line": {"color": colour, "dash": dash, "width": 2},
        "marker": {
            "color": colour,
            "symbol": ["star" if one["is_best"] else "circle" for one in some],
            "size": [12 if one["is_best"] else 4 for one in some],
        },
        "hovertemplate": f"{shown}: %{{y:.4f}}<extra></extra>",
    }
    return [low, high, line] if has_band else [line]


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, 0.12)"
