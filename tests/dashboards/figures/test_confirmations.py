"""The figures of a confirmation and of an ablation."""

from dataclasses import replace

import pytest
from support.shown_confirmation import confirmation, contender

from dashboards.confirmations import confirmation_card
from dashboards.figures.confirmations import confirmation_figure
from dashboards.figures.figure import Figure
from studies.confirmation.ablation_path import path_of
from studies.confirmation.results import ConfirmationResult
from studies.confirmation.statistics import mean_interval
from studies.confirmation.verdicts import compare

SEEDS = 8


def figure_of(result: ConfirmationResult) -> Figure | None:
    return confirmation_figure(confirmation_card(result))


SCALED = {"description": "<b>scaled</b>"}
RESULT = confirmation(
    contender("trial 7", (0.5, 0.6, 0.7), is_published=False, **SCALED),
    contender("not begun", (None, None, None), is_published=True, **SCALED),
    contender("lora_qv", (None, 0.4, None), is_published=True, **SCALED),
    name="docstrings/confirm",
    seeds=(11, 12, 13),
    ended=6,
)


def test_means_have_their_intervals_and_seeds_where_there_are_scores():
    figure = figure_of(RESULT)
    assert figure is not None
    seeds, means = figure.data
    assert means["x"] == pytest.approx([0.6, 0.4])
    ends = mean_interval([0.5, 0.6, 0.7])
    assert ends is not None
    assert means["error_x"]["array"] == pytest.approx([ends[1] - 0.6, 0])
    assert means["error_x"]["arrayminus"] == pytest.approx([0.6 - ends[0], 0])
    assert means["marker"]["symbol"] == ["circle", "diamond"]
    assert list(zip(seeds["x"], seeds["y"], strict=True)) == [(0.5, 0), (0.6, 0), (0.7, 0), (0.4, -1)]
    assert [text.split(": ")[0] for text in seeds["text"]][-1] == "lora_qv, seed 12"
    assert "test split" in figure.layout["xaxis"]["title"]["text"]


def test_name_of_a_confirmation_is_text_and_its_file_name_is_safe():
    figure = figure_of(RESULT)
    assert figure is not None
    labels = [note["text"] for note in figure.layout["annotations"]]
    assert labels == ["trial 7: &lt;b&gt;scaled&lt;/b&gt;", "lora_qv: &lt;b&gt;scaled&lt;/b&gt;"]
    assert "<" not in figure.data[1]["text"][0]
    assert figure.name == "confirmation-docstrings-confirm"


def test_without_a_score_there_is_no_figure():
    assert figure_of(replace(RESULT, contenders=RESULT.contenders[1:2])) is None


def path(*, ended: int) -> ConfirmationResult:
    noise = [0.1 * seed for seed in range(SEEDS)]
    better = tuple(one + 0.02 for one in noise)
    first = contender("mam_adapter", tuple(noise), is_published=True, change="")
    middle = contender("step 1", better, is_published=False, change="FFN <b>gate</b>")
    last = contender("trial 3", better, is_published=False, change="attention form")
    comparisons = compare(last.scores, {"mam_adapter": first.scores}) if ended == 3 * SEEDS else ()
    seeds, contenders = tuple(range(SEEDS)), (last, middle, first)
    return replace(RESULT, seeds=seeds, trials=3 * SEEDS, ended=ended, contenders=contenders, comparisons=comparisons)


def test_every_step_of_an_ablation_and_the_whole_have_a_row():
    result = path(ended=3 * SEEDS)
    figure, described = figure_of(result), path_of(result)
    assert figure is not None
    (trace,) = figure.data
    assert trace["x"] == pytest.approx([0.02, 0.0, 0.02])
    assert described.total is not None
    ends = [(one.low, one.high) for one in (*(step.comparison for step in described.steps[1:]), described.total) if one]
    bars = trace["error_x"]
    lows, highs = zip(*ends, strict=True)
    assert [value - less for value, less in zip(trace["x"], bars["arrayminus"], strict=True)] == pytest.approx(lows)
    assert [value + more for value, more in zip(trace["x"], bars["array"], strict=True)] == pytest.approx(highs)
    labels = [note["text"] for note in figure.layout["annotations"]]
    assert labels == ["1. FFN &lt;b&gt;gate&lt;/b&gt;", "2. attention form", "the whole path"]


def test_until_all_trials_of_an_ablation_have_ended_there_is_no_figure():
    assert figure_of(path(ended=5)) is None
