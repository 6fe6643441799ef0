"""Figures and tables of a report as files of their own."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from dashboards.errors import DashboardError
from dashboards.figures.figure import TEMPLATES, Figure
from dashboards.reports.report import StudyReport

ImageFormat = Literal["svg", "png"]
DataFormat = Literal["csv", "parquet"]

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
"""Browser commands that Kaleido can use."""
_WIDTH, _HEIGHT, _SCALE = 900, 450, 2


def write_images(figures: Sequence[Figure], folder: Path, form: ImageFormat) -> list[Path]:
    """Write one file per figure, on a white background, and return the paths.

    Raises:
        DashboardError: If Kaleido or a browser for it is missing, or the folder cannot be written.
    """
    try:
        import kaleido
    except ModuleNotFoundError:
        raise DashboardError(
            "images of figures need the package kaleido, which is not installed. Install it: "
            "pip install 'deltaspace[figures]'."
        ) from None
    browser = os.environ.get("BROWSER_PATH") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise DashboardError(
            f"images of figures need a browser; none of {', '.join(BROWSERS)} is on the path. "
            "Install Chromium, or name one with BROWSER_PATH."
        )
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [(figure, folder / f"{figure.name}.{form}") for figure in figures]
    todo = [
        {
            "fig": _titled(figure),
            "path": path,
            "opts": {
                "format": form,
                "width": _WIDTH,
                "height": figure.layout.get("height", _HEIGHT),
                "scale": _SCALE if form == "png" else 1,
            },
        }
        for figure, path in wanted
    ]
    kaleido.write_fig_from_object_sync(todo, kopts={"path": browser})
    return [path for _, path in wanted]


def _titled(figure: Figure) -> dict[str, object]:
    title = {"text": figure.title, "font": {"size": 15}, "x": 0.02}
    layout = {**figure.layout, "template": TEMPLATES["light"], "title": title, "margin": {"t": 84}}
    return {"data": list(figure.data), "layout": layout}


def write_tables(report: StudyReport, folder: Path, form: DataFormat) -> list[Path]:
    """Write one file per section, with unrounded numbers, and return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for section in report.sections:
        if section.table is not None:
            path = folder / f"{section.name}.{form}"
            write = section.table.to_csv if form == "csv" else section.table.to_parquet
            write(path, index=False)
            written.append(path)
    return written
