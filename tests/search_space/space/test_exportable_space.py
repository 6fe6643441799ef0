"""Spaces of configurations that one adapter of peft can express."""

from itertools import product

import pytest

from search_space.configuration import Configuration
from search_space.exportability import inexpressible
from search_space.forms import PeftKind
from search_space.space.options import SpaceOptions
from search_space.space.points import ATTENTION, FFN, points_of
from search_space.space.random_draw import RandomTrial
from search_space.space.space import SearchSpace

LORA = SpaceOptions(attention_forms=("lowrank",), ffn_forms=("lowrank",), exportable="peft", size=(0.125, 1.0))


@pytest.mark.parametrize("backbone", ["roberta_base", "gpt2", "t5_small", "llama3_2_1b", "bart_large"])
def test_every_structure_of_an_exportable_space_fits_one_adapter(backbone, shape_named):
    shape = shape_named(backbone)
    space = SearchSpace(shape=shape, budget=shape.parameters // 100, options=LORA)
    sides = [[point.edits for point in points_of(part, shape, LORA)] for part in (ATTENTION, FFN)]
    assert all(len(side) > 5 for side in sides)
    for edits in product(*sides):
        both = Configuration(edits=tuple(edit for side in edits for edit in side))
        assert inexpressible(both, shape) == {}
    for seed in range(20):
        candidate = space.suggest(RandomTrial(seed))
        assert inexpressible(candidate.configuration, shape) == {}


def test_space_without_the_limit_has_structures_that_peft_lacks(shape_named):
    shape = shape_named("roberta_base")
    space = SearchSpace(
        shape=shape, budget=600_000, options=SpaceOptions(attention_forms=("lowrank",), ffn_forms=("lowrank",))
    )
    found = [inexpressible(space.suggest(RandomTrial(seed)).configuration, shape) for seed in range(20)]
    assert any(found)


@pytest.mark.parametrize(
    ("forms", "kind"),
    [
        (("bottleneck", "diag", "lowrank"), PeftKind.LORA),
        (("diag",), PeftKind.IA3),
        (("dora", "diag"), PeftKind.DORA),
        (("bottleneck",), None),
    ],
)
def test_exportable_space_has_one_kind_of_adapter(forms, kind):
    assert SpaceOptions(attention_forms=forms, ffn_forms=(), exportable="peft").peft_kind is kind


def test_published_methods_that_peft_lacks_are_left_out(shape_named):
    space = SearchSpace(shape=shape_named("roberta_base"), budget=600_000, options=LORA)
    assert set(space.published_that_fit()) == {"head_only", "lora_qv", "lora_ffn", "lora_attention", "lora_all"}
