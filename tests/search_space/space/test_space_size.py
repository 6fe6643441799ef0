"""The size of a space: exact, against the enumeration of every proposal."""

import dataclasses
import itertools
from collections.abc import Iterator

import pytest

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.dimensions import Activation
from search_space.space.layer_choice import depth_of, every_choice
from search_space.space.options import SpaceOptions
from search_space.space.points import FFN
from search_space.space.space import SearchSpace
from search_space.space.space_size import SpaceSize, dimension_values, space_size

SMALL = SpaceOptions(
    attention_forms=("diag", "bottleneck"),
    ffn_forms=("lowrank", "const"),
    gates=("add", "scale", "inducer"),
    activations=(Activation.RELU, Activation.TANH),
    scales=(1.0, 3.0),
)


def structures(space: SearchSpace) -> Iterator[Configuration]:
    """Every structure that can be proposed, by brute force."""
    layers = every_choice(space.layers, depth_of(space.shape))
    for parts in space.placements.values():
        sides = dict.fromkeys(part == FFN for part in parts)
        for chosen in itertools.product(layers, repeat=len(sides)):
            by_side = dict(zip(sides, chosen, strict=True))
            variants = []
            for part in parts:
                either = (*((one,) for one in space.structures[part]), *space.pairs.get(part, ()))
                where = by_side[part == FFN]
                variants.append([[edit for one in points for edit in one.at_layers(where)] for points in either])
            for several in itertools.product(*variants):
                yield Configuration(edits=tuple(edit for edits in several for edit in edits))


def counted(shape: BackboneShape, options: SpaceOptions, budget: int) -> tuple[SearchSpace, SpaceSize]:
    space = SearchSpace(shape=shape, budget=budget, options=options)
    return space, space_size(space)


@pytest.mark.parametrize(
    "options",
    [
        SMALL,
        dataclasses.replace(SMALL, near_duplicates=True),
        dataclasses.replace(SMALL, attention_forms=("diag",), ffn_forms=("const",), layers=("all", "range")),
        dataclasses.replace(SMALL, edits_per_side=(1, 2), attention_forms=("diag",), ffn_forms=("const", "diag")),
        dataclasses.replace(
            SMALL, edits_per_side=(1, 2), attention_forms=("diag",), ffn_forms=("const",), near_duplicates=True
        ),
        pytest.param(
            SpaceOptions(attention_forms=("const",), ffn_forms=("const",), sites="separate"),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["plain", "near-duplicates", "layers", "two edits", "two edits and near-duplicates", "separate"],
)
def test_structures_are_counted_as_enumeration_counts_them(options, odd):
    space, found = counted(odd, options, 20_000)
    assert found.proposed == len(list(structures(space))) < found.product
    assert found.placements == len(space.placements)


def test_a_space_without_a_search_has_no_structures(roberta):
    options = SpaceOptions(attention_forms=(), ffn_forms=(), published=("lora_qv:r=8",))
    _, found = counted(roberta, options, 623_228)
    assert (found.product, found.proposed, found.placements) == (0, 0, 0)


def test_dimensions_list_what_can_be_chosen(roberta):
    space = SearchSpace(shape=roberta, budget=623_228, options=SMALL)
    values = dimension_values(space)
    assert list(values) == ["attention", "ffn"]
    assert values["attention"]["form"] == ("diag", "bottleneck")
    assert values["attention"]["activation"] == ("relu", "tanh")
    assert values["ffn"]["scale"] == ("1.0", "3.0")
    assert "activation" not in values["ffn"]
    assert set(values["attention"]["gate"]) == {"add", "scale", "inducer", "inducer:4", "mul"}
