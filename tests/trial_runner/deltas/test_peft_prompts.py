"""Prompts and prefixes against `peft`: same weights, same outputs, in float64.

`peft` counts the trained rows in the positions of the real tokens, this library mostly does not. The positions of its
copy are moved back, by a table, by position ids, or by T5's bias at zero in both copies. Its cache reaches the
decoder's self-attention alone, and block i of L gets the table of block 2i mod L. Its embedding of a prefix's MLP is
d_kv wide, Li & Liang's and ours d. Its adaption prompts have the gate g, ours tanh(g), and a softmax in float32.
"""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import AdaptionPromptConfig, PrefixTuningConfig, PromptEncoderConfig, PromptTuningConfig, get_peft_model
from support.edits import edit
from support.peft_pairs import TOKENS, PeftPair, peft_pairs
from support.rounding import rounding
from torch import Tensor
from transformers import AutoModelForSeq2SeqLM

from search_space.dimensions import Heads, Port, Site
from search_space.edit import Edit
from search_space.forms import EncodedPrompt, Prompt, PromptEncoder, SoftmaxMemory
from search_space.gates import ConvexGate, Prepend, TanhGate
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.deltas.port_delta import PortDelta
from trial_runner.deltas.prefix_stack import PrefixStack
from trial_runner.huggingface import quiet_transformers

# This release of peft asks transformers for a property by its old name.
pytestmark = pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")

LENGTH = 5

ENCODERS, ENCODER_DECODERS = ("roberta", "bert"), ("bart", "t5", "t5_gated")
DECODERS = ("gpt2", "llama", "qwen2", "qwen3")


class Pair(PeftPair):
    """The language model of encoder-decoders, the base model of others."""

    def fresh(self) -> Any:
        if not self.is_seq2seq:
            return super().fresh()
        with quiet_transformers():
            model = AutoModelForSeq2SeqLM.from_pretrained(self.folder, attn_implementation="sdpa", dtype=torch.float64)
        return model.eval()

    @property
    def task(self) -> str:
        return "SEQ_2_SEQ_LM" if self.is_seq2seq else "FEATURE_EXTRACTION"

    def assert_same(self, deltas: DeltaSet, theirs: Any, **more: Any) -> None:
        options = {"output_hidden_states": True} if self.is_seq2seq else {}
        super().assert_same(deltas, theirs, **options, **more)


@pytest.fixture(scope="module")
def pair(tiny_backbone: Callable[[str], Path]) -> Iterator[Callable[[str], Pair]]:
    with peft_pairs(tiny_backbone, Pair) as make:
        yield make


# --- prompts ----------------------------------------------------------------------------------------------------------

POSITIONS = {
    "roberta": ("embeddings.position_embeddings", 2),  # rows up to the padding's are of no token
    "bert": ("embeddings.position_embeddings", 0),
    "bart": ("model.encoder.embed_positions", 2),
}


def move_positions(model: Any, path: str, first: int, *, token_types: Tensor | None = None) -> None:
    """Let the real tokens, which come after a prompt, find the positions that they have without one."""
    with torch.no_grad():
        table = model.get_submodule(path).weight
        table[first + LENGTH :] = table[first:-LENGTH].clone()
        table[first : first + LENGTH] = 0 if token_types is None else -token_types


def prompt(form: Prompt | EncodedPrompt | None = None) -> Edit:
    return edit(Port.EMBEDDING, None, form or Prompt(width=LENGTH), Prepend())


def peft_prompt(both: Pair, config: Any) -> Any:
    model = both.fresh()
    if both.family in POSITIONS:
        types = model.embeddings.token_type_embeddings.weight[0] if both.family in ENCODERS else None
        move_positions(model, *POSITIONS[both.family], token_types=types)
    return get_peft_model(model, config).double()


@pytest.mark.parametrize("family", [*ENCODERS, *ENCODER_DECODERS, *DECODERS])
def test_a_prompt_is_that_of_peft(pair: Callable[[str], Pair], family: str) -> None:
    both = pair(family)
    deltas = both.deltas(prompt())
    config = PromptTuningConfig(task_type=both.task, num_virtual_tokens=LENGTH)
    theirs = peft_prompt(both, config)
    theirs.prompt_encoder["default"].embedding.weight.data[:LENGTH] = rows_of(deltas)
    both.assert_same(deltas, theirs)


