"""Proposer with samplers of Optuna: replays, the initial design, and duplicates."""

from dataclasses import replace

import optuna
import pytest
from support.simulated_search import NOTHING_TRIED, after, proposals, proposer_of, recorded_history, search, trial_score

from search_space.space.random_draw import RandomTrial
from search_space.space.space import SearchSpace, SpaceOptions
from studies.errors import LaunchError
from studies.history.history import StudyHistory
from studies.records import TrialState
from studies.search import optuna_history
from studies.search.candidates import new_trial
from studies.search.initial_design import InitialDesign
from studies.search.proposer import Proposer, SpaceExhausted
from studies.search.samplers import Sampler
from studies.seeds import hashed_seed


def test_pruned_is_pruned_and_failed_is_failed_for_optuna(space):
    proposer = proposer_of(space, published=())
    visible = proposer.visible(search(proposer, 4))
    assert [one.state.name for one in visible] == ["COMPLETE", "PRUNED", "COMPLETE", "FAIL"]
    assert visible[1].intermediate_values == {4: trial_score(1)}


def test_queued_trials_are_running_for_optuna_until_they_end(space):
    proposer = proposer_of(space, published=())
    history = after(NOTHING_TRIED, proposer.propose(NOTHING_TRIED), space).changed(0, state=TrialState.QUEUED)
    assert proposer.visible(history)[0].state is optuna.trial.TrialState.RUNNING
    ended = history.changed(0, state=TrialState.COMPLETE, score=0.5)
    assert proposer.visible(ended)[0].value == 0.5


def test_published_methods_come_first_with_suggested_rates(space):
    proposer = proposer_of(space)
    found = proposals(proposer, 3)
    assert [one.method for one in found] == ["mam_adapter", "lora_qv", None]
    first, second = (one.parameters for one in found[:2])
    assert set(first) == {"learning_rate.softmax_memory", "learning_rate.bottleneck"}
    assert set(second) == {"learning_rate.lowrank"}
    # a step of LoRA at scale 2 does twice as much
    assert found[1].attention_learning_rate == second["learning_rate.lowrank"] / 2


def test_a_published_method_that_does_not_fit_is_left_out_with_its_reason(space):
    small = SearchSpace(shape=space.shape, budget=30_000, options=SpaceOptions())
    proposer = proposer_of(small, published=("mam_adapter",))
    assert proposer.propose(NOTHING_TRIED).method is None
    assert "needs at least" in proposer.left_out["mam_adapter"]


def biases(space: SearchSpace, *attention: str) -> SearchSpace:
    """Build a space whose only choice is which biases are trained, at the FFN u, f or both."""
    rates = {"const": (1e-3, 1e-3)}
    options = SpaceOptions(attention_forms=attention, ffn_forms=("const",), learning_rates=rates, published=())
    return SearchSpace(shape=space.shape, budget=600_000, options=options)


def test_exhausted_space_is_reported(space):
    proposer = proposer_of(biases(space), "random", ())
    history = search(proposer, 3)
    assert len({trial.fingerprint for trial in history}) == 3
    with pytest.raises(SpaceExhausted, match="had been tried"):
        proposer.propose(history)


@pytest.mark.parametrize("sampler", ["tpe", "factored"])
def test_a_study_of_published_points_alone_ends_with_them(space, sampler):
    points = ("lora_qv:r=2", "lora_qv:r=8", "full_finetuning")
    options = SpaceOptions(attention_forms=(), ffn_forms=(), published=points)
    proposer = proposer_of(SearchSpace(shape=space.shape, budget=600_000, options=options), sampler, points)
    history = search(proposer, 2)
    assert [trial.method for trial in history] == list(points[:2])
    assert history[1].stored_parameters == 4 * history[0].stored_parameters
    with pytest.raises(SpaceExhausted, match="nothing but its published methods"):
        proposer.propose(history)
    assert "needs at least" in proposer.left_out["full_finetuning"]


@pytest.mark.parametrize("sampler", ["tpe", "factored"])
def test_repeating_sampler_does_not_end_the_search_early(space, sampler):
    # attention: q, v, o, q+v; FFN: u, f, u+f; one of them or both: 4 * 3 + 4 + 3 points
    proposer = proposer_of(biases(space, "const"), sampler, ())
    history = NOTHING_TRIED
    for _ in range(19):
        candidate = proposer.propose(history)
        is_favourite = candidate.parameters["placement"] == "ffn"
        history = after(history, candidate, proposer.space, TrialState.COMPLETE, float(is_favourite))
    with pytest.raises(SpaceExhausted):
        proposer.propose(history)


