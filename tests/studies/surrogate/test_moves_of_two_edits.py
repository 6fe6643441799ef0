"""Moves where a side may have two edits: one comes or goes, each is changed apart, their split is a number."""

import random
from dataclasses import replace

import pytest
from support.factored_search import drawn, proposed
from support.simulated_search import whole_space

from search_space.forms import Init
from search_space.space.options import FormValues, SpaceOptions
from search_space.space.space import SearchSpace
from studies.surrogate.candidate_search import FactoredSearch
from studies.surrogate.encoded_configuration import EncodedConfiguration
from studies.surrogate.encoding import Encoding
from studies.surrogate.mutation import Moves, Mutation, Parents
from studies.surrogate.random_candidates import RandomCandidates

INDUCER = "inducer_plus_lora_q:rk=4,sl=2"
MAM = "mam_inducer:rk=4,sl=2,s=2,init=lora"
OPTIONS = SpaceOptions(
    edits_per_side=(1, 2), published=(INDUCER, MAM), values=FormValues(inits=(Init.LORA, Init.INDUCER))
)


@pytest.fixture(scope="module")
def two() -> Encoding:
    one = whole_space()
    return Encoding(SearchSpace(shape=one.shape, budget=one.budget, options=OPTIONS))


@pytest.fixture(scope="module")
def inducer(two: Encoding) -> EncodedConfiguration:
    encoded = two.encode(drawn(two.space, 1, published=(INDUCER,))[0])
    assert encoded is not None
    return encoded


def children(two: Encoding, encoded: EncodedConfiguration, **move: float) -> list[EncodedConfiguration]:
    none = {"recombine": 0.0, "edit": 0.0, "rate": 0.0, "size": 0.0, "side": 0.0, "random": 0.0, "second_move": 0.0}
    mutation, draw = Mutation(two, RandomCandidates(two), Moves(**(none | move))), random.Random(3)
    return [mutation.child(draw, Parents([encoded], decay=5.0)) for _ in range(60)]


def numbers(encoded: EncodedConfiguration) -> list[int]:
    assert encoded.attention is not None
    return [number for _, number in encoded.attention.parts]


def test_published_methods_with_two_edits_survive_encoding(two):
    for trial in drawn(two.space, 2, published=(INDUCER, MAM)):
        encoded = two.encode(trial)
        assert encoded is not None
        assert len(numbers(encoded)) == 2
        found = two.candidate(encoded).configuration
        assert two.space.points_in(found) == two.space.points_in(trial.configuration)


def test_draws_survive_encoding_with_their_sizes(two):
    several = 0
    for trial in drawn(two.space, 150, published=()):
        encoded = two.encode(trial)
        assert encoded is not None
        several += any(len(side.parts) > 1 for side in encoded.sides)
        candidate = two.candidate(encoded)
        assert candidate.fingerprint == trial.fingerprint
        for ours, theirs in zip(two.features(encoded), two.features_of(trial), strict=True):
            assert (ours is None) == (theirs is None)
            if ours is not None and theirs is not None:
                assert ours.structure == theirs.structure
                assert ours.log2_budget_fraction == pytest.approx(theirs.log2_budget_fraction, abs=1e-9)
    assert several > 50


def test_a_step_of_the_size_of_one_side_is_one_of_its_split(two, inducer):
    found = children(two, inducer, size=1.0)
    assert {tuple(numbers(encoded)) for encoded in found} == {tuple(numbers(inducer))}
    low, high = OPTIONS.split
    splits = {encoded.attention.split for encoded in found if encoded.attention}
    assert len(splits) == 60
    assert all(low <= split <= high for split in splits)
    configurations = {two.candidate(encoded).fingerprint for encoded in found}
    assert len(configurations) > 10


def test_study_of_two_edits_proposes_points_of_the_space(two):
    trials = drawn(two.space, 24, published=(INDUCER, MAM), seed=5)
    search = FactoredSearch(two.space, seed=1)
    found = proposed(search, trials, slots=3)
    assert [one.fingerprint for one in proposed(search, trials, slots=3)] == [one.fingerprint for one in found]
    assert len({one.fingerprint for one in found}) == 3
    for one in found:
        assert one.counts.stored <= two.space.budget
        assert two.space.points_in(one.configuration) is not None


def test_features_differ_by_written_tensor_and_split(two, inducer):
    assert inducer.attention is not None
    features, _ = two.features(inducer)
    assert features is not None
    assert features.structure.other >= {"bottleneck at o", "lowrank at q"}
    structures = set()
    for split in (0.1, 0.35, 0.7, 0.95):
        view, _ = two.features(replace(inducer, attention=replace(inducer.attention, split=split)))
        assert view is not None
        assert view.log2_budget_fraction == pytest.approx(features.log2_budget_fraction, abs=0.1)
        structures.add(view.structure)
    assert len(structures) > 1