def rows_of(deltas: DeltaSet) -> Tensor:
    assert deltas.prompt is not None
    return deltas.prompt.rows().detach()


@pytest.mark.parametrize("family", ["roberta", "gpt2", "llama"])
@pytest.mark.parametrize("kind", PromptEncoder, ids=str)
def test_an_encoded_prompt_is_p_tuning_of_peft(pair: Callable[[str], Pair], family: str, kind: PromptEncoder) -> None:
    both = pair(family)
    deltas = both.deltas(prompt(EncodedPrompt(width=LENGTH, encoder=kind, hidden=7)))
    config = PromptEncoderConfig(
        task_type=both.task,
        num_virtual_tokens=LENGTH,
        encoder_reparameterization_type=kind.name,
        encoder_hidden_size=7,
        encoder_dropout=0.0,
        encoder_num_layers=2,
    )
    theirs = peft_prompt(both, config)
    copy_encoder(deltas, theirs.prompt_encoder["default"])
    both.assert_same(deltas, theirs)
    trained = sum(parameter.numel() for parameter in theirs.parameters() if parameter.requires_grad)
    assert deltas.counts.trained == trained


def copy_encoder(deltas: DeltaSet, theirs: Any) -> None:
    ours = deltas.prompt
    assert ours is not None
    inner = [module for module in ours.encoder.children() if isinstance(module, torch.nn.Linear)]
    outer = [module for module in theirs.mlp_head if isinstance(module, torch.nn.Linear)]
    for mine, other in zip(inner, outer, strict=True):
        other.load_state_dict(mine.state_dict())
    if hasattr(theirs, "lstm_head"):
        theirs.lstm_head.load_state_dict(ours.encoder.lstm.state_dict())
    theirs.embedding.weight.data.copy_(ours.table)


# --- prefixes ---------------------------------------------------------------------------------------------------------


def prefix(site: Site = Site.ATTENTION, hidden: int | None = None) -> Edit:
    form = SoftmaxMemory(width=LENGTH, heads=Heads.KEY_VALUE, reparameterization=hidden)
    return edit(Port.HEAD, Port.Q, form, ConvexGate(), site=site)


def flat_prefix(deltas: DeltaSet) -> Tensor:
    """``(l, L * 2 * d_kv)``, as peft stores a prefix: by layer, keys before values, head."""
    tables = [module.form.table() for module in deltas.modules() if isinstance(module, PortDelta)]
    columns = [part.transpose(0, 1).flatten(1) for table in tables for part in table]  # (l, d_kv) each
    return torch.cat(columns, dim=1).detach()


MOVED_BACK = torch.arange(TOKENS)[None] - LENGTH
"""Position ids to which peft adds the length of its prefix."""


def positions_for(family: str) -> Tensor:
    """Return position ids for peft with which the real tokens have their own positions."""
    return MOVED_BACK + (2 if family == "roberta" else 0)  # RoBERTa counts from its padding id, 1


@pytest.mark.parametrize("family", [*ENCODERS, *DECODERS])
def test_a_prefix_is_that_of_peft_at_the_positions_without_it(pair: Callable[[str], Pair], family: str) -> None:
    both = pair(family)
    deltas = both.deltas(prefix())
    theirs = get_peft_model(both.fresh(), PrefixTuningConfig(task_type=both.task, num_virtual_tokens=LENGTH)).double()
    theirs.prompt_encoder["default"].embedding.weight.data.copy_(flat_prefix(deltas))
    both.assert_same(deltas, theirs, position_ids=positions_for(family))
    assert deltas.counts.trained == theirs.prompt_encoder["default"].embedding.weight.numel()


