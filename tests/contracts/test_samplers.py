"""Contract of every sampler, the project's own and those of installed packages."""

import logging
import os
import sys
import warnings
from collections.abc import Callable

import pytest
from support.processes import printed_by
from support.simulated_search import next_after_a_replay, proposer_of, readings_of, search, whole_space

from search_space.forms import Init
from search_space.parameter_counts.counts import count
from search_space.space.options import FormValues, SpaceOptions
from search_space.space.space import SearchSpace
from search_space.validity import check_on
from studies.records import TrialRecord
from studies.search.initial_design import InitialDesign
from studies.search.proposer import Proposer
from studies.search.samplers import SAMPLERS

pytestmark = pytest.mark.parametrize("sampler", SAMPLERS)


@pytest.fixture(scope="module")
def space() -> SearchSpace:
    return whole_space()


def test_every_proposal_is_legal_within_the_budget_and_unlike_all_before(space, sampler):
    proposer, fingerprints = proposer_of(space, sampler), set()
    names = space.parameters()
    for _ in range(24):
        candidate = proposer.propose()
        check_on(candidate.configuration.edits, space.shape)
        assert count(candidate.configuration, space.shape).stored <= space.budget
        assert set(candidate.parameters) <= set(names)
        fingerprints.add(candidate.fingerprint)
    assert len(fingerprints) == 24


def facts(proposer: Proposer) -> list[object]:
    return [(one.state, one.params, one.distributions, one.values) for one in proposer.history()]


def replayed(make: Callable[[], Proposer], space: SearchSpace, trials: int, following: int) -> list[TrialRecord]:
    """Return the trials of a lost proposer; check that a replay continues like it."""
    lost, other = make(), make()
    history = search(lost, space, trials, [])
    other.replay(history, readings_of(history))
    assert facts(other) == facts(lost)
    after, again = (search(proposer, space, following, []) for proposer in (lost, other))
    assert [trial.fingerprint for trial in again] == [trial.fingerprint for trial in after]
    return history


def test_replayed_proposer_proposes_as_the_lost_one_would_have(space, sampler):
    replayed(lambda: proposer_of(space, sampler), space, 32, 3)


@pytest.mark.slow
def test_a_replay_in_another_process_proposes_the_same(space, sampler):
    variables = {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "1"}
    printed = printed_by("-m", "support.simulated_search", sampler, 14, **variables)
    assert printed.split() == next_after_a_replay(space, sampler, 14)


def test_what_is_drawn_depends_on_the_seed_and_the_number(space, sampler):
    def first_two(seed: int) -> list[str]:
        proposer = Proposer(space, sampler=sampler, seed=seed)
        return [proposer.propose().fingerprint for _ in range(2)]

    assert first_two(0) == first_two(0)
    assert len({*first_two(0), *first_two(1)}) == 4


def test_optuna_is_silent(space, sampler, capfd, caplog):
    with warnings.catch_warnings(), caplog.at_level(logging.DEBUG):
        warnings.simplefilter("error")
        search(proposer_of(space, sampler), space, 14, [])
    captured = capfd.readouterr()
    assert captured.out + captured.err == ""
    assert [entry for entry in caplog.records if entry.name.startswith("optuna")] == []


def test_two_edits_on_a_side_and_patterns_of_layers_are_replayed(space, sampler):
    options = SpaceOptions(
        edits_per_side=(1, 2), layers=("all", "pattern"), values=FormValues(inits=(Init.LORA, Init.INDUCER))
    )
    wide = SearchSpace(shape=space.shape, budget=space.budget, options=options)
    initial_design = InitialDesign(published=("mam_inducer:rk=4,sl=2,s=2,init=lora",))
    history = replayed(lambda: Proposer(wide, sampler=sampler, seed=5, initial_design=initial_design), wide, 16, 2)
    assert any(str(name).endswith("_split") for trial in history for name in trial.proposal)
    assert any("pattern" in str(name) for trial in history for name in trial.proposal)
