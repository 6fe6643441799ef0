"""The generations of NSGA-II: as Optuna counts and breeds them, after a replay, and however many there are."""

import random
from dataclasses import replace
from datetime import timedelta

import optuna
from support.simulated_search import proposer_of, readings_of, record_of, search

from studies.records import TrialState
from studies.search.generations import Generations, NSGAIISampler
from studies.search.proposer import Proposer
from studies.search.samplers import SAMPLERS, Sampler


def small(make: type[optuna.samplers.NSGAIISampler], **options: int) -> Sampler:
    return replace(SAMPLERS["nsga2"], make=lambda turn: make(seed=turn.seed, **options), population=4)


def test_who_breeds_is_whom_optuna_would_choose(space):
    history = search(proposer_of(space, small(NSGAIISampler, population=4)), space, 60, [])
    ours, optunas = (
        proposer_of(space, sampler)
        for sampler in (small(NSGAIISampler, population=4), small(optuna.samplers.NSGAIISampler, population_size=4))
    )
    for proposer in (ours, optunas):
        proposer.replay(history, readings_of(history))
    for _ in range(6):
        assert ours.propose().candidate.fingerprint == optunas.propose().candidate.fingerprint


def test_there_may_be_more_generations_than_python_calls_itself(space):
    first = proposer_of(space, "random", published=())
    began = [record_of(first.propose(), space, TrialState.COMPLETE) for _ in range(1200)]
    begin = began[0].created_at
    history = [
        replace(one, created_at=begin + timedelta(seconds=2 * place), ended_at=begin + timedelta(seconds=2 * place + 1))
        for place, one in enumerate(began)
    ]
    sampler = replace(SAMPLERS["nsga2"], make=lambda turn: NSGAIISampler(seed=turn.seed, population=2), population=2)
    proposer = proposer_of(space, sampler, published=())
    proposer.replay(history, {})
    proposer.propose()
    assert proposer.history()[-1].system_attrs["NSGAIISampler:generation"] == 600


def test_a_replay_restores_the_generations_of_nsga2(space):
    small = replace(
        SAMPLERS["nsga2"],
        make=lambda turn: NSGAIISampler(seed=turn.seed, population=4),
        population=4,
    )
    lost = proposer_of(space, small)
    history = search(lost, space, 40, [])
    replayed = proposer_of(space, small)
    replayed.replay(history, readings_of(history))

    def generations(proposer: Proposer) -> list[object]:
        known = [one.system_attrs.get("NSGAIISampler:generation") for one in proposer.history()]
        return known[2:]  # published methods are of no generation

    assert generations(replayed) == generations(lost)
    assert max(generations(lost)) > 2
    assert replayed.propose().candidate.fingerprint == lost.propose().candidate.fingerprint


def test_generations_are_those_of_the_rule_whatever_ends_first(space):
    """The newest generation that had a complete trial by then, or the next if it had a whole population of them."""
    draw = random.Random(7)
    first = proposer_of(space, published=())
    known = [record_of(first.propose(), space, TrialState.COMPLETE) for _ in range(60)]
    begin = known[0].created_at
    records = [
        replace(
            one,
            state=draw.choice((TrialState.COMPLETE, TrialState.COMPLETE, TrialState.PRUNED)),
            created_at=begin + timedelta(seconds=place),
            ended_at=begin + timedelta(seconds=place + draw.randrange(1, 9)),
        )
        for place, one in enumerate(known)
    ]
    expected: list[int] = []
    for one in records:
        done = [
            generation
            for earlier, generation in zip(records, expected, strict=False)
            if earlier.state is TrialState.COMPLETE
            and earlier.ended_at is not None
            and earlier.ended_at <= one.created_at
        ]
        expected.append(max(done, default=0) + (done.count(max(done, default=0)) >= 4))
    generations = Generations(4)
    assert [generations.of(one) for one in records] == expected
    assert max(expected) > 4
