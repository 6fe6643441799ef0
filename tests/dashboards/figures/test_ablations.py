"""The figure of an ablation."""

import pytest

from dashboards.figures.confirmations import ablation_figure
from studies.confirmation.ablation_path import path_of
from studies.confirmation.results import ConfirmationResult, ContenderResult
from studies.confirmation.verdicts import compare

SEEDS = 8


def contender(label: str, scores: list[float], change: str | None) -> ContenderResult:
    return ContenderResult(
        label=label,
        description=label,
        trial=None,
        is_published=change is None,
        is_top=False,
        baselines=() if change else (label,),
        stored_parameters=100,
        is_within_budget=True,
        attention_learning_rate=1e-3,
        ffn_learning_rate=None,
        validation_score=None,
        scores=tuple(scores),
        failed=0,
        change=change,
    )


def result(*, ended: int) -> ConfirmationResult:
    luck = [0.1 * seed for seed in range(SEEDS)]
    first = contender("mam_adapter", luck, None)
    middle = contender("step 1", [one + 0.02 for one in luck], "FFN <b>gate</b>")
    last = contender("trial 3", [one + 0.02 for one in luck], "attention form")
    contenders = (last, middle, first)
    return ConfirmationResult(
        name="docstrings-ablate",
        study="docstrings",
        metric="accuracy",
        budget_parameters=100,
        seeds=tuple(range(SEEDS)),
        trials=3 * SEEDS,
        ended=ended,
        contenders=contenders,
        comparisons=compare(last.scores, {"mam_adapter": first.scores}) if ended == 3 * SEEDS else (),
        left_out=(),
        newer_winner=None,
    )


def test_every_step_and_the_whole_have_a_row() -> None:
    figure = ablation_figure(path_of(result(ended=3 * SEEDS)))
    assert figure is not None
    (trace,) = figure.data
    assert trace["x"] == pytest.approx([0.02, 0.0, 0.02])
    told = path_of(result(ended=3 * SEEDS))
    assert told.total is not None
    compared = [*(step.comparison for step in told.steps[1:]), told.total]
    ends = [(one.low, one.high) for one in compared if one is not None]
    bars = trace["error_x"]
    assert [value - less for value, less in zip(trace["x"], bars["arrayminus"], strict=True)] == pytest.approx(
        [low for low, _ in ends]
    )
    assert [value + more for value, more in zip(trace["x"], bars["array"], strict=True)] == pytest.approx(
        [high for _, high in ends]
    )
    labels = [note["text"] for note in figure.layout["annotations"]]
    assert labels == ["1. FFN &lt;b&gt;gate&lt;/b&gt;", "2. attention form", "the whole path"]
    assert "test split" in figure.layout["xaxis"]["title"]["text"]


def test_until_all_trials_have_ended_there_is_no_figure() -> None:
    assert ablation_figure(path_of(result(ended=5))) is None
