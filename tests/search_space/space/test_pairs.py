"""Two edits on a side: each pair once, every legal one, and found by its edits."""

import dataclasses
import itertools
from pathlib import Path

import pytest
from support.edits import rates_of
from support.routes import DrawnTrial

from search_space.backbones.shape import BackboneShape
from search_space.canonical import canonical, fingerprint
from search_space.configuration import Configuration
from search_space.dimensions import Activation
from search_space.edit import Edit
from search_space.errors import InvalidEditError
from search_space.forms import Init
from search_space.layers import LayerPattern
from search_space.parameter_counts.counts import count, count_edits
from search_space.space.options import FormValues, SpaceOptions
from search_space.space.product import Point, Structure
from search_space.space.random_draw import RandomTrial
from search_space.space.space import SearchSpace
from search_space.space.structure_draws import StructureDraws
from search_space.space.trial_protocol import FloatRange

TWO = SpaceOptions(edits_per_side=(1, 2))
SMALL = dataclasses.replace(
    TWO,
    attention_forms=("softmax_memory", "bottleneck", "lowrank", "diag"),
    ffn_forms=("lowrank", "const"),
    gates=("add", "scale", "lse_convex", "inducer"),
    values=FormValues(activations=(Activation.RELU, Activation.TANH), scales=(3.0,)),
)
INDUCERS = dataclasses.replace(TWO, values=FormValues(inits=(Init.LORA, Init.INDUCER), key_widths=(None, 4)))


