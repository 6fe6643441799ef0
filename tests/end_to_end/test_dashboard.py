"""Dashboard in a browser, against studies that are finished, running or hostile."""

import csv
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from support import rotation
from support.chromium import SECONDS, Tab, browser, tab
from support.dashboard_client import serving
from support.planted_ledger import Planted
from support.shown_study import BACKBONE, HOSTILE, hostile_study, shown_study
from support.storages import on_one_storage

from dashboards.web.folder import export_study
from dashboards.web.pages import PAGES
from dashboards.web.safety import AccessPolicy
from studies.analysis.leaderboard import leaderboard
from studies.errors import StudiesError
from studies.ledger.ledger import Ledger
from studies.records import EventKind, TrialRecord, TrialState

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures" / "dashboard"
WRITE = "DELTASPACE_WRITE_PICTURES"
STUDY = "studies/1/"
PATHS = {
    "studies": "",
    "live": STUDY,
    "leaderboard": f"{STUDY}leaderboard/",
    "trial": f"{STUDY}trial/?number=1",
    "compare": f"{STUDY}compare/?trials=5,1,7",
    "timeline": f"{STUDY}timeline/",
    "task": "task/?name=docstrings",
    "discover": f"{STUDY}discover/",
    "confirmations": f"{STUDY}confirmations/",
    "query": "query/?sql=select+state%2C+count(*)+as+trials+from+trials+group+by+state",
}


