"""Tables in the terminal."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from support.planted_ledger import Planted
from support.screens import screen
from support.shown_board import shown_board

from dashboards.terminal.configurations import method_views, methods_table
from dashboards.terminal.frames import rows_table
from dashboards.terminal.tables import leaderboard_table, studies_table, trial_renderable
from deltaspace import shape_of
from studies.analysis.leaderboard import leaderboard
from studies.analysis.summaries import study_summaries
from studies.ledger.ledger import Ledger
from studies.records import TrialState
from studies.study import Study

ROBERTA = Path(__file__).parents[2] / "data" / "backbones" / "roberta_base"


@pytest.fixture
def ledger(sample_storage: str):
    with Ledger.open(sample_storage, read_only=True) as ledger:
        yield ledger


@pytest.mark.parametrize("width", [80, 120, 180])
def test_narrow_table_cuts_no_method_name_or_dimension(width):
    views = method_views(shape_of(str(ROBERTA)))
    text = screen(methods_table(views), width)
    assert "…" not in text
    for view in views:
        assert any(line.startswith(view.method.name + " ") for line in text.splitlines())
    assert "lse_convex" in text


def test_the_list_of_studies(ledger):
    text = screen(studies_table(study_summaries(ledger)))
    assert "sample" in text
    assert "600,000" in text
    assert "0.8500" in text
    assert screen(studies_table(())).strip() == "no studies yet."
    (one,) = study_summaries(ledger)
    confirmation = replace(one, name="sample-confirm", confirms="sample")
    narrow = screen(studies_table((one, confirmation)), 80).splitlines()
    assert narrow[0].split() == ["study", "trials", "best", "trial"]
    assert any("see 'show sample-confirm'" in line for line in narrow)
    assert all(word in " ".join(narrow).split() for word in ("sample-confirm", "complete,", "pruned,", "failed"))


def test_pruned_trial_is_shown_with_its_reason(sample_storage):
    text = screen(trial_renderable(Study.open("sample", sample_storage).trial(1)))
    assert "reason: rung 0 (25 steps): 0.55 below the cut 0.6" in text
    assert "lowrank" in text
    assert "599,040 parameters stored (99.8% of the budget" in text


def test_square_brackets_of_a_query_are_not_taken_for_markup():
    assert "[bold]x[/]" in screen(rows_table(("[a]",), (("[bold]x[/]",), (None,))))


def test_long_text_is_cut_in_a_table_with_its_length():
    text = screen(rows_table(("a", "b"), (("x" * 50_000, "y" * 10_000),)))
    assert (text.count("x"), text.count("y")) == (10_000, 10_000)
    assert "50,000" in text


def test_a_loss_that_stands_in_for_a_metric_is_called_a_loss(ledger):
    board = leaderboard(ledger, "sample")
    assert "pruned 0.5500 @ 25" in screen(leaderboard_table(board))
    rows = tuple(replace(row, scored_by="loss", score=-(row.score or 0.0)) for row in board.rows)
    text = screen(leaderboard_table(replace(board, rows=rows)))
    assert "pruned loss 0.5500 @ 25" in text
    assert "-0.8500" in text


def test_collapsed_trial_is_marked(ledger):
    board = leaderboard(ledger, "sample")
    reason = "rung 0 (25 steps): collapsed: its training loss has risen from 1.7 to 1.9"
    rows = tuple(replace(row, reason=reason) if row.state is TrialState.PRUNED else row for row in board.rows)
    assert "collapsed 0.5500 @ 25" in screen(leaderboard_table(replace(board, rows=rows)))


def test_board_has_estimates_scores_and_the_verdict(tmp_path):
    planted = Planted(f"sqlite:///{tmp_path / 'planted.db'}", 40, noise=0.01)
    planted.replicate(2, planted.truth(2))
    with planted.ledger as ledger:
        board = leaderboard(ledger, "planted")
        study = Study.open("planted", ledger.url)
        original, again = study.trial(2), study.trial(40)
    row = next(row for row in board.rows if row.number == 2)
    shown = screen(leaderboard_table(board), width=180)
    assert row.estimate is not None
    assert row.estimate_high is not None
    assert re.search(rf"{row.score:.4f} ± 0\.0\d{{3}} ×2", shown)
    assert f"{row.estimate:.4f} ± {row.estimate_high - row.estimate:.4f}" in shown
    assert " ".join(board.verdict.split()) in " ".join(shown.split())
    page = screen(trial_renderable(original))
    assert f"accuracy {row.score:.4f}, the mean of 2 trainings" in page
    assert f"with its own seed {original.record.score:.4f}, with others {planted.truth(2):.4f} (trial 40)" in page
    assert f"expected to score {row.estimate:.4f} ± " in screen(trial_renderable(original))
    assert "replicate of trial 2" in screen(trial_renderable(again))


def test_legend_explains_low_rank_maps_if_there_are_any():
    board = shown_board()
    words = "low-rank map: LoRA that reads further upstream"
    assert words not in screen(leaderboard_table(board))
    rows = (replace(board.rows[0], sentence="parallel low-rank map r=4–5, attention output"), *board.rows[1:])
    assert words in screen(leaderboard_table(replace(board, rows=rows)))


def test_a_legend_explains_a_scale_that_stands_in_the_table():
    board = shown_board()
    assert "×2 in what it is: the edit's output times a fixed scale of 2." in screen(leaderboard_table(board))
    rows = tuple(replace(row, sentence="LoRA r=1, ×0.5 + bias, FFN up") for row in board.rows)
    assert "×0.5 in what it is: the edit's output times a fixed scale of 0.5." in screen(
        leaderboard_table(replace(board, rows=rows))
    )
    rows = tuple(replace(row, sentence="bias, FFN up") for row in board.rows)
    assert "fixed scale" not in screen(leaderboard_table(replace(board, rows=rows)))
