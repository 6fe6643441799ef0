"""The first trials: a published method begins at rates that its place among the others says nothing of."""

import pytest
from support.simulated_search import NOTHING_TRIED, proposals, proposer_of, recorded_history, search

from search_space.space.space import SearchSpace

METHODS = ("lora_qv", "mam_adapter", "lora_ffn")


def test_a_form_begins_where_its_rate_is_expected_to_be_best(space):
    """Seven tenths of the way through its range in logarithms; methods of one form begin at one rate."""
    found = {one.method: one for one in proposals(proposer_of(space, "factored", METHODS), 3)}
    low, high = space.options.learning_rates["lowrank"]
    # both have a fixed scale of 2
    assert found["lora_qv"].attention_learning_rate == pytest.approx(low * (high / low) ** 0.7 / 2, rel=1e-12)
    assert found["lora_ffn"].ffn_learning_rate == found["lora_qv"].attention_learning_rate
    low, high = space.options.learning_rates["bottleneck"]
    assert found["mam_adapter"].ffn_learning_rate == pytest.approx(low * (high / low) ** 0.7 / 2, rel=1e-12)


def test_duplicate_published_method_is_left_out_with_a_note(space):
    proposer = proposer_of(space, "factored", ("lora_qv", "lora_qv:s=2", "bitfit"))
    assert [one.method for one in proposals(proposer, 2)] == ["lora_qv", "bitfit"]
    assert proposer.left_out == {"lora_qv:s=2": "another trial is the same."}


def test_begun_method_is_not_repeated_by_a_new_proposer(space):
    lost = proposer_of(space, "factored", METHODS)
    history = search(lost, 2)
    assert proposer_of(space, "factored", METHODS).propose(recorded_history(history)) == lost.propose(history)


def test_rejected_method_is_no_initial_trial(space):
    """Test that a replicate may follow the first trial."""
    small = SearchSpace(shape=space.shape, budget=30_000)
    proposer = proposer_of(small, "random", ("mam_adapter", "head_only"))
    history = search(proposer, 2)
    assert [one.method for one in history] == ["head_only", None]
    assert proposer.next_of_design(NOTHING_TRIED) is not None
    assert proposer.next_of_design(recorded_history(history[:1])) is None
    assert proposer.next_of_design(history) is None
    assert "needs at least" in proposer.left_out["mam_adapter"]