@pytest.mark.parametrize("family", [*ENCODERS, "gpt2"])
def test_a_prefix_from_an_mlp_is_that_of_peft(pair: Callable[[str], Pair], family: str) -> None:
    both = pair(family)
    deltas = both.deltas(prefix(hidden=7))
    config = PrefixTuningConfig(
        task_type=both.task, num_virtual_tokens=LENGTH, prefix_projection=True, encoder_hidden_size=7
    )
    theirs = get_peft_model(both.fresh(), config).double()
    (stack,) = (module for module in deltas.modules() if isinstance(module, PrefixStack))
    mlp = theirs.prompt_encoder["default"]
    mlp.embedding.weight.data.copy_(stack.embedding)
    mlp.transform[0].load_state_dict(stack.middle.state_dict())
    mlp.transform[2].load_state_dict(stack.outer.state_dict())
    both.assert_same(deltas, theirs, position_ids=positions_for(family))
    trained = sum(parameter.numel() for parameter in theirs.parameters() if parameter.requires_grad)
    assert deltas.counts.trained == trained


@pytest.mark.parametrize("family", ENCODER_DECODERS)
def test_a_prefix_of_the_decoder_is_that_of_peft_without_positions(
    tiny_backbone: Callable[[str], Path], family: str
) -> None:
    both = Pair(family, tiny_backbone(family))  # its own copy, for T5's is changed
    deltas = both.deltas(prefix(Site.DECODER_SELF))
    deal_as_peft(deltas)
    if family != "bart":
        position_bias(both.ours.model).zero_()
    theirs = peft_decoder_prefix(both, deltas)
    both.assert_same(deltas, theirs)
    assert both.deltas(prefix()).counts.stored == 3 * deltas.counts.stored
    both.attachment.detach()


def peft_decoder_prefix(both: Pair, deltas: DeltaSet) -> Any:
    """Build a prefix of peft with our numbers, on a copy without positions."""
    model = both.fresh()
    if both.family == "bart":
        move_positions(model, "model.decoder.embed_positions", 2)
    else:
        position_bias(model).zero_()
    # the width is given, for peft takes the residual width, which the heads of T5 need not have
    width = both.shape.key_value_width
    config = PrefixTuningConfig(task_type=both.task, num_virtual_tokens=LENGTH, token_dim=width)
    theirs = get_peft_model(model, config).double()
    theirs.prompt_encoder["default"].embedding.weight.data.copy_(flat_prefix(deltas))
    return theirs


def position_bias(model: Any) -> Tensor:
    """Return the table of relative positions of T5's decoder."""
    return model.decoder.block[0].layer[0].SelfAttention.relative_attention_bias.weight.data


def deal_as_peft(deltas: DeltaSet) -> None:
    """Block i of L gets the table of block 2i mod L."""
    forms = [module.form for module in deltas.modules() if isinstance(module, PortDelta)]
    for layer, form in enumerate(forms):
        form.load_state_dict(forms[2 * layer % len(forms)].state_dict())


# --- adaption prompts -------------------------------------------------------------------------------------------------


def test_a_memory_under_a_tanh_gate_is_the_adaption_prompt_of_peft(pair: Callable[[str], Pair]) -> None:
    """LLaMA-Adapter: keys and values are frozen projections of its prompt, a memory has them as they are."""
    both = pair("llama")
    deltas = both.deltas(edit(Port.HEAD, Port.Q, SoftmaxMemory(width=LENGTH, heads=Heads.KEY_VALUE), TanhGate()))
    blocks = both.shape.decoder_layers
    options = {"adapter_len": LENGTH, "adapter_layers": blocks, "target_modules": "self_attn"}
    theirs = get_peft_model(both.fresh(), AdaptionPromptConfig(task_type=both.task, **options)).double()
    found = [module for module in deltas.modules() if isinstance(module, PortDelta)]
    with torch.no_grad():
        for layer, delta in enumerate(found):
            adapted = theirs.layers[layer].self_attn
            adapted.adaption_gate.fill_(0.6)
            delta.factor.g.fill_(math.atanh(0.6))
            rows = adapted.adaption_prompt[0]
            keys, values = adapted.model.k_proj(rows), adapted.model.v_proj(rows)
            for mine, other in ((delta.form.keys, keys), (delta.form.values, values)):
                mine.copy_(other.unflatten(-1, (-1, both.shape.head_width)).transpose(0, 1))
    both.assert_same(deltas, theirs, within=rounding(both.frozen, terms=blocks * (LENGTH + TOKENS)))
