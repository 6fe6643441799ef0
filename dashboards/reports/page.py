"""Report as one HTML file without external resources."""

import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dashboards.errors import DashboardError
from dashboards.figures.figure import TEMPLATES
from dashboards.reports.report import StudyReport
from dashboards.terminal.frames import frame_cells

if TYPE_CHECKING:
    import pandas

_MOST_SENTENCES = 6
_MOST_OPEN = 12
_LONG = 40


def report_page(report: StudyReport) -> str:
    """Return the HTML of a report; names and values are escaped.

    Raises:
        DashboardError: If Plotly is not installed.
    """
    environment = Environment(
        loader=PackageLoader("dashboards.reports", "."), autoescape=True, undefined=StrictUndefined
    )
    return environment.get_template("report.html").render(
        report=report,
        most_sentences=_MOST_SENTENCES,
        most_open=_MOST_OPEN,
        shown=_shown,
        figures=Markup(_figures(report)),
        plotly=Markup(plotly_script()),
    )


def plotly_script() -> str:
    """Return the script of Plotly, from its Python wheel.

    Raises:
        DashboardError: If Plotly is not installed.
    """
    try:
        found = Path(str(files("plotly"))) / "package_data" / "plotly.min.js"
    except ModuleNotFoundError:
        raise DashboardError(
            "figures need the package plotly, which is not installed. Install it: pip install 'deltaspace[dashboard]'."
        ) from None
    return found.read_text(encoding="utf-8")


def _figures(report: StudyReport) -> str:
    """Return all figures as JSON whose texts cannot close the enclosing element."""
    found = [
        {"name": figure.name, "data": list(figure.data), "layout": dict(figure.layout)}
        for section in report.sections
        for figure in section.figures
    ]
    text = json.dumps({"figures": found, "templates": TEMPLATES}, ensure_ascii=False, allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _shown(table: "pandas.DataFrame") -> dict[str, object]:
    """Return the columns with the kinds of their values, and the rows as formatted texts."""
    cells = frame_cells(table)
    kinds = [*map(_kind, zip(*cells["rows"], strict=True))]
    return {
        "columns": [*zip(cells["columns"], kinds, strict=True)],
        "rows": [[*zip(texts, kinds, strict=True)] for texts in cells["texts"]],
    }


def _kind(values: Sequence[object]) -> str:
    given = [value for value in values if value is not None]
    if given and all(isinstance(value, int | float) and not isinstance(value, bool) for value in given):
        return "number"
    return "long" if any(isinstance(value, str) and len(value) > _LONG for value in given) else ""