@pytest.fixture(scope="module")
def opened() -> Iterator[Any]:
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return a storage in the working directory, a file beside the folder of a backbone."""
    folder = tmp_path_factory.mktemp("shown")
    shutil.copytree(BACKBONE, folder / BACKBONE.name)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        shown_study("sqlite:///deltaspace.db")
        yield "sqlite:///deltaspace.db"


@pytest.fixture(scope="module")
def trials(storage: str) -> list[TrialRecord]:
    with Ledger.open(storage, read_only=True) as ledger:
        return ledger.trials(ledger.study("planted").id)


@pytest.fixture(scope="module")
def address(storage: str) -> Iterator[str]:
    with serving(storage) as found:
        yield found


@pytest.fixture
def look(opened: Any, address: str) -> Iterator[Tab]:
    with tab(opened, address) as found:
        yield found


@contextmanager
def dashboard_tab(opened: Any, url: str, policy: AccessPolicy | None = None) -> Iterator[Tab]:
    """Open a dashboard of a storage of its own."""
    with serving(url, policy) as address, tab(opened, address) as look:
        yield look


def wait_for_views(look: Tab) -> None:
    look.page.wait_for_function(
        "() => ![...document.querySelectorAll('#page .quiet')].some((one) => one.innerText.includes('computed …'))"
    )


def shown_numbers(look: Tab) -> list[int]:
    """Return the trials of the board, from the top."""
    numbers = "(rows) => rows.map((row) => Number(row.dataset.number))"
    return [*look.page.eval_on_selector_all("#board tbody tr", numbers)]


def wait_for_trials(look: Tab, numbers: Sequence[int]) -> None:
    """Until the board shows these, in any order."""
    look.page.wait_for_function(f"() => document.querySelectorAll('#board tbody tr').length === {len(numbers)}")
    assert sorted(shown_numbers(look)) == sorted(numbers)


def wait_for_ranking(look: Tab) -> None:
    """Until the board shows places: whatever it showed before is drawn anew with them, and is not there any more."""
    look.page.wait_for_function("() => document.querySelector('#board tbody tr td:nth-child(2)')?.textContent === '1'")


_EVERY_WINDOW = (((1280, "light"), (390, "dark")), ((1280, "dark"), (390, "light")))
WINDOWS = [
    window
    for windows in (_EVERY_WINDOW if os.environ.get(WRITE) == "1" else rotation.parts(_EVERY_WINDOW))
    for window in windows
]
"""Both widths and both schemes in every run, all four pairs in two."""


def test_every_page_has_an_address_here():
    assert {*PATHS} == {page.name for page in PAGES}


@pytest.mark.parametrize(("width", "scheme"), WINDOWS)
def test_pages_show_their_study_fit_and_are_accessible(opened, address, tmp_path, width, scheme):
    folder = PICTURES if os.environ.get(WRITE) == "1" else tmp_path
    with tab(opened, address, width=width, scheme=scheme) as look:
        for name, path in PATHS.items():
            look.open(path).settle()
            wait_for_views(look)
            look.settle()
            assert look.count(".problem") == 0, name
            assert look.count("table, .verdict") > 0, name
            wide = look.page.evaluate("() => document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, f"{name} is {wide} pixels wider than its window"
            assert look.violations() == [], name
            picture = (folder if _is_documented(name, width, scheme) else tmp_path) / f"{name}-{width}-{scheme}.png"
            clip = {"x": 0, "y": 0, "width": width, "height": 800}
            look.page.screenshot(path=picture, full_page=True, clip=clip)
            assert picture.stat().st_size > 5000
            if picture.parent == PICTURES:
                _make_small(picture)


def test_phone_shows_configuration_score_and_current_tab(opened, address):
    ends = "(some) => some.map((one) => one.getBoundingClientRect()).map((one) => [one.left, one.right])"
    with tab(opened, address, width=400) as look:
        look.open("")
        (_, right) = look.page.eval_on_selector_all("tbody td:has-text('accuracy')", ends)[0]
        assert right <= 400
        look.open(PATHS["leaderboard"])
        wait_for_trials(look, range(47))
        for title in ("Score", "Configuration"):
            (_, right) = look.page.eval_on_selector_all(f"#board th:has-text('{title}')", ends)[0]
            assert right <= 400, title
        look.open(PATHS["confirmations"])
        (left, right) = look.page.eval_on_selector_all("nav [aria-current]", ends)[0]
        assert 0 <= left < right <= 400


def _make_small(picture: Path) -> None:
    """Reduce the colours of a picture as far as they stay distinguishable."""
    from PIL import Image

    with Image.open(picture) as found:
        few = found.convert("RGB").quantize(96, dither=Image.Dither.NONE)
    few.save(picture, optimize=True)


def _is_documented(name: str, width: int, scheme: str) -> bool:
    """Return whether the documentation has this picture: every page in light, and one in dark."""
    return scheme == "light" or (name, width) == ("trial", 1280)


def test_the_pictures_of_the_documentation_are_small():
    sizes = [path.stat().st_size for path in PICTURES.glob("*.png")]
    assert len(sizes) == 2 * len(PATHS) + 1
    assert max(sizes) <= 150_000
    assert sum(sizes) <= 1_500_000


def test_the_leaderboard_is_that_of_the_command(look, storage):
    with Ledger.open(storage, read_only=True) as ledger:
        board = leaderboard(ledger, "planted")
    look.open(PATHS["leaderboard"])
    wait_for_ranking(look)
    assert shown_numbers(look)[: len(board.rows)] == [row.number for row in board.rows]
    assert look.text(".verdict").split() == board.verdict.split()


FILTERS: tuple[tuple[str, str, Callable[[TrialRecord], bool]], ...] = (
    ("state", "pruned", lambda one: one.state is TrialState.PRUNED),
    ("origin", "published", lambda one: one.method is not None),
    ("origin", "discovered", lambda one: one.method is None),
    ("attention", "lowrank", lambda one: one.attention is not None and one.attention.form == "lowrank"),
    ("ffn", "none", lambda one: one.ffn is None),
    ("text", "mam_adapter", lambda one: one.method == "mam_adapter"),
    ("least", "0.45", lambda one: (one.score or one.last_score or 0) >= 0.45),
    ("most", "400000", lambda one: one.stored_parameters <= 400_000),
)


def test_every_filter_acts_on_the_table_and_on_every_plot(look, trials):
    look.open(PATHS["leaderboard"]).settle()
    wait_for_ranking(look)
    for name, value, holds in FILTERS:
        wanted = [trial.number for trial in trials if holds(trial)]
        assert 0 < len(wanted) < len(trials), name
        measured = [number for number in wanted if trials[number].last_score is not None]
        field = look.page.locator(f"[name={name}]")
        is_choice = field.evaluate("(one) => one.tagName") == "SELECT"
        (field.select_option if is_choice else field.fill)(value)
        look.page.wait_for_function(f"() => location.search.includes('{name}=')")
        wait_for_trials(look, wanted)
        for plot in range(7):
            look.page.wait_for_function(_SHOWS, arg=[plot, measured])
        look.page.get_by_role("button", name="Clear").click()
        look.page.wait_for_function(f"() => !location.search.includes('{name}=')")
        wait_for_trials(look, range(len(trials)))
    look.open(f"{PATHS['leaderboard']}?state=pruned&text=adapter")
    wanted = [one.number for one in trials if one.state is TrialState.PRUNED and "adapter" in one.description.lower()]
    wait_for_trials(look, wanted)


_SHOWS = """([plot, wanted]) => {
    const { data } = document.querySelectorAll("#plots .plot")[plot];
    const shown = new Set(data.filter((one) => one.meta !== "ring").flatMap((one) => one.customdata ?? []));
    return [...shown].every((one) => wanted.includes(one)) && (plot > 2 || shown.size === wanted.length);
}"""
"""Whether a plot of the leaderboard shows no other trials; the first three show all that are measured."""


def test_a_trial_that_is_marked_in_a_plot_is_marked_everywhere(look):
    look.open(PATHS["leaderboard"])
    wait_for_ranking(look)
    look.settle()
    point = look.page.locator("#plots .plot").nth(1).locator(".scatterlayer .trace path.point").first
    point.scroll_into_view_if_needed()
    box = point.bounding_box()
    look.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    look.page.wait_for_function("() => new URLSearchParams(location.search).get('pick')")
    number = look.page.evaluate("() => new URLSearchParams(location.search).get('pick')")
    look.page.wait_for_selector(f"tr.marked[data-number='{number}']")
    for plot in range(7):
        look.page.wait_for_function(_IS_MARKED, arg=[plot, int(number)])
    look.page.get_by_role("link", name="Overview").click()
    look.page.wait_for_function("() => document.body?.dataset.ready && location.search.includes('pick')")
    look.page.wait_for_selector(f".picked a[href*='number={number}']")
    look.page.get_by_role("link", name="Leaderboard").click()
    look.page.wait_for_selector(f"tr.marked[data-number='{number}']")
    look.page.locator(".picked button").first.click()
    look.page.wait_for_function("() => !location.search.includes('pick') && !document.querySelector('tr.marked')")


_IS_MARKED = """([plot, number]) => {
    const { data } = document.querySelectorAll("#plots .plot")[plot];
    const has = data.some((one) => one.meta !== "ring" && one.customdata?.includes(number));
    return !has || data.some((one) => one.meta === "ring" && one.customdata.includes(number));
}"""


def test_two_parameters_are_shown_by_score_rank_and_contours(look, trials):
    look.open(PATHS["leaderboard"]).settle()
    wait_for_ranking(look)
    traces = "() => document.querySelector('.slice .plot').data"
    points = f"({traces})().at(-1)"
    scores = look.page.evaluate(f"() => {points}.marker.color")
    look.page.locator("[name=by]").select_option("rank")
    look.page.wait_for_function(f"() => Math.max(...{points}.marker.color) === 1")
    ranks = look.page.evaluate(f"() => {points}.marker.color")
    best, worst = scores.index(max(scores)), scores.index(min(scores))
    assert (ranks[best], ranks[worst]) == (1, 0)
    look.page.locator("[name=by]").select_option("contour")
    look.page.wait_for_function(f"() => ({traces})()[0].type === 'contour'")
    both = [one.score for one in trials if one.score is not None and one.attention and one.ffn]
    assert sorted(look.page.evaluate(f"() => ({traces})()[0].z")) == pytest.approx(sorted(both))


def test_distribution_of_scores_can_have_a_logarithmic_axis(look, trials):
    look.open(f"{PATHS['leaderboard']}?origin=discovered").settle()
    plot = "[...document.querySelectorAll('#plots .plot')].at(-1)"
    found = [one.score for one in trials if one.state is TrialState.COMPLETE and one.method is None]
    look.page.wait_for_function(f"(count) => {plot}.data?.[0]?.x.length === count", arg=len(found))
    assert look.page.evaluate(f"() => {plot}.data[0].x") == pytest.approx(sorted(found))
    assert look.page.evaluate(f"() => {plot}.data[0].y.at(-1)") == 1
    look.page.get_by_role("button", name="logarithmic x axis of: Distribution of scores (EDF)").click()
    look.page.wait_for_function(f"() => {plot}._fullLayout.xaxis.type === 'log'")


def test_overview_of_two_objectives_has_the_front_of_the_command(opened, tmp_path):
    url = f"sqlite:///{tmp_path / 'two.db'}"
    planted = Planted(url, 16, noise=0.02, search={"objectives": ["score", "parameters"]})
    with planted.ledger as ledger, dashboard_tab(opened, url) as look:
        front = leaderboard(ledger, "planted").front
        look.open(STUDY)
        numbers = "document.querySelector('.plot').data?.find((one) => one.name === 'on the front')?.customdata"
        look.page.wait_for_function(
            f"(wanted) => String({numbers}) === wanted", arg=",".join(str(point.number) for point in front.points)
        )


def test_any_number_of_marked_trials_is_compared(look):
    def wait_for(*numbers: int) -> None:
        look.page.wait_for_function(_COMPARES, arg=[*map(str, numbers)])

    look.open(f"{PATHS['leaderboard']}?pick=3,5,1")
    look.page.get_by_role("link", name="compare these 3").click()
    wait_for(3, 5, 1)
    assert look.count("section svg") == 2 * 3
    marked = look.page.locator("tr.differs th").all_inner_texts()
    assert "functional form" in marked
    assert not {"configuration", "score", "estimate", "seed"} & set(marked)
    lines = look.text(".verdict").splitlines()
    assert [line.partition(" scored ")[0] for line in lines[:2]] == ["On the same 500 validation examples trial 3"] * 2
    assert ["than trial 5 (95%)" in lines[0], "than trial 1 (95%)" in lines[1]] == [True, True]
    look.page.get_by_label("put trial 1 first").click()
    wait_for(1, 3, 5)
    look.page.locator("[name=added]").fill("7")
    look.page.keyboard.press("Enter")
    wait_for(1, 3, 5, 7)
    look.settle()
    lines = "document.querySelector('.plot').data.filter((one) => one.meta === 'line')"
    shown = dict(look.page.evaluate(f"() => {lines}.map((one) => [one.customdata[0], one.line.color])"))
    assert sorted(shown) == [1, 3, 5, 7]
    assert len({*shown.values()}) == 4
    look.page.get_by_label("leave trial 3 out").click()
    wait_for(1, 5, 7)
    look.open(f"{STUDY}compare/?trials=5,999")
    look.wait_for_text("#page", "No trial 999; the study has trials 0 to 46.")
    look.page.get_by_label("leave trial 999 out").click()
    look.wait_for_text("#page", "Choose two trials")


_COMPARES = """(numbers) => {
    const found = document.querySelector("thead")?.innerText.match(/\\d+/g);
    return String(found) === String(numbers);
}"""


def test_brush_on_a_parallel_coordinate_filters_all_views(look, trials):
    look.open(PATHS["leaderboard"]).settle()
    wait_for_ranking(look)
    left, top, right, bottom = look.page.evaluate(_ON_THE_LAST_AXIS, [0.5, 1.05])
    look.page.mouse.move(left, top)
    look.page.mouse.down()
    look.page.mouse.move(right, bottom, steps=4)
    look.page.mouse.up()
    look.page.wait_for_function("() => location.search.includes('brush=score')")
    scores = {one.number: one.last_score for one in trials if one.last_score is not None}
    least = (max(scores.values()) + min(scores.values())) / 2
    wanted = sorted(number for number, score in scores.items() if score >= least - 1e-3)
    wait_for_trials(look, wanted)
    for plot in range(7):
        look.page.wait_for_function(_SHOWS, arg=[plot, wanted])
    faint = "() => document.querySelector('#parallel .plot').data.filter((one) => one.hoverinfo === 'skip').length"
    look.page.wait_for_function(f"() => ({faint})() === 1")
    # without a mouse, and a second axis
    look.page.locator("[name=axis]").select_option("ffn_form")
    look.page.locator("[name=kept]").select_option("lowrank")
    both = [number for number in wanted if (side := trials[number].ffn) is not None and side.form == "lowrank"]
    assert 0 < len(both) < len(wanted)
    wait_for_trials(look, both)
    look.page.reload()
    wait_for_trials(look, both)
    look.page.get_by_label("any score").click()
    look.page.wait_for_function("() => !location.search.includes('score')")
    look.page.get_by_label("any form, FFN").click()
    wait_for_trials(look, range(len(trials)))


_ON_THE_LAST_AXIS = """([low, high]) => {
    const plot = document.querySelector("#parallel .plot");
    plot.scrollIntoView({ block: "center" });
    plot.parentNode.scrollLeft = plot.scrollWidth;
    const { xaxis, yaxis } = plot._fullLayout;
    const { left, top } = plot.getBoundingClientRect();
    const [x, y] = [left + xaxis._offset + xaxis.l2p(11), (value) => top + yaxis._offset + yaxis.l2p(value)];
    return [x - 15, y(low), x + 15, y(high)];
}"""


def test_timeline_has_every_attempt_at_its_worker(look, storage):
    with Ledger.open(storage, read_only=True) as ledger:
        attempts = ledger.attempts(1)
    look.open(PATHS["timeline"]).settle()
    bars = look.page.evaluate(
        "() => document.querySelector('.plot').data.flatMap((one) => one.customdata.map((trial) => [trial, one.name]))"
    )
    assert sorted(bars) == sorted([one.trial, one.ending or "running"] for one in attempts)
    names = look.page.evaluate("() => document.querySelector('.plot')._fullLayout.yaxis.ticktext")
    assert names == ["w", "worker-0", "worker-1"]
    counts = look.page.eval_on_selector_all("tbody tr", "(rows) => rows.map((row) => Number(row.cells[1].textContent))")
    assert counts == [36, 6, 5]


def test_columns_are_chosen_and_the_table_is_taken_away(look, trials):
    look.open(f"{PATHS['leaderboard']}?state=complete&sort-board=parameters:down")
    wait_for_ranking_or_order = "() => document.querySelectorAll('#board tbody tr').length === 36"
    look.page.wait_for_function(wait_for_ranking_or_order)
    look.page.locator("#board summary").press("Enter")
    for title in ("composition, FFN", "Configuration"):
        look.page.locator("#board").get_by_label(title).press("Space")
    look.wait_for_text("#board thead", "composition FFN")
    assert "Configuration" not in look.text("#board thead")
    look.page.reload()
    look.wait_for_text("#board thead", "composition FFN")
    look.page.wait_for_function(wait_for_ranking_or_order)
    found = {}
    for kind in ("CSV", "JSON"):
        with look.page.expect_download() as coming:
            look.page.locator("#board .downloads").get_by_text(kind).click()
        assert coming.value.suggested_filename == f"trials-best-first.{kind.lower()}"
        found[kind] = Path(coming.value.path()).read_text()
    rows = list(csv.DictReader(found["CSV"].splitlines()))
    entries = json.loads(found["JSON"])
    assert [int(row["number"]) for row in rows] == [entry["number"] for entry in entries]
    assert [*rows[0]] == [*entries[0]]
    assert "ffn_gate" in rows[0]
    assert "description" not in rows[0]
    assert {entry["number"]: (entry["parameters"], entry["ffn_gate"]) for entry in entries} == {
        one.number: (one.stored_parameters, None if one.ffn is None else one.ffn.gate)
        for one in trials
        if one.state is TrialState.COMPLETE
    }
    assert [entry["parameters"] for entry in entries] == sorted((one["parameters"] for one in entries), reverse=True)


def test_notes_and_tags_are_written_and_found_again(opened, tmp_path):
    url = f"sqlite:///{tmp_path / 'noted.db'}"
    planted = Planted(url, 6)
    with dashboard_tab(opened, url) as look:
        look.open(f"{STUDY}trial/?number=3").settle()
        look.page.get_by_label("Note").fill("diverged at first\n<b>try</b> a lower rate")
        planted.ledger.annotate(planted.study.id, EventKind.TAGS, "of another", 3)
        look.page.wait_for_function("() => document.querySelector('[name=tags]').value === 'of another'")
        assert look.page.get_by_label("Note").input_value().startswith("diverged")  # what is not saved yet stays
        look.page.get_by_label("Tags").fill(" odd , to-repeat,odd")
        look.page.get_by_role("button", name="Save").click()
        look.wait_for_text(".remarks [role=status]", "saved")
        look.open(STUDY)
        look.page.get_by_label("Note").fill("the third try")
        look.page.get_by_label("Tags").fill("for the paper")
        look.page.get_by_role("button", name="Save").click()
        look.wait_for_text(".remarks [role=status]", "saved")
        look.open("")
        assert look.text("td .tag") == "for the paper"
        look.open(f"{PATHS['leaderboard']}?text=to-repeat")
        look.page.wait_for_function("() => document.querySelectorAll('#board tbody tr').length === 1")
        assert look.text("#board td .tag") == "odd"
        look.open(f"{STUDY}compare/?trials=2,3")
        look.wait_for_text("tbody", "<b>try</b> a lower rate")
    with dashboard_tab(opened, url, AccessPolicy(read_only=True)) as look:
        look.open(STUDY)
        look.wait_for_text(".remarks", "the third try")
        assert look.count(".remarks input") == 0
        look.open(f"{STUDY}trial/?number=3")
        look.wait_for_text(".remarks .tag", "odd")
    with planted.ledger as ledger:
        events = [(one.kind, one.trial, one.text) for one in ledger.user_events(planted.study.id)]
    assert events == [
        ("tags", 3, "of another"),
        ("tags", 3, "odd, to-repeat"),
        ("note", 3, "diverged at first\n<b>try</b> a lower rate"),
        ("tags", None, "for the paper"),
        ("note", None, "the third try"),
    ]


def test_note_of_another_writer_is_shown_before_it_is_replaced(opened, tmp_path):
    url = f"sqlite:///{tmp_path / 'two.db'}"
    planted = Planted(url, 3)
    with planted.ledger as ledger, dashboard_tab(opened, url) as look:
        look.open(f"{STUDY}trial/?number=1").settle()
        look.page.get_by_label("Note").fill("mine")
        ledger.annotate(planted.study.id, EventKind.NOTE, "of another", 1)
        look.page.wait_for_timeout(1500)  # until the page has the other note, which it does not show
        look.page.get_by_role("button", name="Save").click()
        look.wait_for_text(".remarks [role=status]", "it has become 'of another'")
        assert look.page.get_by_label("Note").input_value() == "mine"
        look.page.get_by_role("button", name="Save").click()
        look.wait_for_text(".remarks [role=status]", "saved")
        assert [one.text for one in ledger.user_events(planted.study.id)] == ["of another", "mine"]
        look.problems.clear()  # the browser reports the refused request


def test_study_is_deleted_once_its_name_is_typed(opened, tmp_path):
    url = f"sqlite:///{tmp_path / 'gone.db'}"
    Planted(url, 3).ledger.close()
    with dashboard_tab(opened, url, AccessPolicy(read_only=True)) as look:
        look.open(STUDY)
        assert look.count("[name=Delete]") == 0
    with dashboard_tab(opened, url) as look:
        look.open(STUDY)
        look.page.get_by_text("Rename or delete").click()
        look.page.locator("[name=Rename]").fill("second")
        look.page.get_by_role("button", name="Rename").click()
        look.wait_for_text("h1", "Overview of second")
        look.page.get_by_text("Rename or delete").click()
        look.page.locator("[name=Delete]").fill("planted")
        look.page.get_by_role("button", name="Delete").click()
        look.wait_for_text("details [role=status]", "the name must be that of the study; got 'planted'")
        look.page.locator("[name=Delete]").fill("second")
        look.page.get_by_role("button", name="Delete").click()
        look.page.wait_for_url(look.address)
        look.wait_for_text("#page", "none")
        look.problems.clear()  # the browser reports requests that were refused


def test_page_of_a_confirmation_is_its_comparison(look):
    look.open("studies/2/")
    look.wait_for_text("#page h2", "planted-confirm")
    assert look.text("nav").split() == ["Overview", "Timeline", "Query"]
    assert "against mam_adapter on test: accuracy +0.0300" in look.text("#page .verdict")
    link = look.page.get_by_role("region", name="Configurations").get_by_role("link").first
    assert str(link.get_attribute("href")).endswith("studies/1/trial/?number=5")
    assert look.page.locator(".tile").all_inner_texts()[0].split("\n")[:2] == ["Trials ended", "12 / 12"]
    assert "Best" not in " ".join(look.page.locator(".tile, figcaption").all_inner_texts())


def test_studies_of_a_task_stand_side_by_side(opened, tmp_path):
    url = f"sqlite:///{tmp_path / 'several.db'}"
    first = Planted(url, 6)
    other = Planted(url, 9, noise=0.05, study=first.new_study("planted, again", {"trials": 9}))
    with dashboard_tab(opened, url) as look:
        look.open("")
        look.page.locator("tbody a", has_text="planted").nth(1).click()
        look.page.wait_for_function("() => document.body?.dataset.ready && document.body.dataset.page === 'task'")
        look.settle()
        cells = "(rows) => rows.map((row) => [row.cells[0].textContent, row.cells[3].textContent])"
        shown = look.page.eval_on_selector_all("tbody tr", cells)
        assert shown == [["planted", "6 complete"], ["planted, again", "9 complete"]]
        ends = look.page.evaluate("() => document.querySelector('.plot').data.map((one) => [one.name, one.y.at(-1)])")
        best = {
            one.study.name: max(trial.score or 0 for trial in one.ledger.trials(one.study.id)) for one in (first, other)
        }
        assert dict(ends) == {name: pytest.approx(score) for name, score in best.items()}
    for planted in (first, other):
        planted.ledger.close()


def test_a_trial_that_was_trained_again_has_its_mean_on_every_page(opened: Any, tmp_path: Path) -> None:
    planted = Planted(f"sqlite:///{tmp_path / 'repeated.db'}", 7)
    scores = [planted.truth(5), 0.1]
    planted.replicate(5, scores[1])
    mean = f"{sum(scores) / 2:.4f}"
    with dashboard_tab(opened, planted.ledger.url) as look:
        look.open(PATHS["leaderboard"])
        wait_for_ranking(look)
        look.wait_for_text("#board tr[data-number='5']", f"{mean} ×2")
        look.open(f"{STUDY}trial/?number=5")
        look.wait_for_text(".tiles", f"{mean}\nmean of 2 trainings")
        look.open(f"{STUDY}compare/?trials=5,1")
        look.wait_for_text("tbody", f"{mean} ×2")
        look.open("task/?name=planted").settle()
        assert look.page.evaluate("() => Math.max(...document.querySelectorAll('.plot')[1].data[0].y)") > float(mean)
        assert look.page.evaluate(
            "(mean) => document.querySelectorAll('.plot')[1].data[0].y.some((one) => one.toFixed(4) === mean)", mean
        )
    planted.ledger.close()


_MOST_DOWNLOADS = 5
"""After some more in a row the browser asks a person whether it may go on."""


@pytest.mark.parametrize(
    "name", rotation.third(["live", "leaderboard", "trial", "compare", "discover", "confirmations"])
)
def test_the_data_of_every_plot_can_be_taken_away(look, name):
    look.open(PATHS[name])
    wait_for_views(look)
    look.settle()
    plots = look.count("figure .downloads")
    assert plots > 0
    assert look.count("figure .downloads button:not([aria-pressed])") == 3 * plots
    for place in range(min(plots, _MOST_DOWNLOADS)):
        with look.page.expect_download() as coming:
            look.page.locator("figure .downloads").nth(place).get_by_text("CSV").click()
        assert coming.value.suggested_filename.endswith(".csv")
        rows = list(csv.reader(Path(coming.value.path()).read_text().splitlines()))
        assert len(rows) > 1
        assert {len(row) for row in rows} == {len(rows[0])}


def test_a_table_is_sorted_with_the_keyboard_and_the_address_knows(look):
    look.open(PATHS["leaderboard"])
    wait_for_ranking(look)  # a table that is drawn anew has no focus
    look.page.locator("#board th button", has_text="Parameters").press("Enter")
    look.page.wait_for_function("() => location.search.includes('sort-board=parameters%3Adown')")
    look.wait_for_text("#board th[aria-sort=descending]", "Parameters")
    cells = look.page.eval_on_selector_all(
        "#board tbody tr", "(rows) => rows.map((row) => Number(row.cells[10].textContent.replaceAll(',', '')))"
    )
    assert cells == sorted(cells, reverse=True)
    look.page.reload()
    look.page.wait_for_selector("#board th[aria-sort=descending]")


def test_the_focus_stays_where_the_keyboard_was(look):
    """Test that marking and sorting, which redraw a table, keep the keyboard focus."""
    look.open(PATHS["leaderboard"])
    wait_for_ranking(look)
    look.page.locator("#board td.pick input").nth(2).focus()
    number = look.page.evaluate("() => document.activeElement.closest('tr').dataset.number")
    look.page.keyboard.press("Space")
    look.page.wait_for_selector(f"tr.marked[data-number='{number}']")
    assert look.page.evaluate("() => document.activeElement.getAttribute('aria-label')") == f"mark trial {number}"
    look.page.locator("#board th button", has_text="Parameters").press("Enter")
    look.wait_for_text("#board th[aria-sort=descending]", "Parameters")
    assert look.page.evaluate("() => document.activeElement.textContent").startswith("Parameters")
    look.page.keyboard.press("Enter")
    look.wait_for_text("#board th[aria-sort=ascending]", "Parameters")
    look.page.locator(".picked button").press("Enter")
    look.page.wait_for_function("() => !document.querySelector('tr.marked')")
    assert look.page.evaluate("() => document.activeElement.className") == "picked"


def test_pending_values_are_not_shown_as_missing(look):
    def unranked(route: Any) -> None:
        found = route.fetch().json()
        route.fulfill(json={name: value for name, value in found.items() if name != "ranking"})

    look.page.route("**/trials.json*", unranked)
    look.open(STUDY)
    assert "being computed" in look.text(".tiles")
    assert "no trial is complete" not in look.text(".tiles")


@pytest.mark.parametrize("name", rotation.third([*PATHS]))
def test_the_keyboard_reaches_all_of_a_page_in_sight(opened, address, name):
    width, scheme = WINDOWS[0]
    with tab(opened, address, width=width, scheme=scheme) as look:
        look.open(PATHS[name]).settle()
        wait_for_views(look)
        look.settle()
        look.page.wait_for_timeout(500)  # what is drawn anew with the ranking is another element
        wanted = look.page.evaluate(_NUMBER_WHAT_HAS_FOCUS)
        found = []
        while len(found) <= wanted:
            look.page.keyboard.press("Tab")
            if (here := look.page.evaluate(_FOCUSED)) is None:
                break
            found.append(here["number"])
            assert (here["outline"], here["isHidden"]) == ("solid", False), here
        assert found == [*range(wanted)]


_NUMBER_WHAT_HAS_FOCUS = """() => {
    const all = document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']");
    const shown = [...all].filter((one) => one.checkVisibility());
    shown.forEach((one, place) => { one.dataset.place = place; });
    return shown.length;
}"""
_FOCUSED = """() => {
    const one = document.activeElement;
    if (one === document.body) return null;
    const { left, top, width, height } = one.getBoundingClientRect();
    const inside = (value, end) => Math.max(0, Math.min(end - 1, value));
    const middle = [inside(left + width / 2, innerWidth), inside(top + height / 2, innerHeight)];
    const isHidden = Boolean(document.elementFromPoint(...middle)?.closest("header")) && !one.closest("header");
    const { outlineStyle: outline } = getComputedStyle(one);
    return { number: Number(one.dataset.place), outline, isHidden, html: one.outerHTML.slice(0, 200) };
}"""
"""What has the focus, and whether the head of the page lies over it."""


def test_pressed_button_keeps_focus_and_scroll_position(look):
    look.open(PATHS["query"])
    look.page.get_by_role("button", name="Run (Ctrl").press("Enter")
    look.page.wait_for_function("() => document.querySelector('section').dataset.answers === '2'")
    assert look.page.evaluate("() => document.activeElement.textContent").startswith("Run")
    look.open(PATHS["trial"]).settle()
    button = look.page.locator("th button", has_text="Training loss")
    button.scroll_into_view_if_needed()
    before = look.page.evaluate("() => scrollY")
    button.press("Enter")
    look.wait_for_text("th[aria-sort=descending]", "Training loss")
    assert look.page.evaluate("() => [document.activeElement.textContent.trim(), scrollY]") == [
        "Training loss ▾",
        before,
    ]


def test_trials_of_similar_sizes_stand_side_by_side(look, trials):
    look.open(PATHS["leaderboard"]).settle()
    wait_for_ranking(look)
    sizes = {one.number: one.stored_parameters for one in trials if one.last_score is not None}
    for plot in (3, 4):
        rates = f"document.querySelectorAll('#plots .plot')[{plot}].querySelectorAll('.xtick text')"
        assert look.page.evaluate(f"() => {rates}.length") == 4
    shown = look.page.evaluate(
        "() => document.querySelectorAll('#plots .plot')[1].data.filter((one) => one.customdata)"
        ".flatMap((one) => one.customdata.map((number, place) => [one.x[place], number]))"
    )
    assert [place for place, _ in sorted(shown)] == [*range(len(sizes))]
    assert [number for _, number in sorted(shown)] == sorted(sizes, key=lambda number: (sizes[number], number))
    look.page.locator("[name=ffn]").select_option("diag")
    look.page.wait_for_function(
        "() => document.querySelectorAll('#plots .plot')[1]._fullLayout.xaxis.title.text === 'stored parameters'"
    )


def test_no_arrow_of_an_edit_crosses_a_tensor_that_it_does_not_change(look):
    look.open(f"{STUDY}trial/?number=0")
    look.page.wait_for_selector(".picture svg")
    assert look.page.evaluate(_CROSSED) == []


_CROSSED = """() => [...document.querySelectorAll(".picture svg")].flatMap((svg) => {
    const boxes = [...svg.querySelectorAll("rect.port")].map((one) => ({
        name: one.parentNode.querySelector("text").textContent,
        holds: ({ x, y }, room) => {
            const box = one.getBBox();
            return x > box.x - room && x < box.x + box.width + room && y > box.y && y < box.y + box.height;
        },
    }));
    return [...svg.querySelectorAll("path[stroke-width='1.8']")].flatMap((path) => {
        const at = (part) => path.getPointAtLength(path.getTotalLength() * part);
        const points = Array.from({ length: 200 }, (_, place) => at(place / 199));
        const others = boxes.filter((box) => !box.holds(at(0), 4) && !box.holds(at(1), 4));
        return others.filter((box) => points.some((one) => box.holds(one, 0))).map((box) => box.name);
    });
})"""
"""Tensors that the arrow of an edit passes through without beginning or ending there."""


def test_query_page_runs_queries_and_lists_tables(look):
    look.open(PATHS["leaderboard"])
    look.page.get_by_role("link", name="Query").click()
    look.page.wait_for_function("() => document.body?.dataset.ready && document.body.dataset.page === 'query'")
    assert look.text(".study") == "planted"
    assert "study = 'planted'" in look.page.locator("#sql").input_value()
    listed = look.page.eval_on_selector_all("li code", "(all) => all.map((one) => one.textContent)")
    assert "deltaspace show" in listed
    assert "`" not in look.text("#page")
    assert {"leaderboard", "confirmation_results", "fronts", "trials", "readings"} <= set(listed)
    for place in range(4):
        look.page.locator("form .picked button").nth(1 + place).click()
        look.page.wait_for_function(f"() => document.querySelector('section')?.dataset.answers === '{place + 1}'")
        assert look.count("section[data-answers] tbody tr") > 0, place


def test_every_link_of_the_pages_works(look):
    targets: set[str] = set()
    for path in PATHS.values():
        look.open(path)
        wait_for_views(look)
        links = look.page.eval_on_selector_all("a[href]", "(all) => all.map((one) => one.href.split('#')[0])")
        targets |= set(links)
    assert len(targets) > 50
    for link in sorted(targets):
        assert look.page.request.get(link).status == 200, link


def test_sql_is_executed_or_refused(look):
    look.open("query/")
    look.page.locator("#sql").fill("select number, score from trials where state = 'complete' order by number")
    look.page.keyboard.press("Control+Enter")
    look.wait_for_text("section table thead", "number")
    assert look.text("section table tbody tr").split()[0] == "0"
    look.page.locator("#sql").fill("drop table trials")
    look.page.get_by_role("button", name="Run (Ctrl").click()
    look.wait_for_text("section .problem", "a query must only read")
    look.problems.clear()  # the browser tells of the answer 409 itself


def test_hostile_names_and_values_are_text(opened, sample_trials, tmp_path):
    url = f"sqlite:///{tmp_path / 'hostile.db'}"
    hostile_study(url, sample_trials)
    with dashboard_tab(opened, url) as look:
        for name, path in PATHS.items():
            wanted = path.replace("trials=5,1,7", "trials=3,1").replace("name=docstrings", f"name={quote(HOSTILE)}")
            if name == "query":
                wanted = "query/?sql=select+name%2C+metric+from+studies"
            look.open(wanted)
            wait_for_views(look)
            if name != "discover":
                look.settle()
            if name not in ("query", "discover", "confirmations"):
                look.wait_for_text("body", "DROP TABLE")
            body = look.text("body")
            assert "\x1b" not in body
            assert "\u202e" not in body.replace("\ufffd", "")
            assert "{{7*7}}" in body or "49" not in body
            assert look.page.evaluate("() => window.pwned") is None
            assert look.count("#page img") == 0
        look.problems[:] = [one for one in look.problems if "404" not in one]
    with Ledger.open(url, read_only=True) as ledger:
        assert [study.name for study in ledger.studies()] == [HOSTILE.replace("\x00", "")]


class Program:
    """A launch in a process of its own."""

    def __init__(self, url: str, folder: Path, trials: int, step_seconds: float) -> None:
        """Start a study without training, with slow steps."""
        self.url = url
        script = str(ROOT / "tests" / "support" / "trivial_launch.py")
        options = [url, str(folder), "inline", str(trials), str(step_seconds), "sampler=random"]
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
        self.process = subprocess.Popen(
            [sys.executable, script, *options], env=environment, cwd=folder, stdout=subprocess.DEVNULL
        )

    def newest(self) -> tuple[int, int, float] | None:
        """Trial, step and score of a running trial's newest reading."""
        with Ledger.open(self.url, read_only=True) as ledger:
            for trial in ledger.trials(1, states=[TrialState.RUNNING]):
                if trial.last_score is not None:
                    return trial.number, trial.steps, trial.last_score
        return None

    def wait_for(self, what: Callable[[], Any]) -> Any:
        end = time.monotonic() + 3 * SECONDS
        while time.monotonic() < end:
            assert self.process.poll() in (None, 0), "the launch failed"
            with suppress(StudiesError):  # the database is only being made
                if (found := what()) is not None:
                    return found
            time.sleep(0.05)
        raise AssertionError("the launch did not get so far")


