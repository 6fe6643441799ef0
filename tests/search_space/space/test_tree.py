"""The tree of a part: every point is reached by one path, and a name always stands for the same choices."""

import pytest
from support.routes import Route, every_route

from search_space.forms import Init
from search_space.space.options import FormValues, SpaceOptions
from search_space.space.part_space import DecisionTree
from search_space.space.points import points_of
from search_space.space.product import Point

DEPENDENT = SpaceOptions(
    attention_forms=("softmax_memory", "bottleneck", "phm"),
    gates=("add", "scale_learned", "tanh", "lse_convex", "inducer"),
    values=FormValues(inits=(Init.LORA, Init.BERT), biases=("usual", "without"), reparameterizations=(None, 8)),
)


def paths(tree: DecisionTree) -> dict[tuple[tuple[str, str], ...], Point]:
    """Return every path of a tree with its point."""

    def walk(route: Route) -> tuple[tuple[tuple[str, str], ...], Point]:
        point = tree.walk(route.choose)
        return tuple(route.chosen), point

    return dict(every_route(walk))


@pytest.mark.parametrize("options", [SpaceOptions(), DEPENDENT])
@pytest.mark.parametrize("backbone", ["roberta_base", "qwen3_0_6b"])
def test_every_point_has_one_path_and_a_name_one_set_of_choices(options, backbone, shape_named):
    points = points_of("attention", shape_named(backbone), options)
    tree = DecisionTree("attention", points)
    parameters, reached = tree.choices, paths(tree)
    assert sorted(map(str, reached.values())) == sorted(map(str, points))
    for path in reached:
        assert len({name for name, _ in path}) == len(path)  # nothing is asked twice
        for name, value in path:
            assert value in parameters[name]
    assert {name for path in reached for name, _ in path} == set(parameters)
    assert all(len(set(choices)) == len(choices) >= 2 for choices in parameters.values())


def test_the_names_of_the_usual_decisions(roberta):
    parameters = DecisionTree("attention", points_of("attention", roberta, SpaceOptions())).choices
    plain = ("add", "scale", "scale_learned")
    assert parameters["attention.form"] == ("softmax_memory", "bottleneck", "lowrank", "diag", "const")
    assert parameters["attention.bottleneck.head.read"] == ("q", "x_attn", "head")
    assert parameters["attention.bottleneck.o.q.heads"] == ("single", "query_heads")
    assert parameters["attention.softmax_memory.prefix_gate"] == ("lse_convex", *plain)
    assert parameters["attention.bottleneck.inducer_gate"] == (*plain, "inducer", "inducer:4")
    assert parameters["attention.lowrank.gate"] == plain
    assert not any("[" in name for name in parameters)


def test_another_set_of_choices_of_the_same_decision_has_another_name(roberta):
    parameters = DecisionTree("attention", points_of("attention", roberta, DEPENDENT)).choices
    gates = {name: choices for name, choices in parameters.items() if name.startswith("attention.bottleneck.gate")}
    assert gates == {
        "attention.bottleneck.gate": ("add", "scale_learned", "tanh"),
        "attention.bottleneck.gate[add,scale_learned]": ("add", "scale_learned"),
    }


@pytest.mark.parametrize("options", [SpaceOptions(), DEPENDENT])
def test_the_answers_of_a_point_lead_to_it(options, qwen):
    points = points_of("attention", qwen, options)
    tree = DecisionTree("attention", points)
    for point in points:
        choices = tree.choices_to(point)
        assert tree.walk(choices.pop) is point
        assert not choices  # all of them were asked for
