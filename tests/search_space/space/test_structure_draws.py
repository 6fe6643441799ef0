"""Draws that are uniform over structures: every one as likely within its form, forms side by side, the budget used."""

from collections import Counter

import pytest
from support.routes import DrawnTrial
from support.simulated_search import whole_space

from search_space.forms import OwnNorm
from search_space.space.options import FormValues, SpaceOptions
from search_space.space.space import Candidate, SearchSpace
from search_space.space.structure_draws import StructureDraws

DRAWS = 2000


def candidates(space: SearchSpace, count: int, seed: int = 1) -> list[Candidate]:
    draws = StructureDraws(space, seed)
    return [space.suggest(DrawnTrial(draws.draw(number), number)) for number in range(count)]


@pytest.fixture(scope="module")
def drawn() -> list[Candidate]:
    return candidates(whole_space(), DRAWS)


def test_forms_are_drawn_evenly_and_sizeless_ones_less(drawn):
    cells = Counter(
        (one.parameters["attention.form"], one.parameters["ffn.form"])
        for one in drawn
        if one.parameters["placement"] == "both"
    )
    assert sum(cells.values()) == pytest.approx(0.7 * DRAWS, abs=3)
    weights = {"softmax_memory": 1.0, "bottleneck": 1.0, "lowrank": 1.0, "diag": 0.25, "const": 0.25}
    for (attention, ffn), count in cells.items():
        expected = 0.7 * DRAWS * weights[attention] * weights[ffn] / sum(weights.values()) ** 2
        # a sequence without clusters is closer to what is expected than chance, whose deviation is a square root
        assert abs(count - expected) < 2 * expected**0.5


def test_a_draw_is_its_seeds_and_its_numbers(drawn):
    space = whole_space()
    again, other = candidates(space, 20), candidates(space, 20, seed=2)
    assert [one.fingerprint for one in again] == [one.fingerprint for one in drawn[:20]]
    assert not {one.fingerprint for one in again} & {one.fingerprint for one in other}
    draws = StructureDraws(space, 1)
    assert len({tuple(draws.draw(3, retry).items()) for retry in range(6)}) == 6


@pytest.mark.parametrize(
    "options",
    [
        SpaceOptions(attention_forms=()),
        SpaceOptions(layers=("all", "range", "spindle"), values=FormValues(norms=tuple(OwnNorm))),
        SpaceOptions(attention_forms=("const",), ffn_forms=("const",)),
    ],
    ids=["one side", "open dimensions", "nothing to size"],
)
def test_every_space_can_be_drawn_from(options):
    shape = whole_space().shape
    space = SearchSpace(shape=shape, budget=600_000, options=options)
    assert len({one.fingerprint for one in candidates(space, 30)}) > 20


def test_kinds_of_attention_are_drawn_independently(bart):
    bart_space = SearchSpace(shape=bart, budget=2_000_000, options=SpaceOptions(sites="separate"))
    drawn = candidates(bart_space, 200)
    several = [one for one in drawn if one.configuration.attention and one.configuration.ffn]
    assert len(several) == pytest.approx(140, abs=2)
    assert len({one.parameters["placement"] for one in drawn}) == len(bart_space.placements)
