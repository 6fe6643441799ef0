"""Moves: everything they make is legal and within the budget, and each does what its name says."""

import json
import random
from pathlib import Path

import pytest

from search_space.backbones import shape_of
from search_space.parameter_counts.counts import count
from search_space.space.space import SearchSpace, SpaceOptions
from search_space.validity import check_on
from studies.surrogate.encoding import Encoding, PartStructures
from studies.surrogate.mutation import Moves, Mutation, Parents
from studies.surrogate.random_candidates import RandomCandidates

BACKBONES = Path(__file__).parents[2] / "data" / "backbones"


def only(**move: float) -> Moves:
    none = {"recombine": 0.0, "edit": 0.0, "rate": 0.0, "size": 0.0, "side": 0.0, "random": 0.0, "second_move": 0.0}
    return Moves(**(none | move))


def children(encoding: Encoding, parents: Parents, moves: Moves, count: int) -> list:
    mutation, draw = Mutation(encoding, RandomCandidates(encoding), moves), random.Random(3)
    return [mutation.child(draw, parents) for _ in range(count)]


SPACES = {
    "roberta_base": SpaceOptions(),
    "t5_small": SpaceOptions(sites="separate", layers=("all", "range", "spindle")),
    "llama3_2_1b": SpaceOptions(attention_forms=("lowrank", "phm"), ffn_forms=("phm", "bottleneck")),
    "gpt2": SpaceOptions(attention_forms=()),
    "bert_base_uncased": SpaceOptions(edits_per_side=(1, 2), layers=("all", "pattern")),
    "bart_large": SpaceOptions(edits_per_side=(1, 2), sites="separate", attention_forms=("lowrank", "phm", "diag")),
}


@pytest.mark.slow
@pytest.mark.parametrize("part", [200, 5000])  # at a fiftieth of a percent most structures do not fit every layer
@pytest.mark.parametrize("backbone", SPACES)
def test_every_child_is_legal_and_within_the_budget(backbone, part):
    shape = shape_of(json.loads((BACKBONES / backbone / "config.json").read_text()))
    space = SearchSpace(shape=shape, budget=shape.parameters // part, options=SPACES[backbone])
    encoding = Encoding(space)
    random_candidates, draw = RandomCandidates(encoding), random.Random(0)
    parents = Parents([random_candidates.draw(draw) for _ in range(30)], decay=10.0)
    for encoded in children(encoding, parents, Moves(second_move=0.8), 60):
        candidate = encoding.candidate(encoded)
        check_on(candidate.configuration.edits, shape)
        counted = count(candidate.configuration, shape).stored
        assert 0 < counted <= space.budget
        view = encoding.features(encoded)
        stored = sum(2.0**side.log2_budget_fraction * space.budget for side in view if side is not None)
        # a C that Kronecker products at both sides share is in the size of both
        shared = 4**3 if all("phm" in side.structure.form for side in view if side) else 0
        assert stored == pytest.approx(counted, rel=1e-6, abs=shared)
        for features, own in zip(view, encoding.features_of(candidate), strict=True):
            assert (features and features.structure.layers) == (own and own.structure.layers)


def test_all_candidates_of_the_space_survive_encoding(encoding, history):
    methods = ("prefix_tuning", "scaled_parallel_adapter_ffn", "lora_qv", "lora_ffn", "mam_adapter")
    for trial in (*history(120, published=()), *history(len(methods), published=methods)):
        assert encoding.candidate(encoding.encode(trial)).fingerprint == trial.fingerprint


def test_the_head_alone_is_no_parent_and_others_are_the_nearest_points(encoding, history):
    head, sequential = history(2, published=("head_only", "sequential_adapter_ffn"))
    assert encoding.encode(head) is None
    encoded = encoding.encode(sequential)
    assert encoded.attention is None
    (edit,) = encoding.candidate(encoded).configuration.edits
    assert (edit.form.name, edit.write, edit.read, edit.gate.name) == ("bottleneck", "f", "f", "add")


def nearest(structures: PartStructures, number: int, dimension: str) -> set[int]:
    """Return the nearest structures for every other value of a dimension."""
    own = dict(structures.points[number].path)
    having: dict[str, dict[int, int]] = {}
    for other, path in enumerate(dict(point.path) for point in structures.points):
        changed = [name for name, value in own.items() if path.get(name, value) != value]
        if dimension in changed:
            having.setdefault(path[dimension], {})[other] = len(changed)
    return {one for some in having.values() for one, changes in some.items() if changes == min(some.values())}


def test_neighbours_change_one_dimension_and_little_else(encoding):
    for structures in encoding.parts.values():
        for number in range(0, len(structures.points), 40):
            for place, dimension in enumerate(structures.dimensions):
                found = {one for near in structures.neighbours(number, place) for one in near}
                assert found == nearest(structures, number, dimension)


def test_sizeless_form_stands_alone_above_a_quarter_of_budget(space):
    bias = 12 * space.shape.width  # of the width of the model at every layer
    for budget, least, most in ((4 * bias, 0.15, 0.5), (40 * bias, 0.0, 0.05)):
        encoding = Encoding(SearchSpace(shape=space.shape, budget=budget))
        random_candidates, draw = RandomCandidates(encoding), random.Random(1)
        drawn = [random_candidates.draw(draw) for _ in range(1000)]
        moved = children(encoding, Parents(drawn, decay=100.0), only(side=1.0), 300)
        for made in (drawn, moved):
            unsized = [encoded for encoded in made if not any(encoding.facts(side).is_sized for side in encoded.sides)]
            assert least <= len(unsized) / len(made) < most


@pytest.mark.parametrize("options", [SpaceOptions(), SpaceOptions(edits_per_side=(1, 2))], ids=["one", "two"])
def test_fresh_draws_use_the_budget(options, space):
    encoding = Encoding(SearchSpace(shape=space.shape, budget=space.budget, options=options))
    random_candidates, draw = RandomCandidates(encoding), random.Random(1)
    used = sorted(encoding.candidate(random_candidates.draw(draw)).counts.stored / space.budget for _ in range(400))
    assert used[200] >= 0.97
    assert sum(share < 0.5 for share in used) <= 0.15 * 400
