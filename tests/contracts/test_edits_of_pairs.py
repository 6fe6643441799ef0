"""Two edits on a side, sized by a split of its budget, have every property that one edit has."""

import pytest
import torch
from support.tiny_backbones import parameters, rig_of

from search_space.space.options import SpaceOptions
from search_space.space.random_draw import RandomTrial
from search_space.space.space import SearchSpace
from trial_runner.port_discovery.edit_properties import check_everything


@pytest.mark.slow
@pytest.mark.parametrize("backbone", parameters("roberta", "qwen3"))
def test_a_configuration_with_two_edits_on_both_sides_trains(backbone, tiny_backbone):
    torch.set_num_threads(1)
    rig = rig_of(tiny_backbone(backbone))
    space = SearchSpace(shape=rig.backbone.shape, budget=6_000, options=SpaceOptions(edits_per_side=(1, 2)))
    draws = (space.suggest(RandomTrial(seed)) for seed in range(400))
    candidate = next(one for one in draws if one.parameters.keys() >= {"attention_split", "ffn_split"})
    assert len(candidate.configuration.attention) > 1
    assert len(candidate.configuration.ffn) > 1
    check_everything(rig, candidate.configuration)
    rig.attachment.detach()
