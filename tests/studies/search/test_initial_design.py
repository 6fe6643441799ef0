"""The first trials: a published method begins at rates that its place among the others says nothing of."""

import pytest
from support.simulated_search import proposer_of, record_of

from search_space.space.space import Candidate, SearchSpace
from studies.records import TrialState
from studies.search.proposer import Proposer

METHODS = ("lora_qv", "mam_adapter", "lora_ffn")


def first_trials(proposer: Proposer, count: int) -> dict[str | None, Candidate]:
    """Propose trials, each of which ends with a score of its own, and return them by method."""
    found = {}
    for number in range(count):
        candidate = proposer.propose()
        found[candidate.method] = candidate
        proposer.add_reading(number, 1, number / 10)
        proposer.end_trial(number, TrialState.COMPLETE, number / 10)
    return found


def test_a_form_begins_where_its_rate_is_expected_to_be_best(space):
    """Seven tenths of the way through its range in logarithms; methods of one form begin at one rate."""
    found = first_trials(proposer_of(space, "factored", METHODS), 3)
    low, high = space.options.learning_rates["lowrank"]
    # both have a fixed scale of 2
    assert found["lora_qv"].attention_learning_rate == pytest.approx(low * (high / low) ** 0.7 / 2, rel=1e-12)
    assert found["lora_ffn"].ffn_learning_rate == found["lora_qv"].attention_learning_rate
    low, high = space.options.learning_rates["bottleneck"]
    assert found["mam_adapter"].ffn_learning_rate == pytest.approx(low * (high / low) ** 0.7 / 2, rel=1e-12)


def test_duplicate_published_method_is_left_out_with_a_note(space):
    proposer = proposer_of(space, "factored", ("lora_qv", "lora_qv:s=2", "bitfit"))
    assert [proposer.propose().method for _ in range(2)] == ["lora_qv", "bitfit"]
    assert proposer.left_out == {"lora_qv:s=2": "another trial is the same."}


def test_what_has_begun_is_not_begun_again_after_a_replay(space):
    lost = proposer_of(space, "factored", METHODS)
    begun = [record_of(lost.propose(), number, space, TrialState.COMPLETE) for number in range(2)]
    rebuilt = proposer_of(space, "factored", METHODS)
    rebuilt.replay(begun, {})
    assert rebuilt.propose() == lost.propose()


def test_rejected_method_is_no_initial_trial_after_a_replay(space):
    """Test that a replicate may follow the first trial."""
    small = SearchSpace(shape=space.shape, budget=30_000)
    lost = proposer_of(small, "random", ("mam_adapter", "head_only"))
    assert lost.is_initial_design
    begun = [record_of(lost.propose(), number, small, TrialState.COMPLETE) for number in range(2)]
    assert [one.method for one in begun] == ["head_only", None]
    rebuilt = proposer_of(small, "random", ("mam_adapter", "head_only"))
    rebuilt.replay(begun[:1], {})
    assert rebuilt.is_initial_design
    rebuilt = proposer_of(small, "random", ("mam_adapter", "head_only"))
    rebuilt.replay(begun, {})
    assert not rebuilt.is_initial_design
    assert not lost.is_initial_design
