"""Searches that want small configurations, too: what they propose, and how large it is."""

from dataclasses import replace

import numpy as np
import optuna
import pytest
from support.factored_search import MeasuredTrial, history_of, measured_trial, reading, whole_space

from search_space.parameter_counts.counts import count
from search_space.parameter_counts.flops import extra_flops
from search_space.space.space import SearchSpace
from studies.history.history import StudyHistory
from studies.objectives import SizeGoal, SizeMeasure
from studies.search.factored_sampler import FactoredSampler
from studies.surrogate.candidate_search import FactoredSearch
from studies.surrogate.encoding import Encoding
from studies.surrogate.size_objective import SizeObjective


@pytest.fixture(scope="module")
def space() -> SearchSpace:
    whole = whole_space()
    options = replace(whole.options, size=(0.125, 1.0), max_extra_flops=900_000)
    return SearchSpace(shape=whole.shape, budget=whole.budget, options=options)


def goal_of(space: SearchSpace, objective: SizeMeasure) -> SizeGoal:
    return SizeGoal.of(objective, budget=space.budget, max_extra_flops=space.options.max_extra_flops)


def sized_trials(space: SearchSpace, trials: int = 24) -> list[MeasuredTrial]:
    """Return trials whose scores rise with their sizes."""
    search, found = FactoredSearch(space, seed=3), []
    for number in range(trials):
        candidate = search.candidate(StudyHistory(), number=number)
        assert candidate is not None
        score = 0.4 + 0.1 * candidate.counts.stored / space.budget
        found.append(measured_trial(candidate, space, number, [reading(score)]))
    return found


@pytest.mark.parametrize("objective", [SizeMeasure.PARAMETERS, SizeMeasure.EXTRA_FLOPS])
def test_size_of_an_encoding_is_that_of_its_configuration(space, objective):
    encoding, goal = Encoding(space), goal_of(space, objective)
    size_objective = SizeObjective(encoding, goal)
    for trial in sized_trials(space, 12):
        encoded = encoding.encode(trial.record)
        assert encoded is not None
        made = encoding.candidate(encoded).configuration
        size = (
            count(made, space.shape).stored if objective is SizeMeasure.PARAMETERS else extra_flops(made, space.shape)
        )
        shared = sum(
            parameters
            for _, parameters in {edit.form.shared_parameters for edit in made.edits if edit.form.shared_parameters}
        )
        assert size_objective.of_encoded([encoded])[0] == pytest.approx(
            goal.scale.place(size), abs=1e-2 if shared else 1e-12
        )


def test_with_a_goal_smaller_ones_are_proposed_than_without(space):
    history = history_of(sized_trials(space), error=0.005)
    stored = []
    for goal in (None, goal_of(space, SizeMeasure.PARAMETERS)):
        search = FactoredSearch(space, seed=1, goal=goal)
        found = [search.candidate(history, number=24 + one) for one in range(8)]
        stored.append(np.mean([candidate.counts.stored for candidate in found if candidate is not None]))
    # the score rises with the size, so that without a goal the whole budget is proposed
    assert stored[1] < 0.8 * stored[0]


def test_optuna_alone_can_use_it_for_two_directions(space):
    def objective(trial: optuna.Trial) -> tuple[float, float]:
        stored = space.suggest(trial).counts.stored
        return 0.4 + 0.1 * stored / space.budget, float(stored)

    sampler = FactoredSampler(FactoredSearch(space, seed=1, goal=goal_of(space, SizeMeasure.PARAMETERS)))
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler)
    study.optimize(objective, n_trials=14)
    assert len({tuple(trial.values) for trial in study.trials}) > 10
    assert len(study.best_trials) > 1


def test_parents_are_good_within_their_size_and_without_a_goal_good_alone(space):
    means, places = np.array([0.1, 0.5, 0.45, 0.9]), np.array([-3.0, -2.0, -1.0, 0.0])
    encoding = Encoding(space)
    rank_values = SizeObjective(encoding, goal_of(space, SizeMeasure.PARAMETERS)).rank_values(means, places)
    assert rank_values == pytest.approx([0.0, 0.0, -0.05, 0.0], abs=1e-12)
    assert SizeObjective(encoding, None).rank_values(means, places) is means
