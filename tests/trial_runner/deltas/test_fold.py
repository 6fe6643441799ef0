"""Folding leaves the parameters that are stored, and the function as it was."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from support.edits import edit

from search_space.configuration import Configuration
from search_space.dimensions import Heads, Port
from search_space.edit import Edit
from search_space.forms import Bottleneck, EncodedPrompt, Form, LowRank, PromptEncoder, SoftmaxMemory, Sparse
from search_space.gates import Add, ConvexGate, Gate, InducerGate, Prepend
from trial_runner.attachment.attach import Attachment
from trial_runner.attachment.attention import ATTENTION, register_attention
from trial_runner.backbones import Backbone, load_backbone
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.deltas.fold import fold, folded_configuration


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
def backbone(tiny_backbone: Callable[[str], Path]) -> Backbone:
    register_attention()
    return load_backbone(str(tiny_backbone("roberta")), precision="float64", attn_implementation=ATTENTION)


def output(backbone: Backbone, deltas: DeltaSet) -> torch.Tensor:
    tokens = torch.arange(5, 15).view(2, 5) % 20
    attachment = Attachment(backbone.model, backbone.family, backbone.shape)
    try:
        with attachment.using(deltas), torch.no_grad():
            return backbone.model(input_ids=tokens, attention_mask=torch.ones_like(tokens)).last_hidden_state
    finally:
        attachment.detach()


@pytest.mark.parametrize("of", EDITS.values(), ids=EDITS)
def test_a_folded_delta_set_computes_the_same_with_the_stored_parameters_alone(of, backbone):
    deltas = DeltaSet(Configuration(edits=(of, LORA)), backbone.shape, seed=3, dtype=torch.float64)
    with torch.no_grad():
        for parameter in deltas.parameters():
            parameter.add_(0.1)
    kept = fold(deltas, backbone.shape)
    assert deltas.counts.stored == sum(parameter.numel() for parameter in kept.parameters()) < deltas.counts.trained
    torch.testing.assert_close(output(backbone, kept), output(backbone, deltas), rtol=0, atol=1e-12)
    other = DeltaSet(kept.configuration, backbone.shape, seed=0, dtype=torch.float64)
    assert not torch.allclose(output(backbone, other), output(backbone, deltas))


def test_a_configuration_without_networks_is_its_own_fold(backbone):
    plain = Configuration(edits=(at_heads(SoftmaxMemory(width=3, heads=Heads.KEY_VALUE), ConvexGate()), LORA))
    assert folded_configuration(plain) == plain
    folded = folded_configuration(Configuration(edits=(EDITS["prefix"], LORA)))
    assert folded == plain


def test_a_change_of_the_whole_model_is_folded_with_its_mask(backbone):
    of = edit(Port.WEIGHTS, None, Sparse(width=7))
    frozen = dict(backbone.model.named_parameters())
    deltas = DeltaSet(Configuration(edits=(of,)), backbone.shape, seed=3, dtype=torch.float64, frozen=frozen)
    with torch.no_grad():
        for parameter in deltas.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    assert deltas.whole is not None
    assert deltas.whole.after_step(1, 1)
    kept = fold(deltas, backbone.shape, frozen=frozen)
    assert torch.equal(output(backbone, kept), output(backbone, deltas))
