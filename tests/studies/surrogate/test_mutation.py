"""Moves: everything they make is legal and within the budget, and each does what its name says."""

import json
import random
from pathlib import Path

import pytest

from search_space.backbones import shape_of
from search_space.parameter_counts.counts import count
from search_space.space.space import SearchSpace, SpaceOptions
from search_space.validity import check_on
from studies.records import TrialState
from studies.surrogate.encoding import Encoding, PartStructures
from studies.surrogate.mutation import Moves, Mutation, Parents
from studies.surrogate.observation import Observation
from studies.surrogate.random_candidates import RandomCandidates

BACKBONES = Path(__file__).parents[2] / "data" / "backbones"


def only(**move: float) -> Moves:
    none = {"join": 0.0, "edit": 0.0, "rate": 0.0, "size": 0.0, "side": 0.0, "fresh": 0.0, "again": 0.0}
    return Moves(**(none | move))


def children(genome: Encoding, parents: Parents, moves: Moves, count: int) -> list:
    mover, draw = Mutation(genome, RandomCandidates(genome), moves), random.Random(3)
    return [mover.child(draw, parents) for _ in range(count)]


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
    genome = Encoding(space)
    drawer, draw = RandomCandidates(genome), random.Random(0)
    parents = Parents([drawer.fresh(draw) for _ in range(30)], decay=10.0)
    for genes in children(genome, parents, Moves(again=0.8), 60):
        candidate = genome.candidate(genes)
        check_on(candidate.configuration.edits, shape)
        counted = count(candidate.configuration, shape).stored
        assert 0 < counted <= space.budget
        view = genome.view(genes)
        stored = sum(2.0**side.log2_budget_fraction * space.budget for side in view if side is not None)
        # a C that Kronecker products at both sides share is in the size of both
        shared = 4**3 if all("phm" in side.structure.form for side in view if side) else 0
        assert stored == pytest.approx(counted, rel=1e-6, abs=shared)
        trial = Observation.of(candidate, number=0, state=TrialState.RUNNING)
        for known, own in zip(view, genome.view_of(trial), strict=True):
            assert (known and known.structure.layers) == (own and own.structure.layers)


def test_configurations_and_published_methods_of_the_space_are_their_genes(genome, history):
    methods = ("prefix_tuning", "scaled_parallel_adapter_ffn", "lora_qv", "lora_ffn", "mam_adapter")
    for trial in (*history(120, published=()), *history(len(methods), published=methods)):
        assert genome.candidate(genome.genes_of(trial)).fingerprint == trial.fingerprint


def test_the_head_alone_is_no_parent_and_others_are_the_nearest_points(genome, history):
    head, sequential = history(2, published=("head_only", "sequential_adapter_ffn"))
    assert genome.genes_of(head) is None
    genes = genome.genes_of(sequential)
    assert genes.attention is None
    (edit,) = genome.candidate(genes).configuration.edits
    assert (edit.form.name, edit.write, edit.read, edit.gate.name) == ("bottleneck", "f", "f", "add")


def nearest(structures: PartStructures, number: int, dimension: str) -> set[int]:
    """For every other value of a dimension those with the fewest other values else; what one alone has is none."""
    own = dict(structures.points[number].path)
    having: dict[str, dict[int, int]] = {}
    for other, path in enumerate(dict(point.path) for point in structures.points):
        changed = [name for name, value in own.items() if path.get(name, value) != value]
        if dimension in changed:
            having.setdefault(path[dimension], {})[other] = len(changed)
    return {one for some in having.values() for one, changes in some.items() if changes == min(some.values())}


def test_neighbours_change_one_dimension_and_little_else(genome):
    for structures in genome.parts.values():
        for number in range(0, len(structures.points), 40):
            for place, dimension in enumerate(structures.dimensions):
                found = {one for near in structures.neighbours(number, place) for one in near}
                assert found == nearest(structures, number, dimension)


def test_sizeless_form_stands_alone_above_a_quarter_of_budget(space):
    bias = 12 * space.shape.width  # of the width of the model at every layer
    for budget, least, most in ((4 * bias, 0.15, 0.5), (40 * bias, 0.0, 0.05)):
        genome = Encoding(SearchSpace(shape=space.shape, budget=budget))
        drawer, draw = RandomCandidates(genome), random.Random(1)
        drawn = [drawer.fresh(draw) for _ in range(1000)]
        moved = children(genome, Parents(drawn, decay=100.0), only(side=1.0), 300)
        for made in (drawn, moved):
            unsized = [genes for genes in made if not any(genome.facts(side).is_sized for side in genes.sides)]
            assert least <= len(unsized) / len(made) < most


@pytest.mark.parametrize("options", [SpaceOptions(), SpaceOptions(edits_per_side=(1, 2))], ids=["one", "two"])
def test_fresh_draws_use_the_budget(options, space):
    genome = Encoding(SearchSpace(shape=space.shape, budget=space.budget, options=options))
    drawer, draw = RandomCandidates(genome), random.Random(1)
    used = sorted(genome.candidate(drawer.fresh(draw)).counts.stored / space.budget for _ in range(400))
    assert used[200] >= 0.97
    assert sum(share < 0.5 for share in used) <= 0.15 * 400
