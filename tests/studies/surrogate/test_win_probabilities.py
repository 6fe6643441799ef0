"""Win probabilities of trials that have begun."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import norm
from support.factored_search import MeasuredTrial, ended_at, history_of, reading

from search_space.space.space import SearchSpace
from studies.objectives import SizeGoal, SizeMeasure
from studies.records import TrialState
from studies.surrogate.candidate_search import MIN_OTHER_TRIALS, FactoredSearch
from studies.surrogate.posterior import SurrogateFitter
from studies.surrogate.size_objective import SizeObjective
from studies.win_probability import WinProbability

History = Callable[..., list[MeasuredTrial]]


def half_way(trial: MeasuredTrial, score: float) -> MeasuredTrial:
    """Return a running trial that was read once, at half its steps."""
    return trial.changed(state=TrialState.RUNNING, readings=[reading(score, fraction=0.5)])


@pytest.fixture
def win_probabilities(space: SearchSpace) -> Callable[..., dict[int, WinProbability]]:
    search = FactoredSearch(space, seed=0)
    return lambda trials, numbers: search.win_probabilities(history_of(trials), numbers)


@pytest.fixture
def trials(history: History) -> list[MeasuredTrial]:
    """Return two published methods and eighteen draws, of which the last runs."""
    *ended, last = history(20)
    return [*ended, half_way(last, 0.4)]


@pytest.mark.parametrize("has_published", [True, False])
def test_the_chance_is_that_of_a_normal_difference_to_the_best(encoding, win_probabilities, trials, has_published):
    own_trials = trials if has_published else [one.changed(method=None) for one in trials]
    found = win_probabilities(own_trials, [19])[19]
    surrogate = SurrogateFitter(encoding.features_of)
    posterior = surrogate.posterior(history_of(own_trials))
    means, covariance = posterior.joint([surrogate.features(one) for one in own_trials])
    best = int(np.argmax(means[: 2 if has_published else 19]))
    variance = covariance[19, 19] + covariance[best, best] - 2 * covariance[19, best]
    assert (found.rival, found.is_published) == (best, has_published)
    assert found.chance == pytest.approx(norm.cdf((means[19] - means[best]) / math.sqrt(variance)), abs=1e-9)
    # the covariance counts: two trials of which little is known may be alike all the same
    alone = norm.cdf((means[19] - means[best]) / math.sqrt(covariance[19, 19] + covariance[best, best]))
    assert abs(found.chance - alone) > 1e-3


def test_a_better_reading_promises_more(win_probabilities, trials):
    chances = [
        win_probabilities([*trials[:19], half_way(trials[19], score)], [19])[19].chance for score in (0.3, 0.4, 0.5)
    ]
    assert chances == sorted(chances)
    assert chances[0] < 0.5 * chances[2]


def test_task_head_alone_is_no_rival(win_probabilities, trials):
    heads = [one.changed(method=None if one.method is None else "head_only") for one in trials]
    assert not win_probabilities(heads, [19])[19].is_published


def test_a_trial_is_no_rival_of_its_own_and_neither_is_one_that_failed(win_probabilities, trials):
    unnamed = [one.changed(method=None) for one in trials]
    best = win_probabilities(unnamed, [19])[19].rival
    assert win_probabilities(unnamed, [best])[best].rival != best
    failed = [one.changed(state=TrialState.FAILED) if one.number == best else one for one in unnamed]
    assert win_probabilities(failed, [19])[19].rival != best


def test_win_probability_needs_four_other_trials(win_probabilities, trials):
    few = [*trials[: MIN_OTHER_TRIALS - 1], half_way(trials[19], 0.4).changed(number=MIN_OTHER_TRIALS - 1)]
    assert win_probabilities(few, [MIN_OTHER_TRIALS - 1]) == {}
    enough = [*trials[:MIN_OTHER_TRIALS], few[-1].changed(number=MIN_OTHER_TRIALS)]
    assert [*win_probabilities(enough, [MIN_OTHER_TRIALS])] == [MIN_OTHER_TRIALS]


def test_rival_is_never_larger_than_the_trial(encoding, space, trials):
    goal = SizeGoal.of(SizeMeasure.PARAMETERS, budget=space.budget)
    sizes = SizeObjective(encoding, goal).of_trials(trials)
    search = FactoredSearch(space, seed=0, goal=goal)
    order = np.argsort(sizes, kind="stable")
    middle = int(order[len(order) // 2])
    chances = search.win_probabilities(history_of(trials), [middle, *map(int, order[:2])])
    assert sizes[chances[middle].rival] <= sizes[middle]
    assert not chances[middle].is_published
    # of those that have fewer than four no larger beside them nothing is said
    assert [*chances] == [middle]


def test_hyper_parameters_depend_on_ended_trials_only(encoding, trials):
    surrogate = SurrogateFitter(encoding.features_of)
    more = [*trials, half_way(trials[5], 0.2).changed(number=20, fingerprint="another")]

    def fit(history: list[MeasuredTrial]) -> list[float]:
        return [*surrogate.posterior(history_of(history)).process.values.logarithms]

    ended = [one.changed(ended_at=ended_at(place)) for place, one in enumerate(trials[:16])]
    running = [half_way(one, 0.3) for one in trials[16:]]
    assert fit([*ended, *running]) == fit(ended)
    assert fit([*ended, *running, more[20], more[20].changed(number=21, fingerprint="a third")]) == fit(ended)


def test_hyper_parameters_follow_the_order_of_ends_not_of_numbers(encoding, trials):
    def fit(ends: list[int]) -> list[float]:
        surrogate = SurrogateFitter(encoding.features_of)
        history = [one.changed(ended_at=ended_at(end)) for one, end in zip(trials, ends, strict=True)]
        return [*surrogate.posterior(history_of(history)).process.values.logarithms]

    forwards, backwards = list(range(20)), list(range(20, 0, -1))
    assert fit(forwards) == fit([0] * 20)
    assert fit(forwards) != fit(backwards)
    # the sixteen that ended first decide, in whatever order the last four end
    assert fit(forwards) == fit([*range(16), 19, 18, 17, 16])
