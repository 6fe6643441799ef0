"""The figure of a leaderboard."""

from dataclasses import replace

import pytest
from support.shown_board import shown_board

from dashboards.colours import DISCOVERED, PUBLISHED
from dashboards.figures.boards import leaderboard_figure
from studies.records import TrialState


def test_figure_shows_estimates_intervals_and_scores_of_complete_trials():
    board = shown_board()
    complete = [row for row in board.rows if row.state is TrialState.COMPLETE]
    assert 2 < len(complete) < len(board.rows)
    scores, estimates = leaderboard_figure(board).data
    assert scores["x"] == [row.score for row in complete]
    assert estimates["x"] == [row.estimate for row in complete]
    assert estimates["y"] == scores["y"] == [-place for place in range(len(complete))]
    bars = estimates["error_x"]
    assert bars["array"] == bars["arrayminus"] == pytest.approx([0.0176] * len(complete))
    assert estimates["customdata"] == [row.number for row in complete]
    published = [row.method != "discovered" for row in complete]
    assert len(set(published)) == 2
    assert estimates["marker"]["symbol"] == ["diamond" if one else "circle" for one in published]
    assert estimates["marker"]["color"] == [PUBLISHED if one else DISCOVERED for one in published]


def test_a_trial_without_an_estimate_stands_at_its_score_without_a_bar():
    board = shown_board()
    first = replace(board.rows[0], estimate=None, estimate_low=None, estimate_high=None)
    _, estimates = leaderboard_figure(replace(board, rows=(first, *board.rows[1:]))).data
    assert estimates["x"][0] == first.score
    assert (estimates["error_x"]["array"][0], estimates["error_x"]["arrayminus"][0]) == (0, 0)
    assert estimates["error_x"]["array"][1] == pytest.approx(0.0176)
