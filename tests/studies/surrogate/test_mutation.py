"""Moves: everything they make is legal and within the budget, and each does what its name says."""

import json
import random
from pathlib import Path

import pytest
from support.factored_search import drawn

from search_space.backbones import shape_of
from search_space.parameter_counts.counts import count
from search_space.space.space import SearchSpace, SpaceOptions
from search_space.validity import check_on
from studies.records import TrialState
from studies.surrogate.encoded_configuration import reflected
from studies.surrogate.encoding import Encoding
from studies.surrogate.mutation import Moves, Mutation, Parents
from studies.surrogate.observation import Observation
from studies.surrogate.random_candidates import BOTH_SIDES, RandomCandidates

BACKBONES = Path(__file__).parents[2] / "data" / "backbones"


def only(**move: float) -> Moves:
    none = {"join": 0.0, "edit": 0.0, "rate": 0.0, "size": 0.0, "side": 0.0, "fresh": 0.0, "again": 0.0}
    return Moves(**(none | move))


def parents_of(genome: Encoding, trials: list[Observation]) -> Parents:
    return Parents([genes for one in trials if (genes := genome.genes_of(one)) is not None], decay=5.0)


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
        stored = sum(
            2.0**side.log2_budget_fraction * space.budget for side in (view.attention, view.ffn) if side is not None
        )
        # a C that Kronecker products at both sides share is in the size of both
        shared = 4**3 if all("phm" in side.structure.form for side in (view.attention, view.ffn) if side) else 0
        assert stored == pytest.approx(counted, rel=1e-6, abs=shared)
        trial = Observation.of(candidate, number=0, state=TrialState.RUNNING)
        seen = genome.view_of(trial)
        for known, own in zip((view.attention, view.ffn), (seen.attention, seen.ffn), strict=True):
            assert (known and known.structure.layers) == (own and own.structure.layers)


def test_configurations_of_the_space_are_their_genes(space, genome, history):
    for trial in history(120, published=()):
        genes = genome.genes_of(trial)
        assert genome.candidate(genes).fingerprint == trial.fingerprint


def test_published_methods_that_are_points_of_the_space_are_their_genes(genome, history):
    methods = ("prefix_tuning", "scaled_parallel_adapter_ffn", "lora_qv", "lora_ffn", "mam_adapter")
    for trial in history(len(methods), published=methods):
        assert genome.candidate(genome.genes_of(trial)).fingerprint == trial.fingerprint


@pytest.mark.parametrize("layers", ["range", "spindle", "pattern"])
def test_published_methods_are_at_all_layers_of_whatever_choice_there_is(layers, space):
    genome = Encoding(SearchSpace(shape=space.shape, budget=space.budget, options=SpaceOptions(layers=(layers,))))
    (lora,) = drawn(genome.space, 1, published=("lora_qv",))
    assert genome.genes_of(lora).attention.layers.chosen(12) == tuple(range(12))


def test_the_head_alone_is_no_parent_and_others_are_the_nearest_points(genome, history):
    head, sequential = history(2, published=("head_only", "sequential_adapter_ffn"))
    assert genome.genes_of(head) is None
    genes = genome.genes_of(sequential)
    assert genes.attention is None
    (edit,) = genome.candidate(genes).configuration.edits
    assert (edit.form.name, edit.write, edit.read, edit.gate.name) == ("bottleneck", "f", "f", "add")


def test_a_join_is_attention_of_one_and_the_ffn_of_another_each_with_its_rate(genome, history):
    trials = history(2, published=("prefix_tuning", "scaled_parallel_adapter_ffn"))
    prefix, adapter = (genome.genes_of(one) for one in trials)
    for genes in children(genome, parents_of(genome, trials), only(join=1.0), 20):
        assert genes.attention == prefix.attention
        assert genes.ffn == adapter.ffn
    views = [genome.view(genes) for genes in children(genome, parents_of(genome, trials), only(join=1.0), 20)]
    mam = genome.view_of(history(1, published=("mam_adapter",))[0])
    assert {(view.attention.structure, view.ffn.structure) for view in views} == {
        (mam.attention.structure, mam.ffn.structure)
    }


