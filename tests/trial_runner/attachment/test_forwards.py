"""Attention that calls no function of transformers, disentangled or of relative positions: computed by ours."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from support.edits import edit
from support.tiny_backbones import rig_of, rigs_of
from transformers import AutoModel

from search_space.configuration import Configuration
from search_space.dimensions import Heads, Port, Site
from search_space.edit import Edit
from search_space.forms import Constant, Diagonal, LowRank, Prompt, SoftmaxMemory
from search_space.gates import ConvexGate, Multiply, Prepend
from trial_runner.backbones import config_of, position_limit
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.packed.dropout import SlotDropout, dropping
from trial_runner.packed.packed_deltas import PackedDeltas
from trial_runner.port_discovery.edit_properties import build, moved
from trial_runner.port_discovery.rig import Rig


@pytest.fixture(scope="module")
def rig(tiny_backbone: Callable[..., Path]) -> Iterator[Rig]:
    yield from rigs_of(tiny_backbone("deberta-v2", dropout=0.3))


@pytest.fixture(scope="module")
def relative_folder(tiny_backbone: Callable[..., Path]) -> Path:
    return tiny_backbone("mpnet", dropout=0.3)


@pytest.fixture(scope="module")
def relative_rig(relative_folder: Path) -> Iterator[Rig]:
    torch.set_num_threads(1)
    rig = rig_of(relative_folder)
    yield rig
    rig.attachment.detach()


RANK = LowRank(width=2)
SLOTS: dict[str, tuple[Edit, ...]] = {
    "queries and keys": (edit(Port.Q, Port.X_ATTN, RANK), edit(Port.K, Port.CTX, LowRank(width=3))),
    "factors of keys": (edit(Port.K, Port.K, Diagonal(), Multiply()),),
    "biases of keys and of the norm of positions": (
        edit(Port.K, None, Constant()),
        edit(Port.NORM, None, Constant(), site=Site.STACK),
    ),
    "a prefix": (edit(Port.HEAD, Port.Q, SoftmaxMemory(width=3, heads=Heads.KEY_VALUE), ConvexGate()),),
    "a prompt": (edit(Port.EMBEDDING, None, Prompt(width=2), Prepend()),),
    "a longer prompt, and queries": (
        edit(Port.EMBEDDING, None, Prompt(width=4), Prepend()),
        edit(Port.Q, Port.Q, Diagonal(), Multiply()),
    ),
    "what reads the tokens after the positions": (
        edit(Port.Q, Port.X_ATTN, RANK),
        edit(Port.O, Port.X_ATTN, RANK),
        edit(Port.O, Port.Q, LowRank(width=2, heads=Heads.QUERY)),
    ),
    "nothing": (),
}
RELATIVE_SLOTS = {
    "queries": (edit(Port.Q, Port.X_ATTN, RANK),),
    "a prefix": SLOTS["a prefix"],
    "a prompt": SLOTS["a prompt"],
}


def deltas_of(rig: Rig, name: str, slots: dict[str, tuple[Edit, ...]] = SLOTS) -> DeltaSet:
    return moved(build(rig, Configuration(edits=slots[name])), seed=len(name))


def test_it_is_computed_as_transformers_does(rig):
    torch.testing.assert_close(rig.frozen, rig.plain, rtol=0, atol=1e-13)


def test_relative_positions_are_computed_as_transformers_does(relative_rig, relative_folder):
    stock = AutoModel.from_pretrained(relative_folder, attn_implementation="eager", dtype=torch.float64).eval()
    with torch.no_grad():
        hidden = stock(**relative_rig.inputs).last_hidden_state
    torch.testing.assert_close(relative_rig.frozen, Rig.outputs_of(hidden, relative_rig.inputs), rtol=0, atol=1e-13)


def test_without_the_bias_of_relative_positions_it_is_another_function(relative_rig):
    bias = relative_rig.backbone.model.get_submodule("encoder.relative_attention_bias")
    blank = bias.register_forward_hook(lambda _, __, output: torch.zeros_like(output))
    with torch.no_grad():
        assert (relative_rig.outputs() - relative_rig.frozen).abs().max() > 1e-3
    blank.remove()


def test_every_part_of_it_is_felt(rig):
    """Negative control: with another order of distances, or without positions, it is another function."""
    attention = rig.backbone.model.get_submodule("encoder.layer.0.attention.self")
    ours, given = attention.forward, {}

    def turned(*positional: object, relative_pos: torch.Tensor, **named: object) -> object:
        given["distances"] = relative_pos
        return ours(*positional, relative_pos=-relative_pos, **named)

    attention.forward = turned  # type: ignore[assignment]
    try:
        with torch.no_grad():
            assert (rig.outputs() - rig.frozen).abs().max() > 1e-3
    finally:
        attention.forward = ours
    assert given["distances"].unique().numel() > 4


def test_query_edit_acts_before_positions_like_a_weight_change(rig):
    deltas = deltas_of(rig, "queries and keys")
    with torch.no_grad():
        edited = rig.outputs(deltas)
        projections = [
            rig.backbone.model.get_submodule(f"encoder.layer.{layer}.attention.self.{name}")
            for layer in (0, 1)
            for name in ("query_proj", "key_proj")
        ]
        before = [projection.weight.clone() for projection in projections]
        forms = [
            next(one.form for one in deltas.sublayers[sublayer] if one.edit.write is port)
            for sublayer in rig.backbone.shape.sublayers(Site.ENCODER_SELF)
            for port in (Port.Q, Port.K)
        ]
        for projection, form in zip(projections, forms, strict=True):
            projection.weight += (form.a @ form.b).T
        merged = rig.outputs()
        for projection, weight in zip(projections, before, strict=True):
            projection.weight.copy_(weight)
    torch.testing.assert_close(edited, merged, rtol=0, atol=1e-11)


@pytest.mark.parametrize("training", [False, True], ids=["as it is", "with dropout"])
@pytest.mark.parametrize(
    ("kind", "slots"), [("rig", SLOTS), ("relative_rig", RELATIVE_SLOTS)], ids=["disentangled", "relative"]
)
def test_slots_of_a_pack_have_positions_of_their_own(request, kind, slots, training):
    """Test that each slot of a pack computes, and drops, the same as alone, next to prompts of other lengths."""
    rig = request.getfixturevalue(kind)
    model = rig.backbone.model.train(training)
    every = {name: deltas_of(rig, name, slots) for name in slots}
    keys = torch.arange(len(every)) * 7 + 3

    def hidden(deltas: PackedDeltas | DeltaSet, keys: torch.Tensor) -> torch.Tensor:
        inputs = {name: tensor.repeat(len(keys), 1) for name, tensor in rig.inputs.items()}
        with torch.no_grad(), rig.attachment.using(deltas), dropping(SlotDropout(keys)):
            found: torch.Tensor = model(**inputs).last_hidden_state
        return found

    packed = hidden(PackedDeltas(list(every.values())), keys).chunk(len(every))
    real = rig.inputs["attention_mask"].bool()
    for index, (name, deltas) in enumerate(every.items()):
        alone = hidden(deltas, keys[index : index + 1])
        torch.testing.assert_close(packed[index][real], alone[real], rtol=0, atol=1e-11)
        assert name == "nothing" or not torch.allclose(alone[real], rig.plain)
        assert training != torch.allclose(alone[real], hidden(deltas, keys[index : index + 1] + 1)[real])
    model.eval()


@pytest.mark.parametrize(("family", "module"), [("deberta-v2", "self"), ("mpnet", "attn")])
def test_attachment_is_removed_completely(tiny_backbone, family, module):
    other = rig_of(tiny_backbone(family, dropout=0.3))
    modules = [other.backbone.model.get_submodule(f"encoder.layer.{layer}.attention.{module}") for layer in (0, 1)]
    assert all("forward" in vars(module) for module in modules)
    other.attachment.detach()
    assert not any("forward" in vars(module) for module in modules)
    other.attachment.detach()  # twice is once
    with torch.no_grad():
        assert torch.equal(other.outputs(), other.plain)


def test_positions_start_at_two_for_any_padding_id(relative_folder):
    config = config_of(str(relative_folder))
    assert position_limit(config) == position_limit(config | {"pad_token_id": 0}) == 64