@on_one_storage
def test_a_page_follows_a_study_that_runs(opened, storage_url, tmp_path):
    """Test a page during a slow launch, and its continuation by a fast one."""
    slow = Program(storage_url, tmp_path, 24, 0.5)
    quick = None
    try:
        slow.wait_for(slow.newest)
        with dashboard_tab(opened, storage_url) as look:
            look.open(STUDY)
            look.wait_for_text("#standing", "live")
            for _ in range(2):
                number, step, _ = slow.wait_for(slow.newest)
                began = time.monotonic()
                look.page.wait_for_function(_HAS_STEP, arg=[number, step])
                print(f"trial {number}, step {step}: on the page after {time.monotonic() - began:.2f} s")  # noqa: T201
            assert look.count("tr[data-number]") > 0
            assert look.violations() == []  # with what only a study that runs has: trials, workers, leases
            look.page.screenshot(path=tmp_path / "running.png")
            number, *_ = slow.wait_for(slow.newest)
            for answer in ("Cancel", f"Stop trial {number}"):
                look.page.locator(f"tr[data-number='{number}'] .danger").first.click()
                look.page.locator("dialog").get_by_role("button", name=answer).click()
            look.page.wait_for_selector(f"tr[data-number='{number}'] .state-failed")
            look.wait_for_text(f"tr[data-number='{number}'] td.words", "stopped by a user at step")
            look.page.get_by_role("button", name="Stop the study").click()
            look.page.locator("dialog").get_by_role("button", name="Stop the study").click()
            assert slow.process.wait(2 * SECONDS) == 0
            quick = Program(storage_url, tmp_path, 24, 0.0)
            assert quick.process.wait(2 * SECONDS) == 0
            look.wait_for_text(".tile b", "24 / 24")
            look.wait_for_text("section .more", "none")
            for name, path in PATHS.items():
                if name == "query" and storage_url.startswith("postgresql"):
                    continue  # a superuser's queries are refused
                look.open(path)
                assert look.count("#page > *") > 0, name
                assert look.count(".problem") == 0, name
    finally:
        for program in (slow, quick):
            if program is not None:
                program.process.kill()
                program.process.wait()


