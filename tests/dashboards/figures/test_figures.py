"""Figures: what every one of them has, and that nothing of a study is markup in them."""

import json
from typing import Any

import pytest
from support.factored_search import drawn, whole_space

from dashboards.colours import FORM_COLOURS
from dashboards.figures.boards import curves_figure
from dashboards.figures.figure import TEMPLATES, Figure, axis, plain, rows_layout, wrapped
from dashboards.figures.views import figures_of
from studies.queries.discover import Answer, Finding, Knowledge, discovered
from studies.queries.discover.pruned import curves
from studies.queries.discover.sizes import Size

SVG = {"scatter", "bar", "heatmap"}


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    space = whole_space()
    return Knowledge(space, drawn(space, 30), metric="accuracy")


@pytest.fixture(scope="module")
def figures(knowledge: Knowledge) -> list[Figure]:
    found = [figure for answer in discovered(knowledge) for figure in figures_of(knowledge, answer)]
    return [*found, curves_figure(curves(knowledge), "accuracy")]


def test_every_answer_with_rows_has_a_figure(knowledge: Knowledge) -> None:
    for answer in discovered(knowledge):
        assert bool(figures_of(knowledge, answer)) == bool(answer.rows)


def test_every_figure_is_drawn_as_svg_with_a_title_words_and_labelled_axes(figures: list[Figure]) -> None:
    assert len({figure.name for figure in figures}) == len(figures)
    for figure in figures:
        assert {trace["type"] for trace in figure.data} <= SVG, figure.name
        assert figure.title, figure.name
        assert figure.says, figure.name
        assert figure.layout["xaxis"]["title"]["text"], figure.name
        down = figure.layout["yaxis"]
        assert down.get("visible") is False or down["title"]["text"], figure.name
        json.dumps(figure.themed("dark"), allow_nan=False)


def test_the_waterfall_leads_from_the_method_to_the_winner(knowledge: Knowledge, figures: list[Figure]) -> None:
    (figure,) = [one for one in figures if one.name == "winner-path"]
    bars, ends = figure.data
    reached = [base + gain for base, gain in zip(bars["base"], bars["x"], strict=True)]
    assert bars["base"][1:] == pytest.approx(reached[:-1])
    assert ends["x"] == pytest.approx([bars["base"][0], reached[-1]])


def test_the_front_is_drawn_with_its_band(figures: list[Figure]) -> None:
    (figure,) = [one for one in figures if one.name == "sizes"]
    low, high, best, *trials = figure.data
    assert high["fill"] == "tonexty"
    assert all(under <= line <= over for under, line, over in zip(low["y"], best["y"], high["y"], strict=True))
    assert {trace["name"] for trace in trials} <= {"discovered", "published"}


def test_curves_of_pruned_trials_have_errors_and_forecasts(knowledge: Knowledge, figures: list[Figure]) -> None:
    (figure,) = [one for one in figures if one.name == "pruning"]
    by_name: dict[str, Any] = {trace["name"]: trace for trace in figure.data}
    pruned = [one for one in knowledge.history if one.state == "pruned"]
    told = by_name["pruned"]
    assert told["error_y"]["visible"]
    assert [score for score in told["y"] if score is not None] == [one.readings[0].score for one in pruned]
    assert len(by_name["forecast of pruned trials, 90% interval"]["y"]) == min(12, len(pruned))


@pytest.mark.parametrize(
    "hostile", ["<b>bold</b>", "<a href='https://example.org'>x</a>", "\x1b[31mred", "a\u202eb", "&lt;"]
)
def test_what_a_study_is_called_is_text_in_a_figure(hostile: str) -> None:
    shown = plain(hostile)
    assert "<" not in shown
    assert all(one.isprintable() for one in shown)
    assert axis(hostile)["title"]["text"] == shown
    note = rows_layout([hostile], "score")["annotations"][0]["text"]
    assert "<" not in note.replace("<br>", "")


def test_hostile_methods_are_text_in_the_traces(knowledge: Knowledge) -> None:
    row = Size(
        trial=1, method="<i>m</i>", parameters=10, of_budget=0.5, score=0.5, is_front=True, within=0.5,
        value=0.5, low=0.4, high=0.6, n=1, is_resolved=False, sentence="<script>alert(1)</script>",
    )  # fmt: skip
    answer = Answer(view="V4", question="q", rows=(row,), sentences=(), note="", kind=Size)
    (figure,) = figures_of(knowledge, answer)
    assert "<script>" not in json.dumps(figure.themed())


def test_long_labels_take_two_lines_and_more_room() -> None:
    lines = wrapped("word " * 40)
    assert len(lines) == 2
    assert lines[-1].endswith("…")
    few, many = rows_layout(["a"] * 3, "score"), rows_layout(["word " * 40] * 3, "score")
    assert many["height"] > few["height"]


def test_themes_set_the_same_things(knowledge: Knowledge) -> None:
    light, dark = (TEMPLATES[name]["layout"] for name in ("light", "dark"))
    assert light.keys() == dark.keys()
    assert light["font"]["color"] != dark["font"]["color"]


def test_an_answer_without_rows_has_no_figure(knowledge: Knowledge) -> None:
    for view in ("V1", "V2", "V4", "V5"):
        empty = Answer(view=view, question="q", rows=(), sentences=("nothing",), note="", kind=Finding)
        assert figures_of(knowledge, empty) == ()


def test_shares_of_variance_have_their_first_order_shares_beside_them(figures: list[Figure]) -> None:
    (figure,) = [one for one in figures if one.name == "matters"]
    total, first, *_ = figure.data
    assert (total["name"], first["name"]) == ("total, 90% interval", "first-order")
    assert next(note["text"] for note in figure.layout["annotations"]).startswith(("attention", "FFN"))
    gaps = zip(total["error_x"]["arrayminus"], total["error_x"]["array"], strict=True)
    assert all(low >= 0 and high >= 0 for low, high in gaps)


def test_cells_without_a_trial_say_so(knowledge: Knowledge, figures: list[Figure]) -> None:
    maps = [one for one in figures if one.name.startswith("kinds-")]
    assert len(maps) == 3
    texts = [text for figure in maps for row in figure.data[0]["text"] for text in row if text]
    (answer,) = discovered(knowledge, ["V3"])
    assert len(texts) == len(answer.rows)
    assert sum("–" in text for text in texts) == sum(bool(row["is_empty"]) for row in answer.table().to_dicts())


def test_curves_of_shares_and_rates_have_a_band_and_one_best_point(figures: list[Figure]) -> None:
    for figure in figures:
        if figure.name.startswith(("budget", "rates-")):
            lines = [trace for trace in figure.data if trace.get("marker")]
            assert lines
            assert all(trace["marker"]["symbol"].count("star") == 1 for trace in lines), figure.name
            assert any(trace.get("fill") == "tonexty" for trace in figure.data), figure.name


def test_rules_say_what_instead_of_what(knowledge: Knowledge, figures: list[Figure]) -> None:
    (figure,) = [one for one in figures if one.name == "rules"]
    assert all(" instead of " in note["text"].replace("<br>", " ") for note in figure.layout["annotations"])


def test_a_form_has_the_colour_that_it_has_on_every_page(figures: list[Figure]) -> None:
    told = [trace for one in figures if one.name.startswith("rates-") for trace in one.data if trace.get("marker")]
    assert len({trace["name"] for trace in told}) >= 3
    for trace in told:
        assert trace["line"]["color"] == FORM_COLOURS[trace["name"]]
