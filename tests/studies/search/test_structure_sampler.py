"""Draws over structures as a sampler of Optuna, alone and before another."""

import pytest
from optuna.samplers import BaseSampler, RandomSampler

from search_space.space.space import SearchSpace
from studies.records import TrialState
from studies.search.proposer import Proposer
from studies.search.samplers import Sampler, Turn
from studies.search.structure_sampler import AfterStart, StructureSampler


def structures(turn: Turn) -> BaseSampler:
    return StructureSampler(
        turn.space, turn.distributions, study_seed=turn.study_seed, seed=turn.seed, number=turn.number, retry=turn.retry
    )


def test_seven_in_ten_proposals_edit_both_sides_whatever_the_tree_is(space: SearchSpace) -> None:
    proposer = Proposer(space, sampler=Sampler(make=structures), seed=3)
    places = [proposer.propose().candidate.parameters["placement"] for _ in range(100)]
    assert places.count("both") == pytest.approx(70, abs=2)


def test_numbers_fill_their_ranges(space: SearchSpace) -> None:
    proposer = Proposer(space, sampler=Sampler(make=structures), seed=3)
    drawn = [proposer.propose().candidate.parameters for _ in range(120)]
    shares = [float(str(one["attention_share"])) for one in drawn if "attention_share" in one]
    assert min(shares) < 0.15
    assert max(shares) > 0.85


def test_the_other_sampler_begins_when_enough_trials_have_a_result(space: SearchSpace) -> None:
    seen: list[str] = []

    class Named(RandomSampler):
        def __init__(self, name: str) -> None:
            super().__init__(seed=0)
            self.name = name

        def infer_relative_search_space(self, study: object, trial: object) -> dict[str, object]:
            seen.append(self.name)
            return {}

    sampler = Sampler(make=lambda turn: AfterStart(Named("start"), Named("then"), trials=2))
    proposer = Proposer(space, sampler=sampler, seed=0)
    states = (TrialState.COMPLETE, TrialState.FAILED, TrialState.PRUNED)
    for number, state in enumerate(states):
        proposer.propose()
        if state is TrialState.PRUNED:
            proposer.report(number, 4, 0.5)
        proposer.close(number, state, 0.5 if state is TrialState.COMPLETE else None)
    seen.clear()
    proposer.propose()
    assert set(seen) == {"then"}