def test_neighbours_are_those_of_the_space(genome, space):
    for part, structures in genome.parts.items():
        for number in range(0, len(structures.points), 40):
            expected = space.structures[part].neighbours(structures.points[number])
            for place, dimension in enumerate(structures.dimensions):
                found = {one for near in structures.neighbours(number, place) for one in near}
                assert found == {structures.numbers[point] for point in expected.get(dimension, ())}


def test_a_step_of_the_rate_changes_nothing_but_a_rate(genome, history):
    trials = history(2, published=("mam_adapter", "lora_qv"))
    parents = parents_of(genome, trials)
    known = {tuple((side.parts, side.layers) for side in genome.genes_of(one).sides) for one in trials}
    found = children(genome, parents, only(rate=1.0), 60)
    assert {tuple((side.parts, side.layers) for side in genes.sides) for genes in found} == known
    assert len({tuple(side.unit_lr for side in genes.sides) for genes in found}) == 60
    assert all(-1 <= side.unit_lr <= 1 for genes in found for side in genes.sides)


def test_fresh_draws_edit_both_sides_as_often_as_they_should_and_size_something(genome):
    drawer, draw = RandomCandidates(genome), random.Random(1)
    drawn = [drawer.fresh(draw) for _ in range(2000)]
    both = sum(len(genes.sides) == 2 for genes in drawn)
    assert abs(both - 2000 * BOTH_SIDES) < 4 * (2000 * BOTH_SIDES * (1 - BOTH_SIDES)) ** 0.5
    unsized = [genes for genes in drawn if not any(genome.facts(side).is_sized for side in genes.sides)]
    assert len(unsized) < 0.05 * 2000


def test_what_has_no_size_is_drawn_and_made_alone_where_it_takes_a_quarter_of_the_budget(space):
    bias = 12 * space.shape.width  # of the width of the model at every layer
    for budget, least, most in ((4 * bias, 0.15, 0.5), (40 * bias, 0.0, 0.05)):
        genome = Encoding(SearchSpace(shape=space.shape, budget=budget))
        drawer, draw = RandomCandidates(genome), random.Random(1)
        drawn = [drawer.fresh(draw) for _ in range(1000)]
        moved = children(genome, Parents(drawn, decay=100.0), only(side=1.0), 300)
        for made in (drawn, moved):
            unsized = [genes for genes in made if not any(genome.facts(side).is_sized for side in genes.sides)]
            assert least <= len(unsized) / len(made) < most


def test_stratified_draws_use_every_pair_of_forms_before_any_of_them_twice(genome):
    drawer, draw = RandomCandidates(genome), random.Random(2)
    used: list[tuple[str | None, str | None]] = []
    for _ in range(200):
        genes = drawer.fresh(draw, used)
        sides = (genes.attention, genes.ffn)
        used.append(tuple(None if side is None else genome.facts(side).form for side in sides))
        pairs = [cell for cell in used if None not in cell]
        assert max(map(pairs.count, pairs), default=1) - (len(set(pairs)) == 21) * (len(pairs) // 21) <= 1


def test_one_form_at_both_sides_has_one_rate(genome):
    drawer, draw = RandomCandidates(genome), random.Random(4)
    tied = 0
    for _ in range(300):
        genes = drawer.fresh(draw)
        if len(genes.sides) < 2:
            continue
        one, other = (genome.facts(side).form for side in genes.sides)
        assert (genes.attention.unit_lr == genes.ffn.unit_lr) == (one == other)
        tied += one == other
    assert tied


def test_reflected_numbers_stay_in_their_range():
    assert reflected(1.25, -1, 1) == 0.75
    assert reflected(-1.5, -1, 1) == -0.5
    assert reflected(0.3, -1, 1) == pytest.approx(0.3)
    assert reflected(5.5, -1, 1) == 0.5


@pytest.mark.parametrize("options", [SpaceOptions(), SpaceOptions(edits_per_side=(1, 2))], ids=["one", "two"])
def test_fresh_draws_use_the_budget(options, space):
    genome = Encoding(SearchSpace(shape=space.shape, budget=space.budget, options=options))
    drawer, draw = RandomCandidates(genome), random.Random(1)
    used = sorted(genome.candidate(drawer.fresh(draw)).counts.stored / space.budget for _ in range(400))
    assert used[200] >= 0.97
    assert sum(share < 0.5 for share in used) <= 0.15 * 400
