"""Folding leaves the parameters that are stored, and the function as it was."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from support.built_forms import nudged
from support.edits import edit
from support.tiny_backbones import rig_of

from search_space.configuration import Configuration
from search_space.dimensions import Heads, Port
from search_space.edit import Edit
from search_space.forms import Bottleneck, EncodedPrompt, Form, LowRank, PromptEncoder, SoftmaxMemory, Sparse
from search_space.gates import Add, ConvexGate, Gate, InducerGate, Prepend
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.deltas.fold import fold, folded_configuration
from trial_runner.port_discovery.rig import Rig


def at_heads(form: Form, gate: Gate) -> Edit:
    return edit(Port.HEAD, Port.Q, form, gate)


def prompt(encoder: PromptEncoder) -> Edit:
    return edit(Port.EMBEDDING, None, EncodedPrompt(width=3, encoder=encoder, hidden=4), Prepend())


LORA = edit(Port.F, Port.M, LowRank(width=2))
EDITS = {
    "prefix": at_heads(SoftmaxMemory(width=3, heads=Heads.KEY_VALUE, reparameterization=5), ConvexGate()),
    "ungated": at_heads(SoftmaxMemory(width=3, heads=Heads.KEY_VALUE, reparameterization=5), Add()),
    "adapter": at_heads(Bottleneck(width=3, heads=Heads.QUERY, bias=False, reparameterization=5), Add()),
    "inducer": at_heads(Bottleneck(width=3, heads=Heads.QUERY, bias=False, reparameterization=5), InducerGate()),
    "mlp": prompt(PromptEncoder.MLP),
    "lstm": prompt(PromptEncoder.LSTM),
}


@pytest.fixture(scope="module")
def rig(tiny_backbone: Callable[[str], Path]) -> Iterator[Rig]:
    rig = rig_of(tiny_backbone("roberta"))
    yield rig
    rig.attachment.detach()


@torch.no_grad()
def output(rig: Rig, deltas: DeltaSet) -> torch.Tensor:
    return rig.outputs(deltas)


@pytest.mark.parametrize("of", EDITS.values(), ids=EDITS)
def test_folded_delta_set_computes_the_same(of, rig):
    deltas = DeltaSet(Configuration(edits=(of, LORA)), rig.backbone.shape, seed=3, dtype=torch.float64)
    kept = fold(nudged(deltas, 0.1), rig.backbone.shape)
    assert deltas.counts.stored == sum(parameter.numel() for parameter in kept.parameters()) < deltas.counts.trained
    torch.testing.assert_close(output(rig, kept), output(rig, deltas), rtol=0, atol=1e-12)
    other = DeltaSet(kept.configuration, rig.backbone.shape, seed=0, dtype=torch.float64)
    assert not torch.allclose(output(rig, other), output(rig, deltas))


def test_a_configuration_without_networks_is_its_own_fold():
    plain = Configuration(edits=(at_heads(SoftmaxMemory(width=3, heads=Heads.KEY_VALUE), ConvexGate()), LORA))
    assert folded_configuration(plain) == plain
    folded = folded_configuration(Configuration(edits=(EDITS["prefix"], LORA)))
    assert folded == plain


def test_a_change_of_the_whole_model_is_folded_with_its_mask(rig):
    of = edit(Port.WEIGHTS, None, Sparse(width=7))
    frozen = dict(rig.backbone.model.named_parameters())
    deltas = DeltaSet(Configuration(edits=(of,)), rig.backbone.shape, seed=3, dtype=torch.float64, frozen=frozen)
    nudged(deltas, 1.0)
    assert deltas.whole is not None
    assert deltas.whole.after_step(1, 1)
    kept = fold(deltas, rig.backbone.shape, frozen=frozen)
    assert torch.equal(output(rig, kept), output(rig, deltas))
