"""The size of a space, against the enumeration of everything that can be proposed."""

import dataclasses
import itertools
import math
from collections.abc import Iterator

import pytest

from dashboards.terminal.spaces import view_space
from search_space.canonical import canonical
from search_space.configuration import Configuration
from search_space.dimensions import Activation, Site
from search_space.rules import writable_ports
from search_space.space.layer_choice import every_choice, stack_depth
from search_space.space.options import FormValues, SpaceOptions
from search_space.space.points import FFN
from search_space.space.product import readable
from search_space.space.space import SearchSpace

SMALL = SpaceOptions(
    attention_forms=("diag", "bottleneck"),
    ffn_forms=("lowrank", "const"),
    gates=("add", "scale", "inducer"),
    values=FormValues(activations=(Activation.RELU, Activation.TANH), scales=(2.0, 3.0)),
)


def structures(space: SearchSpace) -> Iterator[Configuration]:
    """Yield every structure that can be proposed, by brute force."""
    layers = every_choice(space.layers, stack_depth(space.shape))
    for parts in space.placements.values():
        sides = dict.fromkeys(part == FFN for part in parts)
        for chosen in itertools.product(layers, repeat=len(sides)):
            by_side = dict(zip(sides, chosen, strict=True))
            variants = []
            for part in parts:
                singles = space.structures[part]
                either = [(one,) for one in singles]
                if part in space.pairs:
                    pairs = itertools.combinations(singles, 2)
                    either += [pair for pair in pairs if space.pairs[part].are_legal(*pair)]
                where = by_side[part == FFN]
                variants.append([[edit for one in points for edit in one.at_layers(where)] for points in either])
            for several in itertools.product(*variants):
                yield Configuration(edits=tuple(edit for edits in several for edit in edits))


@pytest.mark.parametrize(
    "options",
    [
        SMALL,
        dataclasses.replace(SMALL, attention_forms=("diag",), ffn_forms=("const",), layers=("all", "spindle")),
        dataclasses.replace(SMALL, edits_per_side=(1, 2), attention_forms=("diag",), ffn_forms=("const", "diag")),
        pytest.param(
            SpaceOptions(attention_forms=("const",), ffn_forms=("const",), sites="separate"),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["plain", "layers", "two edits", "separate"],
)
def test_space_size_equals_enumeration_of_distinct_functions(options, odd):
    space = SearchSpace(shape=odd, budget=20_000, options=options)
    found = view_space(space)
    everything = list(structures(space))
    assert found.proposed == len(everything) == len({canonical(one, odd) for one in everything}) < found.product


def test_each_side_has_its_own_choice_of_layers(odd):
    options = dataclasses.replace(SMALL, attention_forms=("diag",), ffn_forms=("const",), layers=("all", "range"))
    space = SearchSpace(shape=odd, budget=20_000, options=options)
    found = view_space(space)
    assert found.layer_choices > 2
    assert found.proposed == len(list(structures(space)))


@pytest.mark.parametrize("edits", [(1,), (1, 2)])
def test_raw_product_counts_legal_and_illegal_combinations(edits, odd):
    options = dataclasses.replace(SMALL, attention_forms=("diag",), ffn_forms=("const",), edits_per_side=edits)
    found = view_space(SearchSpace(shape=odd, budget=20_000, options=options))
    # each tensor that can be written with each that can be read or none, behind each gate: add, scale by 2 and by 3,
    # two inducers, and mul where a form multiplies
    sites = {"attention": (Site.ATTENTION, 6), "ffn": (Site.FFN, 5)}
    single = {part: len(writable_ports(site)) * len(readable(site)) * gates for part, (site, gates) in sites.items()}
    some = {part: count if edits == (1,) else count + math.comb(count, 2) for part, count in single.items()}
    assert {part: size.product for part, size in found.sizes.items()} == some
    assert found.product == (some["attention"] + 1) * (some["ffn"] + 1) - 1


def test_a_space_without_a_search_has_no_structures(roberta):
    options = SpaceOptions(attention_forms=(), ffn_forms=(), published=("lora_qv:r=8",))
    found = view_space(SearchSpace(shape=roberta, budget=623_228, options=options))
    assert (found.product, found.proposed, found.placements) == (0, 0, ())


def test_dimensions_list_their_choices(roberta):
    values = view_space(SearchSpace(shape=roberta, budget=623_228, options=SMALL)).dimensions
    assert list(values) == ["attention", "ffn"]
    assert values["attention"]["form"] == ("diag", "bottleneck")
    assert values["attention"]["activation"] == ("relu", "tanh")
    assert values["ffn"]["scale"] == ("2.0", "3.0")
    assert "activation" not in values["ffn"]
    assert set(values["attention"]["gate"]) == {"add", "scale", "inducer", "inducer:4", "mul"}
