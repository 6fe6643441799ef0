"""The figure of a confirmation."""

from dataclasses import replace

import pytest

from dashboards.figures.confirmations import confirmation_figure
from studies.confirmation.results import ConfirmationResult, ContenderResult
from studies.confirmation.statistics import mean_interval


def contender(label: str, scores: tuple[float | None, ...], *, is_published: bool) -> ContenderResult:
    return ContenderResult(
        label=label,
        description="<b>scaled</b>",
        trial=7,
        is_published=is_published,
        is_top=not is_published,
        baselines=(label,) if is_published else (),
        stored_parameters=100,
        is_within_budget=True,
        attention_learning_rate=1e-3,
        ffn_learning_rate=None,
        validation_score=None,
        scores=scores,
        failed=0,
    )


RESULT = ConfirmationResult(
    name="docstrings/confirm",
    study="docstrings",
    metric="accuracy",
    budget_parameters=100,
    seeds=(11, 12, 13),
    trials=9,
    ended=6,
    contenders=(
        contender("trial 7", (0.5, 0.6, 0.7), is_published=False),
        contender("not begun", (None, None, None), is_published=True),
        contender("lora_qv", (None, 0.4, None), is_published=True),
    ),
    comparisons=(),
    left_out=(),
    newer_winner=None,
)


def test_means_have_their_intervals_and_seeds_where_there_are_scores() -> None:
    figure = confirmation_figure(RESULT)
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


def test_what_it_is_called_is_text_and_its_name_is_that_of_a_file() -> None:
    figure = confirmation_figure(RESULT)
    assert figure is not None
    labels = [note["text"] for note in figure.layout["annotations"]]
    assert labels == ["trial 7: &lt;b&gt;scaled&lt;/b&gt;", "lora_qv: &lt;b&gt;scaled&lt;/b&gt;"]
    assert "<" not in figure.data[1]["text"][0]
    assert figure.name == "confirmation-docstrings-confirm"


def test_without_a_score_there_is_no_figure() -> None:
    assert confirmation_figure(replace(RESULT, contenders=RESULT.contenders[1:2])) is None
