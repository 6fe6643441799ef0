"""Proposer with samplers of Optuna: replays, the initial design, and duplicates."""

from dataclasses import replace

import optuna
import pytest
from support.simulated_search import proposer_of, readings_of, record_of, search, trial_score

from search_space.space.random_draw import RandomTrial
from search_space.space.space import SearchSpace, SpaceOptions
from studies.errors import LaunchError
from studies.records import TrialState
from studies.search import optuna_history
from studies.search.initial_design import InitialDesign
from studies.search.proposer import Proposer, SpaceExhausted
from studies.search.samplers import Sampler
from studies.seeds import hashed_seed
from studies.surrogate.observation import Observation


def test_pruned_is_pruned_and_failed_is_failed_for_optuna(space):
    proposer = proposer_of(space, published=())
    search(proposer, space, 4, [])
    assert [one.state.name for one in proposer.history()] == ["COMPLETE", "PRUNED", "COMPLETE", "FAIL"]
    assert proposer.history()[1].intermediate_values == {4: trial_score(1)}


def test_trials_that_were_running_are_running_for_optuna_after_a_replay(space):
    first = proposer_of(space, published=())
    running = record_of(first.propose(), 0, space, TrialState.QUEUED)
    replayed = proposer_of(space, published=())
    replayed.replay([running], {})
    assert replayed.history()[0].state is optuna.trial.TrialState.RUNNING
    replayed.end_trial(0, TrialState.COMPLETE, 0.5)
    assert replayed.history()[0].value == 0.5


def test_published_methods_come_first_with_suggested_rates(space):
    proposer = proposer_of(space)
    proposals = [proposer.propose() for _ in range(3)]
    assert [one.method for one in proposals] == ["mam_adapter", "lora_qv", None]
    first, second = (one.parameters for one in proposals[:2])
    assert set(first) == {"learning_rate.softmax_memory", "learning_rate.bottleneck"}
    assert set(second) == {"learning_rate.lowrank"}
    # a step of LoRA at scale 2 does twice as much
    assert proposals[1].attention_learning_rate == second["learning_rate.lowrank"] / 2


def test_a_published_method_that_does_not_fit_is_left_out_with_its_reason(space):
    small = SearchSpace(shape=space.shape, budget=30_000, options=SpaceOptions())
    proposer = proposer_of(small, published=("mam_adapter",))
    assert proposer.propose().method is None
    assert "needs at least" in proposer.left_out["mam_adapter"]


def biases(space: SearchSpace, *attention: str) -> SearchSpace:
    """Build a space whose only choice is which biases are trained, at the FFN u, f or both."""
    rates = {"const": (1e-3, 1e-3)}
    options = SpaceOptions(attention_forms=attention, ffn_forms=("const",), learning_rates=rates, published=())
    return SearchSpace(shape=space.shape, budget=600_000, options=options)


def test_exhausted_space_is_reported_without_number_gaps(space):
    proposer = proposer_of(biases(space), "random", ())
    assert len({proposer.propose().fingerprint for _ in range(3)}) == 3
    with pytest.raises(SpaceExhausted, match="had been tried"):
        proposer.propose()
    assert proposer.next_number == 3


@pytest.mark.parametrize("sampler", ["tpe", "factored"])
def test_a_study_of_published_points_alone_ends_with_them(space, sampler):
    points = ("lora_qv:r=2", "lora_qv:r=8", "full_finetuning")
    options = SpaceOptions(attention_forms=(), ffn_forms=(), published=points)
    proposer = proposer_of(SearchSpace(shape=space.shape, budget=600_000, options=options), sampler, points)
    found = [proposer.propose() for _ in range(2)]
    assert [candidate.method for candidate in found] == list(points[:2])
    assert found[1].counts.stored == 4 * found[0].counts.stored
    with pytest.raises(SpaceExhausted, match="nothing but its published methods"):
        proposer.propose()
    assert "needs at least" in proposer.left_out["full_finetuning"]


