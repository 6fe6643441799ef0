"""Figures: what every one of them has, and that nothing of a study is markup in them."""

import json
from dataclasses import replace

import pytest
from support.factored_search import drawn, history_of, whole_space

from dashboards.colours import FORM_COLOURS
from dashboards.figures.boards import curves_figure
from dashboards.figures.cards import figures_of
from dashboards.figures.figure import Figure, axis, plain, rows_layout
from studies.analysis.card import Card
from studies.analysis.discover import StudyPosterior, discovered

SVG = {"scatter", "bar"}
READINGS = [
    {"trial": 0, "state": "complete", "fraction": 0.5, "score": 0.4},
    {"trial": 0, "state": "complete", "fraction": 1.0, "score": 0.5},
    {"trial": 2, "state": "complete", "fraction": 0.5, "score": 0.3},
    {"trial": 1, "state": "pruned", "fraction": 0.5, "score": 0.2},
]


@pytest.fixture(scope="module")
def cards() -> tuple[Card, ...]:
    space = whole_space()
    return tuple(discovered(StudyPosterior(space, history_of(drawn(space, 30)), metric="accuracy")))


@pytest.fixture(scope="module")
def figures(cards: tuple[Card, ...]) -> list[Figure]:
    found = [figure for card in cards for figure in figures_of(card)]
    return [*found, curves_figure(READINGS, "accuracy")]


def test_every_answer_with_rows_has_a_figure(cards):
    for card in cards:
        assert figures_of(card)
        assert figures_of(replace(card, data=card.data.head(0))) == ()


def test_every_figure_is_drawn_as_svg_with_a_title_words_and_labelled_axes(figures):
    assert len({figure.name for figure in figures}) == len(figures)
    for figure in figures:
        assert {trace["type"] for trace in figure.data} <= SVG, figure.name
        assert figure.title, figure.name
        assert figure.says, figure.name
        assert figure.layout["xaxis"]["title"]["text"], figure.name
        down = figure.layout["yaxis"]
        assert down.get("visible") is False or down["title"]["text"], figure.name
        json.dumps([figure.data, figure.layout], allow_nan=False)


def test_the_waterfall_leads_from_the_method_to_the_winner(figures):
    (figure,) = [one for one in figures if one.name == "winner-path"]
    bars, beginning = figure.data
    reached = [base + gain for base, gain in zip(bars["base"], bars["x"], strict=True)]
    assert bars["base"][1:] == pytest.approx(reached[:-1])
    assert beginning["x"] == pytest.approx([bars["base"][0]])


def test_sixteen_intervals_fit_a_screen():
    assert rows_layout(["form at attention"] * 16, "share")["height"] < 650


def test_forms_have_colours_and_a_missing_one_is_grey():
    channels = {form: {tone[at : at + 2] for at in (1, 3, 5)} for form, tone in FORM_COLOURS.items()}
    assert [form for form, found in channels.items() if len(found) == 1] == ["none"]


def test_trials_that_all_use_the_budget_stand_side_by_side(cards):
    (card,) = [one for one in cards if one.name == "sizes"]
    points = card.points.assign(parameters=[9_000, *(599_000 + place // 4 for place in range(len(card.points) - 1))])
    for spent, is_crowded in (
        (points, True),
        (points.assign(parameters=range(1_000, 1_000 + 500 * len(points), 500)), False),
    ):
        (figure,) = figures_of(replace(card, points=spent, data=spent.head(1)))
        shown = [place for trace in figure.data[1:] for place in trace["x"]]
        assert len({*shown}) == len(shown) == len(spent)
        assert (sorted(shown) == [*range(len(spent))]) == is_crowded
        assert (figure.layout["xaxis"].get("type") == "log") != is_crowded
        assert "599,0" in str(figure.layout["xaxis"].get("ticktext")) or not is_crowded


@pytest.mark.parametrize(
    "hostile", ["<b>bold</b>", "<a href='https://example.org'>x</a>", "\x1b[31mred", "a\u202eb", "&lt;"]
)
def test_name_of_a_study_is_text_in_a_figure(hostile):
    shown = plain(hostile)
    assert "<" not in shown
    assert all(one.isprintable() for one in shown)
    assert axis(hostile)["title"]["text"] == shown
    note = rows_layout([hostile], "score")["annotations"][0]["text"]
    assert "<" not in note.replace("<br>", "")


def test_a_form_has_the_colour_that_it_has_on_every_page(figures):
    marked = [trace for one in figures if one.name.startswith("rates-") for trace in one.data if trace.get("marker")]
    assert len({trace["name"] for trace in marked}) >= 3
    for trace in marked:
        assert trace["line"]["color"] == FORM_COLOURS[trace["name"]]


def test_hostile_methods_are_text_in_the_traces(cards):
    (card,) = [one for one in cards if one.name == "sizes"]
    hostile = replace(card, points=card.points.assign(method="<script>alert(1)</script>"))
    (figure,) = figures_of(hostile)
    assert "<script>" not in json.dumps([figure.data, figure.layout])
