"""The points of a part on each kind of backbone: every legal one is there, near-duplicates are not."""

import dataclasses

import pytest
from support.covers import legal
from support.edits import edit

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.dimensions import Activation, Heads, Site
from search_space.forms import Constant, Diagonal, LowRank
from search_space.gates import Multiply
from search_space.parameter_counts.counts import count
from search_space.parameter_counts.flops import extra_flops
from search_space.space.options import SEARCHED_FORMS, SEARCHED_GATES, FormValues, SpaceOptions
from search_space.space.points import PointCost, min_cost, points_of
from search_space.space.product import Point


def points(
    part: str,
    shape: BackboneShape,
    forms: tuple[str, ...] = SEARCHED_FORMS,
    gates: tuple[str, ...] = ("add",),
    **options: object,
) -> tuple[Point, ...]:
    """Return the points of a part with some forms and gates."""
    given = dict.fromkeys(("attention_forms", "ffn_forms"), forms)
    return points_of(part, shape, SpaceOptions(**given, gates=gates, **options))


@pytest.mark.parametrize("backbone", ["roberta_base", "bart_large", "gpt2", "qwen3_0_6b", "t5_small"])
@pytest.mark.parametrize("part", ["attention", "ffn"])
def test_with_near_duplicates_the_points_are_all_that_is_legal(part, backbone, shape_named):
    shape = shape_named(backbone)
    values = FormValues(biases=("with", "without"), key_widths=(None, 2), reparameterizations=(None, 5))
    everything = points(part, shape, gates=SEARCHED_GATES, near_duplicates=True, values=values)
    site = Site.FFN if part == "ffn" else Site.ATTENTION
    few = {"activation": ("relu",), "init": ("lora",), "norm": ("none",), "sharing": ("shared",), "factors": ("1",)}
    gates = ("scale_learned:channel", "scale_learned:head")
    wanted = {one.edits for one in legal(site, shape, few) if dict(one.path)["gate"] not in gates}
    single = [point.with_value("activation", Activation.RELU) for point in everything if len(point.edits) == 1]
    assert {point.edits for point in single} == wanted
    assert set(points(part, shape, gates=SEARCHED_GATES, values=values)) <= set(everything)


def test_several_writes_are_an_edit_each(roberta):
    found = {(point.path[0][1], point.path[1][1]): point.edits for point in points("attention", roberta)}
    lora = (("q", "x_attn"), ("k", "ctx"), ("v", "ctx"), ("o", "concat"))
    assert found["lowrank", "q+k+v+o"] == tuple(edit(write, read, LowRank(width=1)) for write, read in lora)
    assert found["const", "q+v"] == tuple(edit(port, None, Constant()) for port in ("q", "v"))
    assert found["diag", "k+v"] == tuple(edit(port, port, Diagonal(), Multiply()) for port in ("k", "v"))


def parameters_of(point: Point, shape: BackboneShape, options: SpaceOptions, step: int = 1) -> int:
    least = min_cost(point, shape, options, step)
    assert least is not None
    return least.parameters


@pytest.mark.parametrize("part", ["attention", "ffn"])
def test_the_least_cost_is_that_of_every_bottleneck_at_its_smallest(part, odd):
    options = SpaceOptions(
        attention_forms=("softmax_memory", "lowrank", "bottleneck", "diag"), gates=("add", "inducer")
    )
    for point in points_of(part, odd, options):
        least = min_cost(point, odd, options)
        assert least is not None
        smallest = Configuration(edits=point.edits)
        assert least == PointCost(parameters=count(smallest, odd).stored, extra_flops=extra_flops(smallest, odd))


def of_path(found: tuple[Point, ...], *start: str) -> list[Point]:
    return [point for point in found if tuple(text for _, text in point.path)[: len(start)] == start]


def test_plain_gates_cost_as_much_as_the_largest(roberta):
    options = SpaceOptions(attention_forms=(), ffn_forms=("lowrank", "const", "diag"))
    found = of_path(points_of("ffn", roberta, options), "lowrank", "f", "f")
    assert [dict(point.path)["gate"] for point in found] == ["add", "scale", "scale_learned"]
    assert {parameters_of(point, roberta, options) for point in found} == {12 * (2 * 768 + 1)}
    without = dataclasses.replace(options, gates=("add",))
    assert parameters_of(found[0], roberta, without) == 12 * 2 * 768
    for form, cost in (("const", 12 * 768), ("diag", 12 * 768)):  # which have no scale
        (point,) = of_path(points_of("ffn", roberta, options), form, "f", *(("none",) if form == "const" else ("f",)))
        assert parameters_of(point, roberta, options) == cost


def test_cost_of_a_point_depends_on_the_width_step(roberta):
    options = SpaceOptions(attention_forms=("lowrank",), ffn_forms=("lowrank",), gates=("add",))
    (wide,) = of_path(points_of("ffn", roberta, options), "lowrank", "f", "f")
    assert isinstance(wide.edits[0].form, LowRank)
    assert parameters_of(wide, roberta, options, step=4) == 4 * 12 * 2 * 768
    (at_heads,) = of_path(points_of("attention", roberta, options), "lowrank", "head", "q")
    assert at_heads.edits[0].heads is Heads.QUERY
    assert min_cost(at_heads, roberta, options, step=64) is not None
    assert min_cost(at_heads, roberta, options, step=65) is None  # a head is 64 wide