@pytest.mark.parametrize("sampler", ["tpe", "factored"])
def test_repeating_sampler_does_not_end_the_search_early(space, sampler):
    # attention: q, v, o, q+v; FFN: u, f, u+f; one of them or both: 4 * 3 + 4 + 3 points
    proposer = proposer_of(biases(space, "const"), sampler, ())
    for number in range(19):
        is_favourite = proposer.propose().parameters["placement"] == "ffn"
        proposer.end_trial(number, TrialState.COMPLETE, float(is_favourite))
    with pytest.raises(SpaceExhausted):
        proposer.propose()


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
    drawn = [proposer.propose().parameters for _ in range(120)]
    assert [one["placement"] for one in drawn[:100]].count("both") == pytest.approx(70, abs=2)
    shares = [one["attention_share"] for one in drawn if "attention_share" in one]
    assert min(shares) < 0.15
    assert max(shares) > 0.85


def sampled_numbers(space: SearchSpace, *, startup: int, states: str) -> list[int]:
    """Return the numbers of the trials that the sampler proposed after trials with these final states."""
    numbers = []

    def of_proposal(number: int, retry: int) -> optuna.samplers.BaseSampler:
        numbers.append(number)
        return optuna.samplers.RandomSampler(seed=number)

    proposer = Proposer(space, sampler=Sampler(of=lambda *study: of_proposal, startup=startup), seed=0)
    final_states = {"C": TrialState.COMPLETE, "F": TrialState.FAILED, "P": TrialState.PRUNED}
    for number, letter in enumerate(states):
        proposer.propose()
        proposer.end_trial(number, final_states[letter], 0.5 if letter == "C" else None)
    return numbers


def test_sampler_proposes_once_enough_trials_have_a_result(space):
    assert sampled_numbers(space, startup=2, states="CFPCC") == [3, 4]
    assert sampled_numbers(space, startup=0, states="CF") == [0, 1]


def test_history_has_all_parameters_of_a_published_method_or_none(space):
    methods = ("mam_adapter", "bitfit", "lora_qv")
    live, replayed = (
        Proposer(
            space, sampler="optuna.samplers:RandomSampler", seed=5, initial_design=InitialDesign(published=methods)
        )
        for _ in range(2)
    )
    history = search(live, space, 6, [])
    replayed.replay(history, readings_of(history))
    for proposer in (live, replayed):
        mam, lora = proposer.history()[:2]
        assert (mam.number, lora.number) == (0, 2)
        assert (mam.params["attention.form"], mam.params["ffn.form"]) == ("softmax_memory", "bottleneck")
        assert lora.params["attention.lowrank.write"] == "q+v"
    assert [one.params for one in replayed.history()] == [one.params for one in live.history()]
    hidden = Proposer(space, sampler="tpe", seed=5, initial_design=InitialDesign(published=methods))
    hidden.replay(history, readings_of(history))
    assert [one.number for one in hidden.history()] == [3, 4, 5]
    method, again = history[0], space.suggest(live.history()[0].params)
    assert again.fingerprint == method.fingerprint


def test_sampler_history_holds_best_newest_and_running_trials(space, monkeypatch):
    monkeypatch.setattr(optuna_history, "LARGEST", 6)
    monkeypatch.setattr(optuna_history, "BEST", 2)
    # 1 and 3 are the best complete ones; of those with a result 9, 11, 12 and 13 are the newest four
    assert in_view_of(space, "PCPCCFRPPPFPCP") == [1, 3, 6, 9, 11, 12, 13]
    assert in_view_of(space, "PCPCFRPP") == list(range(8))


def in_view_of(space: SearchSpace, states: str) -> list[int]:
    """Return the visible trials of a history of complete, pruned, failed and running trials, the best first."""
    final_states = {"C": TrialState.COMPLETE, "P": TrialState.PRUNED, "F": TrialState.FAILED, "R": TrialState.RUNNING}
    one = Observation.of(space.suggest(RandomTrial(0)), number=0)
    trials = [
        replace(one, number=number, state=final_states[letter], values=(-float(number),) if letter == "C" else None)
        for number, letter in enumerate(states)
    ]
    return [trial.number for trial in optuna_history.visible_trials(trials)]
