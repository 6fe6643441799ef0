"""Contract of every sampler, the project's own and those of installed packages."""

import logging
import os
import sys
import warnings
from collections.abc import Callable

import pytest
from support.processes import printed_by
from support.simulated_search import next_after_a_replay, proposals, proposer_of, recorded_history, search, whole_space

from search_space.forms import Init
from search_space.parameter_counts.counts import count
from search_space.space.options import FormValues, SpaceOptions
from search_space.space.space import SearchSpace
from search_space.validity import check_on
from studies.history.history import StudyHistory
from studies.search.initial_design import InitialDesign
from studies.search.proposer import Proposer
from studies.search.samplers import SAMPLERS

pytestmark = pytest.mark.parametrize("sampler", SAMPLERS)


@pytest.fixture(scope="module")
def space() -> SearchSpace:
    return whole_space()


def test_every_proposal_is_legal_within_the_budget_and_unlike_all_before(space, sampler):
    found = proposals(proposer_of(space, sampler), 24)
    for candidate in found:
        check_on(candidate.configuration.edits, space.shape)
        assert count(candidate.configuration, space.shape).stored <= space.budget
        assert set(candidate.parameters) <= set(space.parameters())
    assert len({candidate.fingerprint for candidate in found}) == 24


def visible(proposer: Proposer, history: StudyHistory) -> list[object]:
    return [(one.state, one.params, one.distributions, one.values) for one in proposer.visible(history)]


def continued(make: Callable[[], Proposer], trials: int, following: int) -> StudyHistory:
    """Return the history of a lost proposer; check that a new one continues its records like it."""
    lost, other = make(), make()
    history = search(lost, trials)
    recorded = recorded_history(history)
    assert visible(other, recorded) == visible(lost, history)
    after, again = search(lost, following, history), search(other, following, recorded)
    assert [trial.fingerprint for trial in again] == [trial.fingerprint for trial in after]
    return history


def test_new_proposer_proposes_as_the_lost_one_would_have(space, sampler):
    continued(lambda: proposer_of(space, sampler), 32, 3)


@pytest.mark.slow
def test_a_new_proposer_in_another_process_proposes_the_same(space, sampler):
    variables = {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "1"}
    printed = printed_by("-m", "support.simulated_search", sampler, 14, **variables)
    assert printed.split() == next_after_a_replay(space, sampler, 14)


def test_proposals_depend_on_the_seed_and_the_number(space, sampler):
    def first_two(seed: int) -> list[str]:
        return [one.fingerprint for one in proposals(Proposer(space, sampler=sampler, seed=seed), 2)]

    assert first_two(0) == first_two(0)
    assert len({*first_two(0), *first_two(1)}) == 4


def test_optuna_is_silent(space, sampler, capfd, caplog):
    with warnings.catch_warnings(), caplog.at_level(logging.DEBUG):
        warnings.simplefilter("error")
        search(proposer_of(space, sampler), 14)
    captured = capfd.readouterr()
    assert captured.out + captured.err == ""
    assert [entry for entry in caplog.records if entry.name.startswith("optuna")] == []


def test_two_edits_on_a_side_and_patterns_of_layers_are_continued(space, sampler):
    options = SpaceOptions(
        edits_per_side=(1, 2), layers=("all", "pattern"), values=FormValues(inits=(Init.LORA, Init.INDUCER))
    )
    wide = SearchSpace(shape=space.shape, budget=space.budget, options=options)
    initial_design = InitialDesign(published=("mam_inducer:rk=4,sl=2,s=2,init=lora",))
    history = continued(lambda: Proposer(wide, sampler=sampler, seed=5, initial_design=initial_design), 16, 2)
    assert any(str(name).endswith("_split") for trial in history for name in trial.proposal)
    assert any("pattern" in str(name) for trial in history for name in trial.proposal)
