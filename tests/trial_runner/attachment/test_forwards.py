"""Attention modules that call no attention function of transformers: computed as they are, by ours."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from support.tiny_backbones import rig_of
from transformers import AutoModel

from search_space.configuration import Configuration
from search_space.dimensions import Heads, Port, Site
from search_space.edit import Edit
from search_space.forms import LowRank, Prompt, SoftmaxMemory
from search_space.gates import Add, ConvexGate, Prepend
from trial_runner.backbones import config_of, position_limit
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.packed.dropout import SlotDropout, dropping
from trial_runner.packed.packed_deltas import PackedDeltas
from trial_runner.port_discovery.promises import build, moved
from trial_runner.port_discovery.rig import Rig

LORA = Edit(site=Site.ATTENTION, write=Port.Q, read=Port.X_ATTN, form=LowRank(width=2), gate=Add())
PREFIX = Edit(
    site=Site.ATTENTION,
    write=Port.HEAD,
    read=Port.Q,
    form=SoftmaxMemory(width=3, heads=Heads.KEY_VALUE),
    gate=ConvexGate(),
)
PROMPT = Edit(site=Site.EMBEDDING, write=Port.EMBEDDING, read=None, form=Prompt(width=2), gate=Prepend())
SLOTS = (LORA, PREFIX, PROMPT)


@pytest.fixture(scope="module")
def folder(tiny_backbone: Callable[..., Path]) -> Path:
    return tiny_backbone("mpnet", dropout=0.3)


@pytest.fixture(scope="module")
def rig(folder: Path) -> Iterator[Rig]:
    torch.set_num_threads(1)
    rig = rig_of(folder)
    yield rig
    rig.attachment.detach()


def test_it_is_computed_as_transformers_does(rig, folder):
    stock = AutoModel.from_pretrained(folder, attn_implementation="eager", dtype=torch.float64).eval()
    with torch.no_grad():
        hidden = stock(**rig.inputs).last_hidden_state
    torch.testing.assert_close(rig.frozen, Rig.outputs_of(hidden, rig.inputs), rtol=0, atol=1e-13)


def test_without_the_bias_of_relative_positions_it_is_another_function(rig):
    bias = rig.backbone.model.get_submodule("encoder.relative_attention_bias")
    blank = bias.register_forward_hook(lambda _, __, output: torch.zeros_like(output))
    with torch.no_grad():
        assert (rig.outputs() - rig.frozen).abs().max() > 1e-3
    blank.remove()


@pytest.mark.parametrize("training", [False, True], ids=["as it is", "with dropout"])
def test_slots_of_a_pack_compute_what_each_does_alone(rig, training):
    model = rig.backbone.model.train(training)
    every = [moved(build(rig, Configuration(edits=(edit,))), seed=seed) for seed, edit in enumerate(SLOTS)]
    keys = torch.arange(len(every)) * 7 + 3
    real = rig.inputs["attention_mask"].bool()

    def hidden(deltas: PackedDeltas | DeltaSet, keys: torch.Tensor) -> torch.Tensor:
        inputs = {name: tensor.repeat(len(keys), 1) for name, tensor in rig.inputs.items()}
        with torch.no_grad(), rig.attachment.using(deltas), dropping(SlotDropout(keys)):
            found: torch.Tensor = model(**inputs).last_hidden_state
        return found

    packed = hidden(PackedDeltas(every), keys).chunk(len(every))
    for index, deltas in enumerate(every):
        alone = hidden(deltas, keys[index : index + 1])
        torch.testing.assert_close(packed[index][real], alone[real], rtol=0, atol=1e-11)
        assert not torch.allclose(alone[real], rig.plain)
    model.eval()


def test_what_was_put_on_is_taken_off(rig, folder):
    other = rig_of(folder)
    modules = [other.backbone.model.get_submodule(f"encoder.layer.{layer}.attention.attn") for layer in (0, 1)]
    assert all("forward" in vars(module) for module in modules)
    other.attachment.detach()
    assert not any("forward" in vars(module) for module in modules)


def test_its_positions_start_at_two_whatever_fills_short_rows(folder):
    config = config_of(str(folder))
    assert position_limit(config) == position_limit(config | {"pad_token_id": 0}) == 64