_HAS_STEP = """([number, step]) => [...document.querySelectorAll(`tr[data-number='${number}']`)].some((row) => {
    const place = [...row.closest("table").querySelectorAll("th")].findIndex((one) => one.innerText.startsWith("Step"));
    return place < 0 || Number(row.cells[place].textContent.split("/")[0]) >= step;
})"""
"""Whether the page has a reading of a trial that runs, or shows that it has ended."""


def test_an_export_works_on_any_web_server(opened, storage, tmp_path):
    folder = tmp_path / "site"
    assert export_study(storage, "planted", folder) > 60
    handler = partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with tab(opened, f"http://127.0.0.1:{server.server_port}/") as look:
            for page in PAGES:
                if page.of_study and page.is_exported:
                    look.open("" if page.name == "live" else f"{page.name}/").settle()
                    assert look.count(".problem") == 0, page.name
                    look.wait_for_text("#standing", "exported")
            look.open("leaderboard/?state=pruned")
            look.page.wait_for_function("() => document.querySelectorAll('#board tbody tr').length === 8")
            look.page.locator("#board tbody tr a").first.click()
            look.page.wait_for_selector(".picture svg")
        server.shutdown()
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert "static/plotly/plotly.min.js" in names
    assert not any("http" in path.read_text() for path in folder.rglob("*.html"))
    assert json.loads((folder / "api" / "trials" / "3.json").read_text())["number"] == 3


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Print no log."""
