"""Posteriors on the scale of the scores, where one trial is far below the others."""

import math
from dataclasses import replace

import numpy as np
import pytest
from support.factored_search import ERROR, history_of

from studies.score_evidence import Z_95
from studies.surrogate.posterior import EstimatePosterior, Posterior, SurrogateFitter, widening_of
from studies.surrogate.score_warp import KNEE, NO_KNEE, Scale

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


def estimates_of(encoding, trials) -> EstimatePosterior:
    return SurrogateFitter(encoding.features_of).integrated_posterior(history_of(trials))


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


@pytest.fixture(scope="module")
def unlucky(encoding, trials):
    """Return the estimates where a trial with a good reading halfway ends just below the knee."""
    middle, spread = spread_of(trials)
    return estimates_of(encoding, with_score(trials, middle - 3 * spread))


def test_score_just_below_the_knee_may_be_unlucky(encoding, trials, unlucky):
    view, expected = [encoding.features_of(trials[LOW])], trials[LOW].scores[-1]
    assert [one.scale.knee for one in unlucky.posteriors] == [KNEE, NO_KNEE]
    (warped, both) = (one.predict(view) for one in (unlucky.posteriors[0], unlucky))
    is_held = [abs(mean - expected) <= Z_95 * deviation for (mean,), (deviation,) in (warped, both)]
    assert is_held == [False, True]


def test_seed_deviation_is_on_the_scale_of_the_scores(encoding, trials, unlucky):
    parts = zip(unlucky.weights, unlucky.posteriors, strict=True)
    variance = sum(weight * one.scale.spread**2 * one.process.trial_variance for weight, one in parts)
    assert len(unlucky.posteriors) == 2
    assert unlucky.scale.error == ERROR
    assert unlucky.seed_deviation == pytest.approx(math.sqrt(variance + ERROR**2))
    tenth = [
        one.changed(readings=tuple(replace(each, score=each.score / 10, metrics={}) for each in one.readings))
        for one in trials
    ]
    assert all(not one.readings[0].metrics for one in trials)
    whole = SurrogateFitter(encoding.features_of).integrated_posterior(history_of(trials, 0.01)).seed_deviation
    smaller = SurrogateFitter(encoding.features_of).integrated_posterior(history_of(tenth, 0.001)).seed_deviation
    assert smaller == pytest.approx(whole / 10, rel=1e-6)
    unknown = SurrogateFitter(encoding.features_of).integrated_posterior(history_of(trials, 0.0))
    assert unknown.scale.error == 0


def test_estimates_weigh_posteriors_by_the_density_of_scores(encoding, trials, unlucky):
    warped, plain = (one.process for one in unlucky.posteriors)
    slopes = warped.processes[0].readings.slopes
    assert (slopes < 1).any()
    assert (plain.processes[0].readings.slopes == 1).all()
    ratio = math.log(unlucky.weights[0] / unlucky.weights[1])
    assert ratio == pytest.approx(warped.log_likelihood + np.log(slopes).sum() - plain.log_likelihood, abs=1e-6)
    assert unlucky.weights.sum() == pytest.approx(1)
    views = [encoding.features_of(one) for one in trials[LOW : LOW + 3]]
    parts = [one.joint(views) for one in unlucky.posteriors]
    means, covariance = unlucky.joint(views)
    mean = sum(weight * part for weight, (part, _) in zip(unlucky.weights, parts, strict=True))
    squares = [square + np.outer(part, part) for part, square in parts]
    square = sum(weight * part for weight, part in zip(unlucky.weights, squares, strict=True))
    np.testing.assert_allclose(means, mean, rtol=1e-9)
    np.testing.assert_allclose(covariance, 1.2**2 * (square - np.outer(mean, mean)), atol=1e-9)
    np.testing.assert_allclose(unlucky.predict(views)[1], np.sqrt(np.diag(covariance)), rtol=1e-6)
    lead = unlucky.difference(views[0], views[1])
    assert lead.mean == pytest.approx(means[0] - means[1])
    variance = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
    assert lead.deviation == pytest.approx(math.sqrt(variance), rel=1e-6)


@pytest.mark.parametrize("below", [None, 30])
def test_scores_above_the_knee_or_far_below_have_one_posterior(encoding, trials, below):
    middle, spread = spread_of(trials)
    history = trials if below is None else with_score(trials, middle - below * spread)
    posterior = estimates_of(encoding, history)
    assert posterior.weights == [1.0]
    assert posterior.scale.knee == KNEE


def test_joint_posterior_gives_the_marginals(encoding, far):
    history, posterior = far
    views = [encoding.features_of(history[number]) for number in (LOW, 3, 12)]
    medians, covariance = posterior.joint(views)
    alone, deviations = posterior.predict(views)
    np.testing.assert_allclose(medians, alone, rtol=1e-12)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), deviations, rtol=1e-7)


def test_estimates_are_wider_with_few_trials_above_all():
    factors = [1.3, 1.3, 1.25, 1.2, 1.1, 1.1]
    assert [widening_of(trials) for trials in (1, 20, 25, 30, 40, 1000)] == pytest.approx(factors)


@pytest.mark.parametrize(("count", "factor"), [(12, 1.3), (48, 1.1)])
def test_widening_scales_deviations_alone(encoding, history, count, factor):
    trials = history(count)
    estimates = estimates_of(encoding, trials)
    plain, *others = estimates.posteriors
    assert not others
    features = [encoding.features_of(one) for one in trials[:2]]
    for found, expected, power in (
        (estimates.predict(features), plain.predict(features), 1),
        (estimates.joint(features), plain.joint(features), 2),
    ):
        np.testing.assert_allclose(found[0], expected[0])
        np.testing.assert_allclose(found[1], factor**power * expected[1], rtol=1e-9)


def test_estimates_stay_wide_where_most_trials_have_one_score(encoding, trials):
    low = [one.changed(readings=[replace(each, score=0.0) for each in one.readings]) for one in trials[:18]]
    posterior = SurrogateFitter(encoding.features_of).integrated_posterior(history_of([*low, *trials[18:]], error=0.0))
    means, deviations = posterior.predict([encoding.features_of(one) for one in trials])
    scores = np.array([0.0] * 18 + [one.readings[-1].score for one in trials[18:]])
    assert means[18:].mean() > means[:18].mean()
    assert means.min() > -0.1
    assert means.max() < scores.max()
    assert np.median(deviations) > scores.std() / 10
