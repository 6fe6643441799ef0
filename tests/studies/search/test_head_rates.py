"""Learning rates of the task head: searched where a study asks for it, of every sampler, and nowhere else."""

import pytest
from support.simulated_search import NOTHING_TRIED, assert_continued, proposer_of, search

from search_space.space.space import HEAD_RATE, SearchSpace, SpaceOptions
from studies.confirmation.contenders import entry_of, trials_of
from studies.search.candidates import trial_request
from trial_runner.requests import TrainingPlan

LOW, HIGH, USUAL = 1e-4, 1e-2, 5e-3
PLAN = TrainingPlan(steps=4, batch_size=4, evaluate_at_steps=(4,), head_learning_rate=USUAL)


def asking(space: SearchSpace) -> SearchSpace:
    return SearchSpace(shape=space.shape, budget=600_000, options=SpaceOptions(head_learning_rates=(LOW, HIGH)))


@pytest.mark.parametrize("sampler", ["factored", "random", "tpe"])
def test_searched_head_rate_is_proposed_and_continued(sampler, space):
    with_head_rate = asking(space)
    proposer = proposer_of(with_head_rate, sampler, published=())
    history = search(proposer, 9)
    assert_continued(with_head_rate, sampler, proposer, history)
    rates = [trial_request(trial, attempt=1, plan=PLAN).learning_rates[-1] for trial in history]
    assert all(LOW <= rate <= HIGH for rate in rates)
    assert len(set(rates)) == len(history)
    assert len({trial.fingerprint for trial in history}) == len(history)


def test_head_rate_is_part_of_the_fingerprint(space):
    with_head_rate = asking(space)
    one = proposer_of(with_head_rate, "random", published=()).propose(NOTHING_TRIED)
    other = with_head_rate.suggest({**one.parameters, HEAD_RATE: HIGH / 2})
    assert (other.head_learning_rate, other.parameters[HEAD_RATE]) == (HIGH / 2, HIGH / 2)
    assert other.fingerprint != one.fingerprint
    assert other.configuration == one.configuration


@pytest.mark.parametrize("sampler", ["factored", "random"])
def test_fixed_head_rate_applies_to_all_trials(sampler, space):
    (trial,) = search(proposer_of(space, sampler, published=()), 1)
    assert HEAD_RATE not in trial.proposal
    assert HEAD_RATE not in space.parameters()
    assert trial_request(trial, attempt=1, plan=PLAN).learning_rates[-1] == USUAL


def test_a_confirmation_trains_the_head_at_the_rate_of_the_trial(space):
    with_head_rate = asking(space)
    (trial,) = search(proposer_of(with_head_rate, "random", published=()), 1)
    entry = entry_of(trial, with_head_rate, label="0", head_parameters=0, is_top=True)
    for again in trials_of([entry], [7, 8]):
        assert dict(again.proposal) == {HEAD_RATE: trial.proposal[HEAD_RATE]}
        request = trial_request(again, attempt=1, plan=PLAN)
        assert request.learning_rates[-1] == trial.proposal[HEAD_RATE]
