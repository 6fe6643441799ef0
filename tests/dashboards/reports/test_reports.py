"""A report: one file that loads nothing, in which nothing of a study is markup; its figures and tables as files."""

import json
import re
import sys
from dataclasses import replace

import pandas
import pytest
from support.factored_search import drawn, history_of
from support.planted_ledger import Planted
from support.shown_study import confirmation_of

from dashboards.errors import DashboardError
from dashboards.reports import files
from dashboards.reports.files import write_images, write_tables
from dashboards.reports.page import plotly_script, report_page
from dashboards.reports.report import ReportSection, StudyReport, report_of
from studies.analysis.discover import ANALYSES, StudyPosterior

HOSTILE = "</script><img src=x onerror=alert(1)>\u202e&amp;"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> StudyReport:
    planted = Planted(f"sqlite:///{tmp_path_factory.mktemp('report') / 'ledger.db'}", 16, noise=0.01)
    confirmation_of(planted)
    knowledge = StudyPosterior(planted.space, history_of(drawn(planted.space, 20)), metric="accuracy")
    return report_of(planted.ledger, "planted", knowledge)


def own_markup(page: str) -> str:
    """Return a page without the script of Plotly."""
    return page.replace(plotly_script(), "")


def test_a_report_holds_every_question_once(report):
    names = [section.name for section in report.sections]
    assert len(set(names)) == len(names)
    assert {"leaderboard", *ANALYSES, "curves"} <= set(names)
    page = own_markup(report_page(report))
    for section in report.sections:
        assert f'<section id="{section.name}"' in page
        for figure in section.figures:
            assert f'id="figure-{figure.name}"' in page


def test_a_confirmation_has_its_figure(report):
    section = next(one for one in report.sections if one.name == "planted-confirm")
    (figure,) = section.figures
    assert figure.data[1]["x"] == pytest.approx([0.535, 0.505, 0.4875])


def test_page_loads_no_other_file(report):
    page = report_page(report)
    assert "default-src 'none'" in page
    own = own_markup(page)
    assert not re.search(r"https?://|//cdn|<link|<img|@import|src=", own)
    assert len(page) > 1_000_000  # Plotly is in it


def test_figures_can_be_read_back_and_cannot_end_their_element(report):
    own = own_markup(report_page(report))
    (text,) = re.findall(r'<script id="figures" type="application/json">(.*?)</script>', own, re.DOTALL)
    assert "<" not in text
    held = json.loads(text)
    drawn_there = [one["name"] for one in held["figures"]]
    assert drawn_there == [figure.name for section in report.sections for figure in section.figures]
    assert set(held["templates"]) == {"light", "dark"}


def test_hostile_names_and_values_are_text(report):
    table = pandas.DataFrame({HOSTILE: [HOSTILE], "value": [1.0]})
    section = ReportSection(name="hostile", title=HOSTILE, sentences=(HOSTILE,), table=table, note=HOSTILE)
    summary = replace(report.summary, name=HOSTILE, task=HOSTILE, backbone=HOSTILE, metric=HOSTILE)
    page = own_markup(report_page(StudyReport(summary=summary, sentences=(HOSTILE,), sections=(section,))))
    assert "<img" not in page
    assert page.count("&lt;img src=x onerror=alert(1)&gt;") >= 8
    assert page.count("</script>") == 3


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_tables_are_files_with_all_digits(report, tmp_path, form):
    written = write_tables(report, tmp_path / "data", form)  # type: ignore[arg-type]
    tables = {section.name: section.table for section in report.sections if section.table is not None}
    assert {path.stem for path in written} == set(tables)
    path = tmp_path / "data" / f"sizes.{form}"
    frame = pandas.read_csv(path) if form == "csv" else pandas.read_parquet(path)
    assert list(frame["estimate"]) == pytest.approx(list(tables["sizes"]["estimate"]), rel=1e-12)


def test_images_without_a_browser_are_refused_in_one_line(report, tmp_path, monkeypatch):
    monkeypatch.delenv("BROWSER_PATH", raising=False)
    monkeypatch.setattr(files.shutil, "which", lambda name: None)
    with pytest.raises(DashboardError, match="images of figures need a browser") as refused:
        write_images(report.sections[0].figures, tmp_path, "svg")
    assert "\n" not in str(refused.value)


def test_images_without_kaleido_are_refused_in_one_line(report, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "kaleido", None)
    with pytest.raises(DashboardError, match=r"need the package kaleido.*deltaspace\[figures\]"):
        write_images(report.sections[0].figures, tmp_path, "png")


@pytest.mark.slow
@pytest.mark.skipif(not any(map(files.shutil.which, files.BROWSERS)), reason="there is no browser")
@pytest.mark.filterwarnings("ignore")  # of Kaleido and of the browser it starts
def test_figures_are_files(report, tmp_path):
    figures = report.sections[1].figures
    drawn_files = write_images(figures, tmp_path / "figures", "svg")
    assert [path.name for path in drawn_files] == [f"{figure.name}.svg" for figure in figures]
    assert all("<svg" in path.read_text() for path in drawn_files)
