"""A prompt stands before the embedded input as the released code and the decoders' own positions have it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from support.edits import edit
from support.tiny_backbones import rig_of
from torch import Tensor

from search_space.configuration import Configuration
from search_space.dimensions import Port
from search_space.forms import Prompt
from search_space.gates import Prepend
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.port_discovery.edit_properties import build
from trial_runner.port_discovery.rig import Rig

LENGTH = 3
ENCODERS = ("roberta", "bert", "distilbert", "electra")
DECODERS = ("gpt2", "llama", "qwen2", "qwen3")
TOKENS = torch.tensor([[5, 9, 12, 7, 20, 6], [8, 11, 6, 19, 4, 4]])
MASK = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]])


@pytest.fixture
def loaded(tiny_backbone: Callable[[str], Path]) -> Callable[[str], Rig]:
    return lambda family: rig_of(tiny_backbone(family))


def prompted(rig: Rig) -> DeltaSet:
    prompt = edit(Port.EMBEDDING, None, Prompt(width=LENGTH), Prepend())
    deltas = build(rig, Configuration(edits=(prompt,)))
    assert deltas.prompt is not None
    with torch.no_grad():
        deltas.prompt.table.mul_(20)
    return deltas


@contextmanager
def attached(rig: Rig, deltas: DeltaSet) -> Iterator[None]:
    with rig.attachment.using(deltas), torch.no_grad():
        yield


def rows(deltas: DeltaSet) -> Tensor:
    assert deltas.prompt is not None
    return deltas.prompt.rows().detach()


@pytest.mark.parametrize("family", ENCODERS)
def test_prompts_of_encoders_have_no_position_and_no_type(family, loaded):
    rig = loaded(family)
    backbone, deltas = rig.backbone, prompted(rig)
    kept: list[Tensor] = []
    embeddings = backbone.model.get_submodule("embeddings")
    with torch.no_grad():
        frozen = embeddings(input_ids=TOKENS)
        norm = embeddings.get_submodule("LayerNorm")(rows(deltas))
    handle = embeddings.register_forward_hook(lambda _, __, output: kept.append(output))
    with attached(rig, deltas):
        out = backbone.model(input_ids=TOKENS, attention_mask=MASK).last_hidden_state
    handle.remove()
    assert out.shape == (*TOKENS.shape, backbone.shape.width)
    torch.testing.assert_close(kept[0][:, :LENGTH], norm.expand(2, -1, -1), rtol=0, atol=1e-14)
    torch.testing.assert_close(kept[0][:, LENGTH:], frozen, rtol=0, atol=1e-14)


@pytest.mark.parametrize("family", [*DECODERS, "t5", "t5_gated"])
def test_decoder_prompts_are_tokens_before_the_others(family, loaded):
    """Test that the decoder of an encoder-decoder attends to the prompts."""
    rig = loaded(family)
    backbone, deltas = rig.backbone, prompted(rig)
    is_decoder = family in DECODERS
    more = {} if is_decoder else {"decoder_input_ids": TOKENS}
    with torch.no_grad():
        embedded = backbone.model.get_input_embeddings()(TOKENS)
        everything = torch.cat([rows(deltas).expand(2, -1, -1), embedded], dim=1)
        mask = torch.cat([torch.ones(2, LENGTH, dtype=torch.long), MASK], dim=1)
        expected = backbone.model(inputs_embeds=everything, attention_mask=mask, **more).last_hidden_state
        frozen = backbone.model(input_ids=TOKENS, attention_mask=MASK, **more).last_hidden_state
    with attached(rig, deltas):
        out = backbone.model(input_ids=TOKENS, attention_mask=MASK, **more).last_hidden_state
    torch.testing.assert_close(out, expected[:, LENGTH:] if is_decoder else expected, rtol=0, atol=1e-12)
    assert (out - frozen).abs().max() > 1e-3


@pytest.mark.parametrize("family", ["bart", "mbart", "marian"])
def test_prompts_of_encoder_decoders_have_no_position(family, loaded):
    """Test prompts without positions: a prompt is a token like any other once all positions are removed."""
    rig = loaded(family)
    backbone, deltas = rig.backbone, prompted(rig)
    encoder = backbone.model.get_submodule("encoder")
    kept: list[Tensor] = []
    first = encoder.get_submodule("layers.0")
    handle = first.register_forward_pre_hook(lambda _, arguments: kept.append(arguments[0]))
    with torch.no_grad():
        backbone.model(input_ids=TOKENS, attention_mask=MASK, decoder_input_ids=TOKENS)
        with attached(rig, deltas):
            out = backbone.model(input_ids=TOKENS, attention_mask=MASK, decoder_input_ids=TOKENS).last_hidden_state
        norm = getattr(encoder, "layernorm_embedding", torch.nn.Identity())
        alone = norm(rows(deltas))
    handle.remove()
    assert out.shape == (*TOKENS.shape, backbone.shape.width)
    torch.testing.assert_close(kept[1][:, :LENGTH], alone.expand(2, -1, -1), rtol=0, atol=1e-14)
    torch.testing.assert_close(kept[1][:, LENGTH:], kept[0], rtol=0, atol=1e-14)


@pytest.mark.parametrize("family", [*ENCODERS, "bart", "marian", "t5", "llama"])
def test_padding_stays_out_of_sight_behind_a_prompt(family, loaded):
    rig = loaded(family)
    backbone, deltas = rig.backbone, prompted(rig)
    others = TOKENS.clone()
    others[1, 4:] = 17
    more = {"decoder_input_ids": TOKENS} if backbone.shape.encoder_layers and backbone.shape.decoder_layers else {}
    with attached(rig, deltas):
        one, two = (
            backbone.model(input_ids=ids, attention_mask=MASK, **more).last_hidden_state for ids in (TOKENS, others)
        )
    real = slice(0, 4) if not more else slice(0, 6)
    torch.testing.assert_close(one[1, real], two[1, real], rtol=0, atol=1e-13)


def test_the_longest_input_has_room_for_a_prompt(loaded):
    rig = loaded("bert")
    backbone = rig.backbone
    assert backbone.position_limit_tokens is not None
    tokens = torch.full((1, backbone.position_limit_tokens), 7)
    with attached(rig, prompted(rig)):
        out = backbone.model(input_ids=tokens, attention_mask=torch.ones_like(tokens)).last_hidden_state
    assert out.shape[1] == backbone.position_limit_tokens


@pytest.mark.parametrize("family", ["roberta", "gpt2"])
def test_the_frozen_model_is_back_when_the_prompt_is_gone(family, loaded):
    rig = loaded(family)
    backbone = rig.backbone
    with torch.no_grad():
        before = backbone.model(input_ids=TOKENS, attention_mask=MASK).last_hidden_state
        with attached(rig, prompted(rig)):
            between = backbone.model(input_ids=TOKENS, attention_mask=MASK).last_hidden_state
        after = backbone.model(input_ids=TOKENS, attention_mask=MASK).last_hidden_state
    assert torch.equal(before, after)
    assert not torch.allclose(before, between)
