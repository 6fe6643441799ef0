"""The tables of a report as files of their own."""

from pathlib import Path
from typing import Literal

from dashboards.reports.report import StudyReport

DataFormat = Literal["csv", "parquet"]


def write_tables(report: StudyReport, folder: Path, form: DataFormat) -> list[Path]:
    """One file a question, named by it; the numbers are not rounded."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for section in report.sections:
        if section.table is None:
            continue
        path = folder / f"{section.name}.{form}"
        frame = section.table
        if form == "csv":
            frame.to_csv(path, index=False)
        else:
            frame.to_parquet(path, index=False)
        written.append(path)
    return written
