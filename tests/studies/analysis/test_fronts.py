"""Fronts of ledgers whose truth is planted."""

import numpy as np
import pytest
from support.planted_ledger import Planted

from studies.analysis.fronts import front_of, posterior_draws
from studies.analysis.ranks import ranking_of
from studies.pareto import front


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory):
    made = Planted(f"sqlite:///{tmp_path_factory.mktemp('fronts') / 'one.db'}", 40, noise=0.02)
    yield made
    made.ledger.close()


def test_the_front_is_of_the_estimates_and_not_of_the_scores(planted):
    ranking = ranking_of(planted.ledger, planted.study)
    trials = ranking.trials
    sizes = [trial.stored_parameters for trial in trials]
    means = [ranking.estimates.of[trial.number].mean for trial in trials]
    found = front_of(planted.ledger, planted.ledger.study("planted"))
    assert [point.number for point in found.points] == [trials[place].number for place in front(sizes, means)]
    assert found.points[-1].number == ranking.trials[0].number
    assert [point.estimate for point in found.points] == sorted(point.estimate for point in found.points)
    assert all(point.estimate_low < point.estimate < point.estimate_high for point in found.points)


def test_hypervolume_interval_comes_from_joint_scores(planted):
    ranking = ranking_of(planted.ledger, planted.study)
    found = front_of(planted.ledger, planted.study, ranking)
    ends = [*(point.share for point in found.points[1:]), 2.0]
    by_means = sum(
        np.log2(max(end, 0.125) / max(point.share, 0.125)) * (point.estimate - found.reference)
        for point, end in zip(found.points, ends, strict=True)
    )
    # the best of uncertain scores is more than the best of their means, by less than their deviations
    assert by_means / 4 <= found.hypervolume.mean <= by_means / 4 + 2 * found.hypervolume.deviation
    assert 0 < found.hypervolume.deviation < max(estimate.deviation for estimate in ranking.estimates.of.values())


def test_draws_have_posterior_moments_and_are_repeatable(planted):
    estimates = ranking_of(planted.ledger, planted.study).estimates
    numbers = [0, 3, 7]
    draws = posterior_draws(estimates, numbers, planted.study, 20_000)
    means, covariance = estimates.joint(numbers)
    assert np.array_equal(draws, posterior_draws(estimates, numbers, planted.study, 20_000))
    # five standard errors of a mean and of a covariance of normal numbers
    deviations = np.sqrt(np.diag(covariance))
    assert np.all(np.abs(draws.mean(axis=0) - means) < 5 * deviations / np.sqrt(20_000))
    room = 5 * np.sqrt(2 / 20_000) * np.outer(deviations, deviations)
    assert np.all(np.abs(np.cov(draws.T) - covariance) < room)
    assert [estimates.of[number].deviation for number in numbers] == pytest.approx(deviations, rel=1e-6)


def test_a_study_with_few_trials_has_a_front_of_scores(tmp_path):
    few = Planted(f"sqlite:///{tmp_path / 'few.db'}", 5)
    found = front_of(few.ledger, few.ledger.study("planted"))
    assert [point.estimate for point in found.points] == [point.score for point in found.points]
    assert {point.estimate_low for point in found.points} == {None}
    assert found.hypervolume.deviation == 0
    few.ledger.close()
