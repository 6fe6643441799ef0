"""Posteriors on the scale of the scores, where one trial is far below the others."""

import math
from dataclasses import replace

import numpy as np
import pytest
from support.factored_search import history_of

from studies.surrogate.posterior import Posterior, SurrogateFitter
from studies.surrogate.score_warp import KNEE, Scale

COUNT, LOW = 30, 7


@pytest.fixture(scope="module")
def trials(history):
    return history(COUNT)


def with_score(trials, score):
    """Return the trials, of which one ends with another score."""
    last = trials[LOW].readings[-1]
    low = trials[LOW].changed(readings=(*trials[LOW].readings[:-1], replace(last, score=score)))
    return [low if one.number == LOW else one for one in trials]


def posterior_of(encoding, trials) -> Posterior:
    return SurrogateFitter(encoding.features_of).posterior(history_of(trials))


def spread_of(trials) -> tuple[float, float]:
    scores = np.array([one.readings[-1].score for one in trials])
    middle = float(np.median(scores))
    return middle, 1.4826 * float(np.median(np.abs(scores - middle)))


@pytest.fixture(scope="module")
def far(encoding, trials):
    """Return trials of which one is thirty spreads below the others, and their posterior."""
    middle, spread = spread_of(trials)
    history = with_score(trials, middle - 30 * spread)
    return history, posterior_of(encoding, history)


def test_estimate_falls_as_much_as_the_score(encoding, trials):
    middle, spread = spread_of(trials)
    (view,) = (encoding.features_of(trials[LOW]),)
    found = []
    for below in (6, 10, 30, 300, 1e5):
        (mean,), (deviation,) = posterior_of(encoding, with_score(trials, middle - below * spread)).predict([view])
        assert mean == pytest.approx(middle - below * spread, abs=max(spread, 2 * deviation))
        found.append(mean)
    assert found == sorted(found, reverse=True)


def test_how_far_below_it_is_hardly_moves_the_others(encoding, trials):
    middle, spread = spread_of(trials)
    others = [encoding.features_of(one) for one in trials if one.number != LOW]
    near, far = (
        posterior_of(encoding, with_score(trials, middle - below * spread)).predict(others)[0] for below in (10, 1e5)
    )
    assert np.abs(far - near).mean() < 0.5 * spread, "less than the noise of the others"


def test_predicted_scores_are_medians_and_their_deviations(encoding, far):
    history, posterior = far
    views = [encoding.features_of(one) for one in history]
    means, deviations = posterior.process.predict(posterior.points(views))
    medians, spreads = posterior.predict(views)
    low = means < KNEE
    assert low.sum() == 1
    scale = posterior.scale
    # what is not low is not warp, to the bit
    np.testing.assert_array_equal(medians[~low], scale.middle + scale.spread * means[~low])
    np.testing.assert_allclose(spreads[~low], scale.spread * deviations[~low], rtol=1e-12)

    def unwarped(modelled):
        return KNEE - 5 * (np.exp((KNEE - modelled) / 0.5) - 1)

    np.testing.assert_allclose(medians[low], scale.middle + scale.spread * unwarped(means[low]), rtol=1e-12)
    distance = unwarped(means[low] + deviations[low]) - unwarped(means[low] - deviations[low])
    np.testing.assert_allclose(spreads[low], scale.spread * distance / 2, rtol=1e-9)
    np.testing.assert_array_equal(posterior.means(views), medians)


def test_deviation_at_the_knee_has_both_slopes():
    class Process:
        def predict(self, _):
            return np.array([KNEE + 0.01]), np.array([0.1])

    posterior = Posterior(Process(), Scale(0.5, 0.02), np.zeros(1), lambda _: None)
    (median,), (deviation,) = posterior.predict([])
    assert median == pytest.approx(0.5 + 0.02 * (KNEE + 0.01))
    # 0.11 above the knee, and 0.09 below it, where the slope of scores is ten and more
    assert deviation == pytest.approx(0.02 * (0.11 + 5 * math.expm1(0.09 / 0.5)) / 2)


def test_joint_posterior_gives_marginals_and_differences(encoding, far):
    history, posterior = far
    views = [encoding.features_of(history[number]) for number in (LOW, 3, 12)]
    medians, covariance = posterior.joint(views)
    alone, deviations = posterior.predict(views)
    np.testing.assert_allclose(medians, alone, rtol=1e-12)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), deviations, rtol=1e-7)
    for first, second in ((0, 1), (1, 0), (1, 2)):
        lead = posterior.difference(views[first], views[second])
        assert lead.mean == pytest.approx(medians[first] - medians[second], abs=1e-12)
        variance = covariance[first, first] + covariance[second, second] - 2 * covariance[first, second]
        assert lead.deviation == pytest.approx(math.sqrt(variance), rel=1e-6)
