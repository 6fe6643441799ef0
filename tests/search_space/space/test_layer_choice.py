"""Layer choices in a search: whatever is answered, some layers of every stack are chosen, and all can be."""

import itertools

import pytest

from search_space.layers import AllLayers, LayerPattern, LayerRange, Layers, SpindleGroups
from search_space.space.layer_choice import (
    BITS,
    available_layers,
    every_choice,
    group_choices,
    layer_parameters,
    sixth_names,
    stack_depth,
    suggest_layers,
)
from search_space.space.trial_protocol import FloatRange, ParameterRecorder

ALL = ("all", "range", "spindle")


def suggested(depth: int, **answers: str | float) -> Layers:
    """Suggest layers for answers by the last word of their names, or by the number of a sixth."""
    given = {f"ffn.{name.replace('_of_', '.')}": value for name, value in answers.items()}
    ranges = dict.fromkeys(("ffn.first_layer", "ffn.layer_share"), FloatRange(low=0.0, high=1.0))
    return suggest_layers("ffn", (*ALL, "pattern"), depth, ParameterRecorder(given, ranges))


@pytest.mark.parametrize("depth", [1, 2, 6, 12])
def test_all_ranges_are_suggested(depth):
    steps = [number / 100 for number in range(101)]
    found = {suggested(depth, layers="range", first_layer=x, layer_share=y) for x, y in itertools.product(steps, steps)}
    assert found == {LayerRange(first=first, last=last) for first in range(depth) for last in range(first, depth)}


def test_range_is_a_share_of_the_layers_from_its_first():
    assert suggested(12, layers="range", first_layer=0.5, layer_share=0.5) == LayerRange(first=6, last=9)
    assert suggested(12, layers="range", first_layer=0.0, layer_share=0.5) == LayerRange(first=0, last=6)


def test_all_layers_and_groups_are_suggested():
    assert suggested(12, layers="all") == AllLayers()
    assert suggested(12, layers="spindle", groups="1+4") == SpindleGroups(groups=(1, 4))


def test_all_four_groups_are_a_choice_unless_all_layers_are():
    assert len(group_choices(("spindle",))) == 15
    assert set(group_choices(("spindle",))) - set(group_choices(ALL)) == {"1+2+3+4"}


def test_a_spindle_needs_four_layers():
    assert available_layers(ALL, 4) == ALL
    assert available_layers(ALL, 3) == ("all", "range")
    assert available_layers(("spindle",), 3) == ()


@pytest.mark.parametrize("depth", [6, 7, 12, 24, 25])
def test_all_nonempty_sets_of_sixths_are_suggested(depth):
    found = {
        bits: suggested(depth, layers="pattern", **{f"pattern_of_{place}": BITS[bit] for place, bit in enumerate(bits)})
        for bits in itertools.product((False, True), repeat=6)
    }
    assert len(set(found.values())) == len({layers.block_indices(depth) for layers in found.values()}) == 63
    assert found[(False,) * 6] == found[(True,) * 6]
    for bits, layers in found.items():
        assert layers.block_indices(depth)
        parameters = layer_parameters("ffn", ("pattern",), depth, layers)
        assert parameters is not None
        assert [parameters[name] for name in sixth_names("ffn")] == [BITS[bit or not any(bits)] for bit in bits]


def test_sixths_are_consecutive_and_of_even_length():
    for depth in (6, 7, 11, 12, 24, 28):
        sixths = [LayerPattern(sixths=(number,)).block_indices(depth) for number in range(1, 7)]
        assert [index for sixth in sixths for index in sixth] == list(range(depth))
        assert {len(sixth) for sixth in sixths} <= {depth // 6, depth // 6 + 1}


def test_a_pattern_needs_six_layers():
    assert available_layers((*ALL, "pattern"), 6) == (*ALL, "pattern")
    assert available_layers((*ALL, "pattern"), 5) == ALL
    assert LayerPattern(sixths=(1, 2)).block_indices(5) == ()


def test_the_depth_is_that_of_the_shallower_stack(odd, roberta):
    assert stack_depth(odd) == 2
    assert stack_depth(roberta) == 12
    for layers in every_choice(ALL[:2], stack_depth(odd)):
        assert layers.block_indices(2)
        assert layers.block_indices(3)


@pytest.mark.parametrize(
    ("names", "number"),
    [(("all",), 1), (("range",), 78), (("spindle",), 15), (("range", "all", "spindle"), 93), (("pattern",), 63)],
)
def test_every_choice_is_counted_once(names, number):
    choices = every_choice(names, 12)
    assert len(choices) == len(set(choices)) == number