def test_unknown_sampler_error_lists_the_samplers(space):
    with pytest.raises(
        LaunchError, match="no sampler 'cmaes'; known: tpe, random, nsga2, gp, qmc, factored, and the module:Class"
    ):
        Proposer(space, sampler="cmaes", seed=0)


def test_derived_seeds_differ_by_every_part_and_fit_their_bits():
    seeds = {hashed_seed("trial", study, number, bits=31) for study in range(20) for number in range(50)}
    assert len(seeds) == 1000
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_random_proposals_fill_ranges_and_often_edit_both_sides(space):
    proposer = Proposer(space, sampler="random", seed=3)
    drawn = [one.parameters for one in proposals(proposer, 120)]
    assert [one["placement"] for one in drawn[:100]].count("both") == pytest.approx(70, abs=2)
    shares = [one["attention_share"] for one in drawn if "attention_share" in one]
    assert min(shares) < 0.15
    assert max(shares) > 0.85


def sampled_numbers(space: SearchSpace, *, startup: int, states: str) -> list[int]:
    """Return the numbers of the trials that the sampler proposed after trials with these final states."""
    numbers = []

    def of_proposal(history: StudyHistory, number: int, retry: int) -> optuna.samplers.BaseSampler:
        numbers.append(number)
        return optuna.samplers.RandomSampler(seed=number)

    proposer = Proposer(space, sampler=Sampler(of=lambda *study: of_proposal, startup=startup), seed=0)
    final_states = {"C": TrialState.COMPLETE, "F": TrialState.FAILED, "P": TrialState.PRUNED}
    history = NOTHING_TRIED
    for letter in states:
        history = after(history, proposer.propose(history), space, final_states[letter])
    return numbers


def test_sampler_proposes_once_enough_trials_have_a_result(space):
    assert sampled_numbers(space, startup=2, states="CFPCC") == [3, 4]
    assert sampled_numbers(space, startup=0, states="CF") == [0, 1]


def test_history_has_all_parameters_of_a_published_method_or_none(space):
    methods = ("mam_adapter", "bitfit", "lora_qv")
    design = InitialDesign(published=methods)
    proposer = Proposer(space, sampler="optuna.samplers:RandomSampler", seed=5, initial_design=design)
    history = search(proposer, 6)
    for known in (history, recorded_history(history)):
        mam, lora = proposer.visible(known)[:2]
        assert (mam.number, lora.number) == (0, 2)
        assert (mam.params["attention.form"], mam.params["ffn.form"]) == ("softmax_memory", "bottleneck")
        assert lora.params["attention.lowrank.write"] == "q+v"
    hidden = Proposer(space, sampler="tpe", seed=5, initial_design=design)
    assert [one.number for one in hidden.visible(history)] == [3, 4, 5]
    assert space.suggest(mam.params).fingerprint == history[0].fingerprint


def test_sampler_history_holds_best_newest_and_running_trials(space, monkeypatch):
    monkeypatch.setattr(optuna_history, "LARGEST", 6)
    monkeypatch.setattr(optuna_history, "BEST", 2)
    # 1 and 3 are the best complete ones; of those with a result 9, 11, 12 and 13 are the newest four
    assert in_view_of(space, "PCPCCFRPPPFPCP") == [1, 3, 6, 9, 11, 12, 13]
    assert in_view_of(space, "PCPCFRPP") == list(range(8))


def in_view_of(space: SearchSpace, states: str) -> list[int]:
    """Return the visible trials of a history of complete, pruned, failed and running trials, the best first."""
    final_states = {"C": TrialState.COMPLETE, "P": TrialState.PRUNED, "F": TrialState.FAILED, "R": TrialState.RUNNING}
    one = new_trial(space.suggest(RandomTrial(0)), space.shape, head_parameters=0)
    trials = [
        replace(one, number=number, state=final_states[letter], score=-float(number) if letter == "C" else None)
        for number, letter in enumerate(states)
    ]
    return [trial.number for trial in optuna_history.visible_trials(trials)]
