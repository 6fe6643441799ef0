"""The Gaussian process: its posterior by the textbook formula, its derivatives, and what telling it more does."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from support.factored_search import STEPS

from studies.surrogate.gaussian_process import (
    RUNG_VARIANCE,
    GaussianProcess,
    KernelBlocks,
    fit_hyperparameters,
)
from studies.surrogate.hyperparameters import ANALYSIS_PRIORS, NAMES, SEARCH_PRIORS, Hyperparameters
from studies.surrogate.kernel import PointPairs, Points, variance
from studies.surrogate.process_mixture import LARGEST_INTEGRATED, ProcessMixture
from studies.surrogate.reading_arrays import Readings
from studies.surrogate.structure_distances import StructureDistances

USUAL = SEARCH_PRIORS
CENTRES, VALUES = USUAL.centres, USUAL.medians


@pytest.fixture(scope="module")
def distances() -> StructureDistances:
    return StructureDistances()


@pytest.fixture(scope="module", params=["scores", "scores and losses"])
def readings(request, history) -> Readings:
    scores = readings_of(history(30))
    return scores if request.param == "scores" else with_losses(scores)


def with_losses(scores: Readings) -> Readings:
    """Append, for every second reading, a loss of nearly the same value."""
    rows = np.concatenate([np.arange(len(scores)), np.arange(0, len(scores), 2)])
    are_losses = np.arange(len(rows)) >= len(scores)
    noise = 0.2 * np.sin(np.arange(len(rows)))
    return Readings(
        trials=scores.trials[rows],
        rungs=scores.rungs[rows],
        scores=scores.scores[rows] + noise * are_losses,
        errors=scores.errors[rows],
        slopes=np.where(np.arange(len(rows)) % 3, 1.0, 0.4),
        are_losses=are_losses,
    )


def readings_of(trials) -> Readings:
    pairs = [(trial, one) for trial in trials for one in trial.readings]
    scores = np.array([one.score for _, one in pairs])
    return Readings(
        trials=np.array([trial.number for trial, _ in pairs]),
        rungs=np.log2([one.step / STEPS for _, one in pairs]),
        scores=(scores - scores.mean()) / scores.std(),
        errors=np.full(len(pairs), 0.3),
        slopes=np.ones(len(pairs)),
        are_losses=np.zeros(len(pairs), dtype=np.bool_),
    )


@pytest.fixture(scope="module")
def points(encoding, history, distances) -> Points:
    """Return the configurations of the trials with readings."""
    return points_of(history(30), encoding, distances)


def points_of(trials, encoding, distances) -> Points:
    return Points.of([encoding.features_of(trial) for trial in trials if trial.readings], distances)


@pytest.fixture(scope="module")
def candidates(encoding, history, distances) -> Points:
    return Points.of([encoding.features_of(one) for one in history(20, seed=1)], distances)


def test_the_posterior_is_the_direct_formula(readings, points, candidates, distances):
    values = Hyperparameters(CENTRES + 0.2)  # a gain other than 1
    lossy = readings.are_losses
    gain, of_scores = np.where(lossy, values["loss.gain"], 1.0), np.zeros(len(candidates), dtype=np.bool_)

    def covariance(left: Points, right: Points, pairwise: np.ndarray, is_same_kind: np.ndarray) -> np.ndarray:
        similarity = PointPairs(left, right, distances).kernel(values)
        return similarity * np.exp(-values["decay"] * pairwise), RUNG_VARIANCE * ((pairwise == 0) & is_same_kind)

    rungs, trained = readings.rungs, points.take(np.unique(readings.trials, return_inverse=True)[1])
    pairwise = np.abs(rungs[:, None] - rungs[None, :])
    similarity, of_rungs = covariance(trained, trained, pairwise, lossy[:, None] == lossy[None, :])
    noisy = similarity * (np.outer(gain, gain) + values["loss.own"] ** 2 * np.outer(lossy, lossy)) + of_rungs
    is_same_trial = readings.trials[:, None] == readings.trials[None, :]
    noise = gain * readings.slopes
    noisy += values["trial"] ** 2 * np.outer(noise, noise) * is_same_trial
    noisy += values["pace"] ** 2 * np.outer(gain * rungs, gain * rungs) * is_same_trial * (pairwise == 0)
    example_noise = np.outer(readings.errors * np.where(lossy, values["loss.example_noise"], 1.0), readings.errors)
    example_noise *= np.where(lossy, values["loss.example_noise"], 1.0)[None, :]
    noisy += example_noise * is_same_trial * (pairwise == 0)
    noisy += np.diag((readings.slopes * np.where(lossy, values["loss.nugget"], values["nugget"])) ** 2 + 1e-8)
    pairwise = np.repeat(np.abs(rungs)[:, None], len(candidates), axis=1)
    similarity, of_rungs = covariance(trained, candidates, pairwise, lossy[:, None] == of_scores[None, :])
    shared = similarity * gain[:, None] + of_rungs
    inverse = np.linalg.inv(noisy)
    means, deviations = GaussianProcess(readings, points, distances, values).predict(candidates)
    expected, prior_means = (some.trends @ values.trends for some in (trained, candidates))
    formula = prior_means + shared.T @ inverse @ (readings.scores - gain * expected)
    np.testing.assert_allclose(means, formula, rtol=0, atol=1e-10)
    left = variance(values) + RUNG_VARIANCE - np.einsum("nm,nk,km->m", shared, inverse, shared)
    np.testing.assert_allclose(deviations, np.sqrt(left), rtol=0, atol=1e-10)


def test_without_readings_the_posterior_is_the_prior(points, candidates, distances):
    empty = np.zeros(0)
    none = Readings(
        trials=np.zeros(0, dtype=np.int64),
        rungs=empty,
        scores=empty,
        errors=empty,
        slopes=empty,
        are_losses=np.zeros(0, dtype=np.bool_),
    )
    means, deviations = GaussianProcess(none, points.take(np.zeros(0, dtype=np.int64)), distances, VALUES).predict(
        candidates
    )
    np.testing.assert_array_equal(means, candidates.trends @ VALUES.trends)
    np.testing.assert_allclose(deviations, np.sqrt(variance(VALUES) + RUNG_VARIANCE), rtol=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_of_the_loss_are_its_differences(readings, points, distances, name):
    step, place = 1e-5, NAMES.index(name)
    shift = np.zeros(len(NAMES))
    shift[place] = step
    here = CENTRES + 0.1
    above, below = (KernelBlocks(readings, points, distances).loss(here + sign * shift, USUAL)[0] for sign in (1, -1))
    slope = KernelBlocks(readings, points, distances).loss(here, USUAL)[1][place]
    assert slope == pytest.approx((above - below) / (2 * step), rel=1e-6, abs=1e-6)


def test_fitted_hyperparameters_are_more_probable_than_the_medians(readings, points, distances):
    found = fit_hyperparameters(readings, points, distances, USUAL)
    blocks = KernelBlocks(readings, points, distances)
    loss, slopes = blocks.loss(found.logarithms, USUAL)
    assert loss < blocks.loss(CENTRES, USUAL)[0]
    assert np.abs(slopes).max() < 0.05


def test_fantasies_at_the_mean_keep_means_and_cut_variance(readings, points, candidates, distances):
    process = GaussianProcess(readings, points, distances, VALUES)
    fantasized = process.fantasize(candidates.take(np.arange(3)))
    means, deviations = process.predict(candidates)
    same, less = fantasized.predict(candidates)
    np.testing.assert_allclose(same, means, rtol=0, atol=1e-7)
    assert (less < deviations + 1e-12).all()
    assert (less[:3] < 0.95 * deviations[:3]).all()


def test_observed_means_equal_predicted_means(readings, points, candidates, distances):
    process = GaussianProcess(readings, points, distances, VALUES).fantasize(candidates)
    count = len(points)
    own = process.observed_means(count)
    np.testing.assert_allclose(own, process.mean(process.points.take(np.arange(count))), rtol=0, atol=1e-12)
    assert np.ptp(own) > 0.1


def test_analysis_priors_have_no_pace_and_no_example_noise(readings, points, distances):
    """Test that errors of losses do not change fitted values."""
    assert [ANALYSIS_PRIORS.medians[name] for name in ("pace", "loss.example_noise")] == [0.0, 0.0]
    without = replace(readings, errors=readings.errors * ~readings.are_losses)
    found = fit_hyperparameters(readings, points, distances, ANALYSIS_PRIORS)
    assert [found[name] for name in ("pace", "loss.example_noise")] == [0.0, 0.0]
    np.testing.assert_array_equal(
        found.logarithms, fit_hyperparameters(without, points, distances, ANALYSIS_PRIORS).logarithms
    )
    usual = fit_hyperparameters(readings, points, distances, USUAL)
    assert min(usual["pace"], usual["loss.example_noise"]) > 0.0


# ---- integrated amplitudes


def test_likelihood_is_the_normal_density_of_the_readings(readings, points, distances):
    process = GaussianProcess(readings, points, distances, VALUES)
    blocks = KernelBlocks(readings, points, distances)
    gain = np.where(readings.are_losses, VALUES["loss.gain"], 1.0)
    means = gain * (blocks.trends @ VALUES.trends)
    density = multivariate_normal(means, blocks.covariance(VALUES, blocks.pairs.kernel(VALUES)))
    constant = 0.5 * len(readings) * np.log(2 * np.pi)
    assert process.log_likelihood == pytest.approx(density.logpdf(readings.scores) + constant, rel=1e-6)


def test_mixture_follows_the_law_of_total_variance(readings, points, candidates, distances):
    mixture = ProcessMixture.of(readings, points, distances, VALUES)
    assert len(mixture.processes) > 4
    assert mixture.weights.sum() == pytest.approx(1)
    likelihoods = [process.log_likelihood for process in mixture.processes]
    ratios = np.log(mixture.weights) - np.log(mixture.weights[0])
    assert ratios == pytest.approx(np.array(likelihoods) - likelihoods[0], abs=1e-9)
    mean, square = np.zeros(len(candidates)), np.zeros((len(candidates),) * 2)
    for weight, process in zip(mixture.weights, mixture.processes, strict=True):
        means, covariance = process.joint(candidates)
        mean += weight * means
        square += weight * (covariance + np.outer(means, means))
    found, covariance = mixture.joint(candidates)
    assert found == pytest.approx(mean)
    assert mixture.mean(candidates) == pytest.approx(mean)
    assert covariance == pytest.approx(square - np.outer(mean, mean), abs=1e-9)
    means, deviations = mixture.predict(candidates)
    assert means == pytest.approx(mean)
    assert deviations == pytest.approx(np.sqrt(np.diag(covariance)), abs=1e-9)
    own = [process.values["trial"] for process in mixture.processes]
    assert len({*own}) > 1
    assert mixture.trial_variance == pytest.approx(sum(mixture.weights * np.square(own)))


def test_mixture_allows_that_configurations_do_not_differ(history, points, distances):
    readings = readings_of(history(30))
    by_trial = np.random.default_rng(0).normal(size=30)
    readings = replace(readings, scores=by_trial[readings.trials])
    mixture = ProcessMixture.of(readings, points, distances, VALUES)
    assert min(np.ptp(process.mean(points)) for process in mixture.processes) < 0.06


def test_amplitudes_of_many_trials_are_not_integrated(encoding, history, distances, candidates):
    many = history(LARGEST_INTEGRATED + 1)
    readings, points = readings_of(many), points_of(many, encoding, distances)
    alone = GaussianProcess(readings, points, distances, VALUES).predict(candidates)
    assert np.array_equal(ProcessMixture.of(readings, points, distances, VALUES).predict(candidates), alone)


def test_scores_of_repeated_trials_decide_how_much_seeds_differ(history, points, distances):
    once = readings_of(history(20))
    twice = np.repeat(np.flatnonzero(once.rungs == 0), 2)
    readings_of_pairs = replace(once.take(twice), trials=np.arange(len(twice)), errors=np.full(len(twice), 0.1))
    points_of_pairs = points.take(once.trials[twice])
    found = []
    for spread in (0.1, 1.0):
        scores = np.random.default_rng(0).normal(np.repeat(np.linspace(-1, 1, len(readings_of_pairs) // 2), 2), spread)
        mixture = ProcessMixture.of(replace(readings_of_pairs, scores=scores), points_of_pairs, distances, VALUES)
        found.append(math.sqrt(mixture.trial_variance))
    assert found[0] < 0.3 < 0.6 < found[1]
