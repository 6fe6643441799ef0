"""Rankings by the expected score of a repeated training, on ledgers with planted scores."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
from support.planted_ledger import PUBLISHED, Planted

from studies.analysis import predictions
from studies.analysis.estimates import FEWEST, NO_ESTIMATES, cached_estimates, estimates_of
from studies.analysis.fronts import front_of
from studies.analysis.leaderboard import leaderboard
from studies.analysis.ranks import ranking_of
from studies.analysis.summaries import study_summaries
from studies.analysis.verdict import verdict
from studies.records import TrialState
from studies.score_evidence import Estimate
from studies.study import Study

LUCKY = 34
"""The worst of all in truth."""


@pytest.fixture
def plant(tmp_path: Path) -> Iterator[Callable[..., Planted]]:
    made: list[Planted] = []

    def planted(trials: int, **options: object) -> Planted:
        made.append(Planted(f"sqlite:///{tmp_path / f'{len(made)}.db'}", trials, **options))
        return made[-1]

    yield planted
    for one in made:
        one.ledger.close()


def test_an_interval_of_95_percent_is_1_96_deviations_to_either_side():
    estimate = Estimate(mean=0.5, deviation=0.1)
    assert (estimate.low, estimate.high) == pytest.approx((0.304, 0.696), abs=1e-4)


def test_the_luckiest_score_is_not_the_best_trial(plant):
    planted = plant(60, noise=0.02, noise_of_trials={LUCKY: 0.16})
    board = leaderboard(planted.ledger, "planted")
    by_score = max(board.rows, key=lambda row: row.score or 0.0)
    assert by_score.number == LUCKY
    best = board.rows[0]
    assert best.number != LUCKY
    assert planted.truth(best.number) > planted.truth(LUCKY) + 0.05
    lucky = next(row for row in board.rows if row.number == LUCKY)
    assert lucky.estimate < (lucky.score or 0.0) - 0.05
    # everyone who speaks of the best means this one
    (summary,) = study_summaries(planted.ledger)
    assert summary.best.number == best.number


def test_estimates_beat_scores_and_intervals_cover_the_truth(plant):
    planted = plant(60, noise=0.02)
    rows = leaderboard(planted.ledger, "planted").rows
    truth = np.array([planted.truth(row.number) for row in rows])
    estimates, highs = (np.array([getattr(row, name) for row in rows]) for name in ("estimate", "estimate_high"))
    scores = np.array([row.score for row in rows])
    assert np.sqrt(np.mean((estimates - truth) ** 2)) < np.sqrt(np.mean((scores - truth) ** 2))
    held = np.mean(np.abs(estimates - truth) <= highs - estimates)
    # of 60 intervals of 95% at least 50 hold the truth, but for one time in a thousand
    assert held >= 50 / 60


def test_replicates_sharpen_the_estimate_of_their_original_and_are_no_rows(plant):
    planted = plant(60, noise=0.02, noise_of_trials={LUCKY: 0.16})
    before = {row.number: row for row in leaderboard(planted.ledger, "planted").rows}
    again = [planted.truth(LUCKY) + score for score in (-0.01, 0.0, 0.02)]
    for score in again:
        planted.replicate(LUCKY, score)
    after = {row.number: row for row in leaderboard(planted.ledger, "planted").rows}
    assert set(after) == set(before)
    assert [before[LUCKY].seeds, after[LUCKY].seeds, after[0].seeds] == [1, 4, 1]
    errors = [abs((board[LUCKY].estimate or 0.0) - planted.truth(LUCKY)) for board in (before, after)]
    assert errors[1] < errors[0]
    reach = [(board[LUCKY].estimate_high or 0.0) - (board[LUCKY].estimate or 0.0) for board in (before, after)]
    assert reach[1] < reach[0]
    assert after[LUCKY].score == pytest.approx(fmean([before[LUCKY].score or 0.0, *again]))
    assert after[0].score == before[0].score


def test_the_lead_is_the_difference_of_the_two_best_estimates(plant):
    planted = plant(40, noise=0.01)
    ranking = ranking_of(planted.ledger, planted.study)
    lead, of = leaderboard(planted.ledger, "planted").lead, ranking.estimates.of
    methods = {trial.number: trial.method for trial in ranking.trials}
    discovered = next(number for number, method in methods.items() if method is None)
    published = next(number for number, method in methods.items() if method is not None)
    assert (lead.discovered, lead.published) == (discovered, published)
    assert lead.difference.mean == pytest.approx(of[discovered].mean - of[published].mean, rel=1e-9)
    # what both have in common, such as the mean of all scores, is no doubt about the difference
    deviation = math.hypot(of[discovered].deviation, of[published].deviation)
    assert 0 < lead.difference.deviation < deviation


def far_below(plant: Callable[..., Planted]) -> tuple[Planted, dict[int, float]]:
    """Plant a study with task head alone and prefix tuning far below the rest; return it with their true scores."""
    options = {"noise": 0.01, "published": (*PUBLISHED, "head_only", "prefix_tuning")}
    truth, low = plant(40, **options), {2: 0.30, 3: 0.12}
    planted = plant(40, **options, noise_of_trials={number: -below for number, below in low.items()})
    return planted, {number: truth.truth(number) - below for number, below in low.items()}


def test_estimates_of_low_outliers_and_differences_are_unbiased(plant):
    planted, low = far_below(plant)
    ranking = ranking_of(planted.ledger, planted.study)
    scores = {trial.number: trial.score for trial in ranking.trials}
    for number, true in low.items():
        estimate = ranking.estimates.of[number]
        assert scores[number] == pytest.approx(true)
        assert estimate.low < true < estimate.high
        assert 0 < estimate.deviation < 0.03
    over = leaderboard(planted.ledger, "planted").over_head
    truly = planted.truth(over.discovered) - low[over.published]
    assert over.difference.low < truly < over.difference.high
    assert over.difference.deviation < 0.03


@pytest.mark.slow
def test_recommended_trial_is_hardly_overestimated(plant):
    optimism = []
    for seed in range(4):
        planted = plant(50, noise=0.022, seed=seed)
        ranking = ranking_of(planted.ledger, planted.study)
        best = ranking.best.number
        optimism.append(ranking.estimates.of[best].mean - planted.truth(best))
    # below a point, where the best of 50 scores with 2.2 points of noise is more than three above its truth
    assert np.mean(optimism) < 0.01


def test_verdict_covers_studies_without_a_complete_discovery(plant):
    planted = plant(20)
    ranking = ranking_of(planted.ledger, planted.study)
    end = {"state": TrialState.PRUNED, "score": None, "reason": "cut"}
    cut = [replace(trial, **end) if trial.method is None else trial for trial in ranking.trials]
    none_left = replace(ranking, trials=tuple(cut), estimates=NO_ESTIMATES)
    found = sum(trial.method is None for trial in cut)
    ended = f"0 of {found} discoveries ran to the end; {found} were pruned."
    text = verdict(none_left, planted.study)
    assert "scored highest" in text
    assert ended in text
    assert verdict(replace(none_left, trials=tuple(cut[-1:])), planted.study) == ""


def test_few_trials_have_scores_without_estimates(plant):
    planted = plant(FEWEST - 1, noise_of_trials={5: 0.2})
    board = leaderboard(planted.ledger, "planted")
    assert board.rows[0].number == 5
    assert {row.estimate for row in board.rows} == {None}
    assert board.lead is None
    assert board.verdict.startswith(f"Trial 5 scored highest; {FEWEST - 1} trials cannot tell which is best: estimates")


def test_a_study_that_has_got_no_further_is_estimated_once(plant, monkeypatch):
    calls = []
    model = predictions.predictions_of
    monkeypatch.setattr(predictions, "predictions_of", lambda *given: calls.append(1) or model(*given))
    planted = plant(20)
    boards = [leaderboard(planted.ledger, "planted") for _ in range(2)]
    assert (len(calls), boards[0]) == (1, boards[1])
    planted.replicate(3, 0.4)
    leaderboard(planted.ledger, "planted")
    assert len(calls) == 2
    study, *_ = planted.ledger.studies()
    first, *others = planted.ledger.trials(study.id)
    estimates_of(planted.ledger, study, [replace(first, last_score=0.1), *others])  # as after a backup that went on
    assert len(calls) == 3


def test_seed_deviation_follows_the_noise_and_is_cached(plant):
    by_noise = {}
    for noise in (0.0, 0.06):
        planted = plant(40, noise=noise)
        by_noise[noise] = ranking_of(planted.ledger, planted.study).estimates.seed_deviation
        cached_estimates.cache_clear()
        assert ranking_of(planted.ledger, planted.study).estimates.seed_deviation == by_noise[noise]
        assert f"scores deviate by {by_noise[noise]:.4f}" in leaderboard(planted.ledger, "planted").verdict
    assert by_noise[0.0] < 0.03 < by_noise[0.06] < 0.1


def test_replicated_trial_is_ranked_and_scored_by_its_mean(plant):
    planted = plant(7, noise_of_trials={5: 0.2})
    first, second, *_ = leaderboard(planted.ledger, "planted").rows
    lucky, mean = first.number, (second.score or 0.0) - 0.05
    planted.replicate(lucky, 2 * mean - (first.score or 0.0))
    board = leaderboard(planted.ledger, "planted")
    assert (board.rows[0].number, board.lead) == (second.number, None)
    row = next(row for row in board.rows if row.number == lucky)
    assert (row.score, row.seeds) == (pytest.approx(mean), 2)
    ahead = (board.rows[0].score or 0.0) - max(row.score or 0.0 for row in board.rows if not row.is_discovered)
    assert f"{ahead:+.4f}" in board.verdict
    study = Study.open("planted", planted.ledger.url)
    assert (study.best.number, study[lucky].scores[0]) == (second.number, first.score)
    assert study[lucky].score == pytest.approx(mean)
    rows = study.query("SELECT trial, score, first_score FROM leaderboard ORDER BY place")
    assert rows["trial"].tolist() == [row.number for row in board.rows]
    assert rows["score"].tolist() == pytest.approx([row.score for row in board.rows])
    assert rows[rows["trial"] == lucky]["first_score"].tolist() == [first.score]
    front = study.query("SELECT trial FROM fronts WHERE objective = 'parameters' ORDER BY size")["trial"].tolist()
    assert front == [point.number for point in front_of(planted.ledger, planted.study).points]


def test_verdict_of_replicated_trials_names_their_means(plant):
    planted = plant(7, noise_of_trials={5: 0.2})
    planted.replicate(5, 0.5)
    assert "going by the means of 2 and 1 scores" in leaderboard(planted.ledger, "planted").verdict
