"""The tree of a part: every point is reached by one path, and a name always stands for the same choices."""

from collections.abc import Callable, Sequence

import pytest

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.counting.budget import smallest_count
from search_space.forms import Bottleneck, Init, Phm
from search_space.space.leaves import Leaf
from search_space.space.options import SpaceOptions
from search_space.space.tree import Point, Tree, least_cost, points_of

DEPENDENT = SpaceOptions(
    attention_forms=("softmax_memory", "bottleneck", "phm"),
    gates=("add", "scale_learned", "tanh", "lse_convex", "inducer"),
    inits=(Init.LORA, Init.BERT),
    biases=("usual", "without"),
    reparameterizations=(None, 8),
)


class Route:
    """Takes the choices of a route, then the first ones, and notes what was asked."""

    def __init__(self, route: Sequence[int]) -> None:
        self.route = route
        self.asked: list[tuple[str, str]] = []
        self.forks: list[int] = []

    def choose(self, name: str, choices: Sequence[str]) -> str:
        index = self.route[len(self.forks)] if len(self.forks) < len(self.route) else 0
        self.forks.append(len(choices))
        self.asked.append((name, choices[index]))
        return choices[index]


def paths(tree: Tree) -> dict[tuple[tuple[str, str], ...], Point]:
    """Every path of a tree with the point it leads to."""
    found, route = {}, list[int]()
    while True:
        walked = Route(route)
        point = tree.walk(walked.choose)
        found[tuple(walked.asked)] = point
        route = [*route, *([0] * (len(walked.forks) - len(route)))]
        while route and route[-1] + 1 == walked.forks[len(route) - 1]:
            route.pop()
        if not route:
            return found
        route[-1] += 1


@pytest.mark.parametrize("options", [SpaceOptions(), DEPENDENT])
@pytest.mark.parametrize("backbone", ["roberta_base", "qwen3_0_6b"])
def test_every_point_has_one_path_and_a_name_one_set_of_choices(
    options: SpaceOptions, backbone: str, shape_named: Callable[[str], BackboneShape]
) -> None:
    points = points_of("attention", shape_named(backbone), options)
    tree = Tree("attention", points)
    parameters, reached = tree.parameters(), paths(tree)
    assert sorted(map(str, reached.values())) == sorted(map(str, points))
    for path in reached:
        assert len({name for name, _ in path}) == len(path)  # nothing is asked twice
        for name, value in path:
            assert value in parameters[name]
    assert {name for path in reached for name, _ in path} == set(parameters)
    assert all(len(set(choices)) == len(choices) >= 2 for choices in parameters.values())


def test_the_names_of_the_usual_decisions(roberta: BackboneShape) -> None:
    parameters = Tree("attention", points_of("attention", roberta, SpaceOptions())).parameters()
    plain = ("add", "scale", "scale_learned")
    assert parameters["attention.form"] == ("softmax_memory", "bottleneck", "lowrank", "diag", "const")
    assert parameters["attention.bottleneck.head.read"] == ("q", "x_attn", "head")
    assert parameters["attention.bottleneck.o.q.heads"] == ("single", "query_heads")
    assert parameters["attention.softmax_memory.prefix_gate"] == ("lse_convex", *plain)
    assert parameters["attention.bottleneck.inducer_gate"] == (*plain, "inducer", "inducer:4")
    assert parameters["attention.lowrank.gate"] == plain
    assert not any("[" in name for name in parameters)


def test_another_set_of_choices_of_the_same_decision_has_another_name(roberta: BackboneShape) -> None:
    parameters = Tree("attention", points_of("attention", roberta, DEPENDENT)).parameters()
    gates = {name: choices for name, choices in parameters.items() if name.startswith("attention.bottleneck.gate")}
    assert gates == {
        "attention.bottleneck.gate": ("add", "scale_learned", "tanh"),
        "attention.bottleneck.gate[add,scale_learned]": ("add", "scale_learned"),
    }


def test_activations_and_scales_go_with_some_points(roberta: BackboneShape) -> None:
    options = SpaceOptions(attention_forms=("phm", "lowrank", "bottleneck"))
    for point in points_of("attention", roberta, options):
        (edit, *_) = point.edits()
        assert point.has_activation is isinstance(edit.form, Bottleneck | Phm)
        assert point.has_scale is (edit.gate.name == "scale")


@pytest.mark.parametrize("side", ["attention", "ffn"])
def test_the_least_cost_is_that_of_every_bottleneck_at_its_smallest(side: str, odd: BackboneShape) -> None:
    options = SpaceOptions(
        attention_forms=("softmax_memory", "lowrank", "bottleneck", "diag"), gates=("add", "inducer")
    )
    for point in points_of(side, odd, options):
        assert least_cost(point, odd, options) == smallest_count(Configuration(edits=point.edits()), odd)


def test_plain_gates_cost_what_the_widest_of_them_does(roberta: BackboneShape) -> None:
    options, leaf = SpaceOptions(), Leaf(side="ffn", form="lowrank", write="f", read="f")
    costs = {
        gate: least_cost(Point(leaf=leaf, attributes=(), gate=gate), roberta, options)
        for gate in ("add", "scale", "scale_learned")
    }
    assert set(costs.values()) == {12 * (2 * 768 + 1)}
    without = SpaceOptions(gates=("add",))
    assert least_cost(Point(leaf=leaf, attributes=(), gate="add"), roberta, without) == 12 * 2 * 768


def test_a_point_beside_wider_steps_costs_what_those_make_of_it(roberta: BackboneShape) -> None:
    options = SpaceOptions(gates=("add",))
    wide = Point(leaf=Leaf(side="ffn", form="lowrank", write="f", read="f"), attributes=(), gate="add")
    assert least_cost(wide, roberta, options, step=4) == 4 * 12 * 2 * 768
    at_heads = Point(leaf=Leaf(side="attention", form="lowrank", write="head", read="q"), attributes=(), gate="add")
    assert least_cost(at_heads, roberta, options, step=64) is not None
    assert least_cost(at_heads, roberta, options, step=65) is None  # a head is 64 wide
