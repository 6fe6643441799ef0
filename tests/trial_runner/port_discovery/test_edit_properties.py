"""Violations of the contract: violated properties, and initial changes that norms in float32 round away."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from support.edits import edit
from support.tiny_backbones import rigs_of

from search_space.configuration import Configuration
from search_space.dimensions import Activation, Port
from search_space.forms import LowRank, Phm
from search_space.gates import SigmoidGate
from search_space.layers import LayerRange
from trial_runner.errors import EditPropertyError
from trial_runner.port_discovery.edit_properties import build, check_everything, in_double
from trial_runner.port_discovery.rig import Rig

LORA = Configuration(edits=(edit(Port.Q, Port.X_ATTN, LowRank(width=2)),))


@pytest.fixture(scope="module")
def rig(tiny_backbone: Callable[[str], Path]) -> Iterator[Rig]:
    yield from rigs_of(tiny_backbone("gemma2"))


def test_misplaced_port_is_found(rig):
    check_everything(rig, LORA)
    query = rig.backbone.model.get_submodule("layers.0.self_attn.q_proj")
    frozen = query.register_forward_hook(lambda _, __, output: output.detach())
    with pytest.raises(EditPropertyError, match="every parameter must have a gradient"):
        check_everything(rig, LORA)
    frozen.remove()
    mixed = query.register_forward_hook(lambda _, __, output: output + output.sum(0, keepdim=True))
    with pytest.raises(EditPropertyError, match="must be"):
        check_everything(rig, LORA)
    mixed.remove()
    check_everything(rig, LORA)


def test_a_start_that_norms_in_float32_round_away_is_felt_in_float64(rig):
    """Test a gate that is nearly closed on keys of Gemma's last block: 2e-9 behind attention.

    Two norms come after it; what they round in float32, as they do by default, is more.
    """
    form = Phm(width=12, n=4, factor_rank=1, shared=True, activation=Activation.GELU)
    last = LayerRange(first=1, last=1)
    configuration = Configuration(edits=(edit(Port.K, Port.K, form, SigmoidGate(), layers=last),))
    deltas = build(rig, configuration)
    outputs: list[torch.Tensor] = []
    output = rig.backbone.model.get_submodule("layers.1.self_attn.o_proj")
    handle = output.register_forward_hook(lambda _, __, tensor: outputs.append(tensor))
    with torch.no_grad(), in_double():
        edited, plain = rig.outputs(deltas), rig.outputs()
    handle.remove()
    exact, rounded = (edited - plain).abs().max(), (rig.frozen - plain).abs().max()
    assert (outputs[0] - outputs[1]).abs().max() > 1e-10
    assert 1e-10 < exact < rounded
    check_everything(rig, configuration)
