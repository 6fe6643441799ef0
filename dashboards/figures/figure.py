"""Plotly figures, their elements and their themes."""

import html
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dashboards import colours

Traces = Sequence[Mapping[str, Any]]

_ROW_PIXELS, _LINE_PIXELS = 32, 18
_LEAST_PIXELS = 150
_LINE, _LINES = 44, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A Plotly figure without a theme.

    Attributes:
        name: Name of its file and of its anchor in a page: letters, digits and ``-``.
        title: Title of one line.
        says: Text alternative for people who cannot see it.
        data: Traces, SVG ones only.
        layout: Axes with units, shapes and annotations.
    """

    name: str
    title: str
    says: str
    data: Traces
    layout: Mapping[str, Any]


def _template(ink: str, ground: str, lines: str) -> dict[str, Any]:
    axis = {
        "gridcolor": lines,
        "linecolor": lines,
        "zerolinecolor": ink,
        "zerolinewidth": 1,
        "ticks": "outside",
        "tickcolor": lines,
        "automargin": True,
        "title": {"standoff": 8, "font": {"size": 13}},
    }
    return {
        "layout": {
            "font": {"family": "system-ui, sans-serif", "size": 13, "color": ink},
            "paper_bgcolor": ground,
            "plot_bgcolor": ground,
            "colorway": [colours.BLUE, colours.ORANGE, colours.GREEN, colours.VERMILION, colours.PURPLE, colours.SKY],
            "colorscale": {"sequential": "Viridis", "diverging": "RdBu"},
            "xaxis": axis,
            "yaxis": axis,
            "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"},
            "margin": {"l": 16, "r": 16, "t": 36, "b": 48},
            "hoverlabel": {"align": "left", "namelength": -1},
            "annotationdefaults": {"font": {"color": ink}, "bgcolor": ground},
        }
    }


TEMPLATES: Mapping[str, Mapping[str, Any]] = {
    "light": _template("#1b1b1b", "#ffffff", "#dddddd"),
    "dark": _template("#e8e8e8", "#16181c", "#3a3d42"),
}
"""Plotly templates by name of the theme."""


def plain(text: object) -> str:
    """Return a text that Plotly displays literally: it interprets ``<b>``, ``<a>`` and the like as markup."""
    shown = "".join(one if one.isprintable() else " " for one in str(text))
    return html.escape(shown, quote=False)


def wrapped(text: object) -> list[str]:
    """Return a literal text in at most two lines that fit on a phone; a longer text is cut."""
    lines = textwrap.wrap(str(text), _LINE, max_lines=_LINES, placeholder=" …") or [""]
    return [plain(line) for line in lines]


def axis(title: str, **more: Any) -> dict[str, Any]:
    """Return an axis with a title, which includes the unit."""
    return {"title": {"text": plain(title)}, **more}


def rows_layout(labels: Sequence[str], across: str, **more: Any) -> dict[str, Any]:
    """Return a layout of rows, the first on top, each with its label above it, so that long labels fit on a phone.

    Args:
        labels: Labels of the rows; row i is at y = -i.
        across: Title of the horizontal axis.
        more: Keys of the layout.
    """
    lines = [wrapped(label) for label in labels]
    most = max(map(len, lines), default=1)
    notes = [
        {
            "text": "<br>".join(some),
            "xref": "paper",
            "x": 0,
            "xanchor": "left",
            "y": -row,
            "yanchor": "bottom",
            "yshift": 7,
            "showarrow": False,
            "align": "left",
        }
        for row, some in enumerate(lines)
    ]
    return {
        "xaxis": axis(across, zeroline=False),
        "yaxis": {"visible": False, "range": [-len(labels) + 0.5, 0.9], "fixedrange": True},
        "annotations": notes,
        "height": max(_LEAST_PIXELS, 110 + (_ROW_PIXELS + _LINE_PIXELS * (most - 1)) * len(labels)),
        "showlegend": False,
        **more,
    }


def zero_line() -> dict[str, Any]:
    """Return a vertical line at zero."""
    line = {"color": colours.GREY, "width": 1, "dash": "dot"}
    return {"type": "line", "xref": "x", "yref": "paper", "x0": 0, "x1": 0, "y0": 0, "y1": 1, "line": line}


def scatter(mode: str, x: Sequence[object], y: Sequence[object], hover: str, **more: Any) -> dict[str, Any]:
    """Return a trace of points or lines.

    Args:
        mode: Mode of the trace, such as ``markers``.
        x: Horizontal positions.
        y: Vertical positions.
        hover: Hover text, as a Plotly template.
        more: Keys of the trace.
    """
    shown = f"{hover}<extra></extra>"
    return {"type": "scatter", "mode": mode, "x": x, "y": y, "hovertemplate": shown, **more}


def points(
    values: Sequence[float],
    ends: Sequence[tuple[float, float] | None],
    texts: Sequence[str],
    hover: str = "%{text}",
    **more: Any,
) -> dict[str, Any]:
    """Return one point with its interval per row, the first on top; no bar where the ends are None."""
    down = [-row for row in range(len(values))]
    known = [end or (value, value) for value, end in zip(values, ends, strict=True)]
    bars = {
        "type": "data",
        "symmetric": False,
        "array": [high - value for value, (_, high) in zip(values, known, strict=True)],
        "arrayminus": [value - low for value, (low, _) in zip(values, known, strict=True)],
        "color": colours.UNRESOLVED,
        "thickness": 1.5,
        "width": 4,
    }
    return scatter("markers", values, down, hover, error_x=bars, text=[*map(plain, texts)], **more)


def strokes(values: Sequence[float | None], rows: Sequence[int], texts: Sequence[str], **more: Any) -> dict[str, Any]:
    """Return short vertical strokes on rows."""
    marker = {"symbol": "line-ns-open", "size": 12, "color": colours.UNRESOLVED, "line": {"width": 2}}
    shown = [*map(plain, texts)]
    return scatter("markers", values, [-row for row in rows], "%{text}", marker=marker, text=shown, **more)


def origin_marker(are_published: Sequence[bool]) -> dict[str, Any]:
    """Return a marker per point: diamonds for published methods, circles for discoveries."""
    return _marker(are_published, (colours.PUBLISHED, "diamond"), (colours.DISCOVERED, "circle"))


def resolved_marker(are_resolved: Sequence[bool]) -> dict[str, Any]:
    """Return a marker per point: filled if the effect is resolved, else open."""
    return _marker(are_resolved, (colours.RESOLVED, "circle"), (colours.UNRESOLVED, "circle-open"))


def _marker(are_so: Sequence[bool], one: tuple[str, str], other: tuple[str, str]) -> dict[str, Any]:
    chosen = [one if is_so else other for is_so in are_so]
    return {"size": 10, "color": [colour for colour, _ in chosen], "symbol": [symbol for _, symbol in chosen]}
