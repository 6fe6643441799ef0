"""What is expected of trials that have begun: a probability in closed form, of whom, and of what it depends on."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm
from support.factored_search import ERROR

from search_space.space.space import SearchSpace
from studies.objectives import SizeGoal, SizeMeasure
from studies.records import TrialState
from studies.surrogate.candidate_search import FEWEST, FactoredSearch
from studies.surrogate.observation import MeasuredScore, Observation
from studies.surrogate.posterior import SurrogateFitter
from studies.surrogate.size_objective import SizeObjective
from studies.win_probability import WinProbability

History = Callable[..., list[Observation]]


def half_way(trial: Observation, score: float) -> Observation:
    """A trial that runs and was read once, where others were."""
    reading = MeasuredScore(fraction=0.5, score=score, standard_error=ERROR)
    return replace(trial, state=TrialState.RUNNING, readings=(reading,))


@pytest.fixture
def prospects(space: SearchSpace) -> Callable[..., dict[int, WinProbability]]:
    return FactoredSearch(space, seed=0).prospects


@pytest.fixture
def trials(history: History) -> list[Observation]:
    """Two published methods and eighteen draws, of which the last runs."""
    *ended, last = history(20)
    return [*ended, half_way(last, 0.4)]


@pytest.mark.parametrize("has_published", [True, False])
def test_the_chance_is_that_of_a_normal_difference_to_the_best(genome, prospects, trials, has_published):
    asked = trials if has_published else [replace(one, method=None) for one in trials]
    found = prospects(asked, [19])[19]
    believer = SurrogateFitter(genome.view_of)
    belief = believer.belief(asked, is_settled=True)
    means, covariance = belief.joint([believer.view(one) for one in asked])
    best = int(np.argmax(means[: 2 if has_published else 19]))
    variance = covariance[19, 19] + covariance[best, best] - 2 * covariance[19, best]
    assert (found.rival, found.is_published) == (best, has_published)
    assert found.chance == pytest.approx(norm.cdf((means[19] - means[best]) / math.sqrt(variance)), abs=1e-9)
    # the covariance counts: two trials of which little is known may be alike all the same
    alone = norm.cdf((means[19] - means[best]) / math.sqrt(covariance[19, 19] + covariance[best, best]))
    assert abs(found.chance - alone) > 1e-3


def test_a_better_reading_promises_more(prospects, trials):
    chances = [prospects([*trials[:19], half_way(trials[19], score)], [19])[19].chance for score in (0.3, 0.4, 0.5)]
    assert chances == sorted(chances)
    assert chances[0] < 0.5 * chances[2]


def test_the_task_head_alone_is_nobody_s_rival(prospects, trials):
    heads = [replace(one, method=None if one.method is None else "head_only") for one in trials]
    assert not prospects(heads, [19])[19].is_published


def test_a_trial_is_no_rival_of_its_own_and_neither_is_one_that_failed(prospects, trials):
    unnamed = [replace(one, method=None) for one in trials]
    best = prospects(unnamed, [19])[19].rival
    assert prospects(unnamed, [best])[best].rival != best
    failed = [replace(one, state=TrialState.FAILED) if one.number == best else one for one in unnamed]
    assert prospects(failed, [19])[19].rival != best


def test_nothing_is_said_while_fewer_than_four_others_were_read(prospects, trials):
    few = [*trials[: FEWEST - 1], replace(half_way(trials[19], 0.4), number=FEWEST - 1)]
    assert prospects(few, [FEWEST - 1]) == {}
    enough = [*trials[:FEWEST], replace(few[-1], number=FEWEST)]
    assert [*prospects(enough, [FEWEST])] == [FEWEST]


def test_nothing_is_held_against_a_trial_that_is_larger(genome, space, trials):
    goal = SizeGoal.of(SizeMeasure.PARAMETERS, budget=space.budget)
    sizes = SizeObjective(genome, goal).of_trials(trials)
    prospects = FactoredSearch(space, seed=0, goal=goal).prospects
    order = np.argsort(sizes, kind="stable")
    middle = int(order[len(order) // 2])
    asked = prospects(trials, [middle, *map(int, order[:2])])
    assert sizes[asked[middle].rival] <= sizes[middle]
    assert not asked[middle].is_published
    # of those that have fewer than four no larger beside them nothing is said
    assert [*asked] == [middle]


def test_hyper_parameters_are_those_of_what_has_ended(genome, trials):
    believer = SurrogateFitter(genome.view_of)
    more = [*trials, replace(half_way(trials[5], 0.2), number=20, fingerprint="another")]

    def fitted(history: list[Observation], *, is_settled: bool) -> list[float]:
        return [*believer.belief(history, is_settled=is_settled).process.values.logarithms]

    ended = trials[:16]
    running = [half_way(one, 0.3) for one in trials[16:]]
    assert fitted([*ended, *running], is_settled=True) == fitted(ended, is_settled=True)
    assert fitted([*ended, *running, more[20]], is_settled=True) == fitted(ended, is_settled=True)
    # all that was read of twenty-two trials is another thing than what was read of the sixteen that have ended
    both = [*ended, *running, more[20], replace(more[20], number=21, fingerprint="a third")]
    assert fitted(both, is_settled=False) != fitted(ended, is_settled=True)
    assert fitted(both, is_settled=True) == fitted(ended, is_settled=True)