def space_of(shape: BackboneShape, options: SpaceOptions = TWO, budget: int | None = None) -> SearchSpace:
    return SearchSpace(shape=shape, budget=budget or shape.parameters // 200, options=options)


def function(edits: tuple[Edit, ...], shape: BackboneShape) -> Configuration:
    return canonical(Configuration(edits=edits), shape)


def edits_of(points: Structure) -> tuple[Edit, ...]:
    return tuple(edit for point in points for edit in point.edits)


def is_allowed(one: Point, other: Point, space: SearchSpace) -> bool:
    """Return whether the rules allow two structures together, without the classes by which the space compares them."""
    ends = [{(edit.form.name, edit.write) for edit in point.edits} for point in (one, other)]
    try:
        together = Configuration(edits=(*one.edits, *other.edits))
        stored = count(together, space.shape).stored
    except InvalidEditError:
        return False
    # a gate of several is judged by the one that stores most: a scale more for each edit and sublayer is in doubt
    return not ends[0] & ends[1] and stored <= space.budget // 2


@pytest.mark.slow
@pytest.mark.parametrize("part", ["attention", "ffn"])
def test_pairs_are_the_legal_combinations_once_each(part, odd):
    space = space_of(odd, SMALL, 20_000)
    singles, pairs = space.structures[part], space.pairs[part]
    one_structure = {frozenset(point.edits) for point in singles if len(point.edits) > 1}
    legal = {
        frozenset((one, other)) for one, other in itertools.combinations(singles, 2) if is_allowed(one, other, space)
    }
    ends = {frozenset((edit.form.name, edit.write, edit.read) for edit in edits) for edits in one_structure}
    wanted = {
        both
        for both in legal
        if frozenset((edit.form.name, edit.write, edit.read) for point in both for edit in point.edits) not in ends
    }
    found = [pair for pair in itertools.combinations(singles, 2) if pairs.are_legal(*pair)]
    assert {frozenset(pair) for pair in found} == wanted
    assert len(found) == len(pairs) == len(wanted)
    functions = {function(edits_of(pair), odd) for pair in found}
    assert len(functions) == len(pairs)
    assert not functions & {function(point.edits, odd) for point in singles}


def test_the_numbers_of_the_explanation_are_those_of_the_default_space(roberta):
    space = space_of(roberta)
    text = (Path(__file__).parents[3] / "docs" / "explanation" / "design-space.md").read_text()
    ones = [len(structures) for structures in space.structures.values()]
    twos = [len(pairs) for pairs in space.pairs.values()]
    assert f"has {ones[0]} structures of one edit at\nattention and {twos[0]:,} of two" in text
    assert f"{ones[1]} and {twos[1]:,} at the FFN" in text


@pytest.mark.slow
def test_a_side_is_split_where_both_edits_have_a_size(roberta):
    space, trial = space_of(roberta), RandomTrial(5)
    splits = 0
    for _ in range(400):
        candidate = space.suggest(trial)
        parameters = candidate.parameters
        for side in ("attention", "ffn"):
            if f"{side}_split" not in parameters:
                continue
            splits += 1
            points = space.points_in(candidate.configuration)
            assert points is not None
            first, second = points[side]
            edits = getattr(candidate.configuration, side)
            halves = [count_edits(half, roberta).stored for half in (edits[: len(first.edits)], edits)]
            # one more row at one sublayer of each edit of the pair, and what the smallest edits take
            steps = sum(count_edits(point.edits, roberta).stored for point in (first, second))
            assert abs(halves[0] - float(parameters[f"{side}_split"]) * halves[1]) <= steps
    assert splits > 50


@pytest.mark.slow
def test_structure_draws_use_the_budget_and_pair_half_the_time(roberta):
    space = space_of(roberta, dataclasses.replace(TWO, layers=("all", "pattern")))
    draws = StructureDraws(space, 1)

    used, numbers, patterns = [], [], set()
    for number in range(300):
        values = draws.draw(number)
        assert set(values) <= set(space.parameters())
        candidate = space.suggest(DrawnTrial(values, number))
        used.append(candidate.counts.stored / space.budget)
        numbers += [values[f"{part}.edits"] for part in ("attention", "ffn") if f"{part}.edits" in values]
        patterns |= {edit.layers for edit in candidate.configuration.edits if isinstance(edit.layers, LayerPattern)}
    assert sorted(used)[150] >= 0.97
    assert sum(share < 0.5 for share in used) <= 0.15 * 300
    # a share of a half among about five hundred: three deviations are 7%
    assert numbers.count("2") / len(numbers) == pytest.approx(0.5, abs=0.07)
    assert len(patterns) > 40


@pytest.mark.slow
@pytest.mark.parametrize("method", ["inducer_plus_lora_q:rk=4,sl=2", "mam_inducer:rk=4,sl=2,s=2,init=lora"])
def test_published_methods_with_two_edits_are_points_of_the_space(method, roberta):
    space = space_of(roberta, INDUCERS)
    candidate = space.suggest_published(method, RandomTrial(1))
    points = space.points_in(candidate.configuration)
    assert points is not None
    assert len(points["attention"]) == 2
    parameters = space.parameters_of(candidate.configuration, peak_lrs=rates_of(candidate))
    assert parameters is not None
    assert parameters["attention.edits"] == "2"
    again = space.suggest(parameters)
    assert space.points_in(again.configuration) == points
    # the sizes are the published ones but for a row of each edit, which the order of solving may move
    steps = sum(count_edits(edits_of(one), roberta).stored for one in points.values())
    for side in ("attention", "ffn"):
        ours, theirs = (
            [count_edits((edit,), roberta).stored for edit in getattr(one.configuration, side)]
            for one in (again, candidate)
        )
        assert sorted(ours) == pytest.approx(sorted(theirs), abs=steps)
    assert (
        space_of(roberta, dataclasses.replace(INDUCERS, edits_per_side=(1,))).points_in(candidate.configuration) is None
    )


def test_lora_at_q_and_v_stays_one_structure(roberta):
    space = space_of(roberta)
    points = space.points_in(space.suggest_published("lora_qv", RandomTrial(1)).configuration)
    assert points is not None
    assert len(points["attention"]) == 1


def test_order_of_two_edits_has_no_effect(roberta):
    space = space_of(roberta)
    pair = space.pairs["attention"].pair_or_next(space.structures["attention"][0], space.structures["attention"][200])
    one, other = (Configuration(edits=edits_of(points)) for points in (pair, pair[::-1]))
    assert fingerprint(one, roberta) == fingerprint(other, roberta)
    assert space.points_in(one) == space.points_in(other) == {"attention": pair}
    assert space.pairs["attention"].pair(*pair[::-1]) == pair


def test_the_partners_of_a_structure_are_those_that_may_go_with_it(roberta):
    space = space_of(roberta)
    structures, pairs = space.structures["attention"], space.pairs["attention"]
    first = next(point for point in structures if dict(point.path)["form"] == "bottleneck")
    partners = pairs.partners(first)
    assert partners
    assert all(pairs.are_legal(first, partner) for partner in partners)
    assert len(partners) == sum(pairs.are_legal(first, other) for other in structures)
    pair = pairs.pair(first, partners[-1])
    assert tuple(space.questions["attention"].match(edits_of(pair))) == pair


def test_incompatible_second_edit_becomes_the_next_compatible_one(roberta):
    space = space_of(roberta)
    structures, pairs = space.structures["ffn"], space.pairs["ffn"]
    refused = next(one for one in structures[1:] if not pairs.are_legal(structures[0], one))
    pair = pairs.pair_or_next(structures[0], refused)
    assert pairs.are_legal(*pair)
    assert structures[0] in pair


def test_second_edit_parameters_exist_only_where_it_is_possible(roberta):
    plain, two = space_of(roberta, SpaceOptions()), space_of(roberta)
    assert set(plain.parameters()) < set(two.parameters())
    assert all(
        "second" in name or "edits" in name or "split" in name for name in two.parameters().keys() - plain.parameters()
    )
    assert two.parameters()["attention_split"] == FloatRange(low=0.05, high=0.95)
    assert not plain.pairs
    unsized = space_of(roberta, dataclasses.replace(TWO, attention_forms=("const", "diag"), ffn_forms=("bottleneck",)))
    assert "attention.edits" in unsized.parameters()
    assert "attention_split" not in unsized.parameters()
    tight = space_of(roberta, dataclasses.replace(TWO, attention_forms=("bottleneck",), ffn_forms=()), budget=19_000)
    assert set(tight.parameters()) & {"attention.edits", "attention_split"} == set()
