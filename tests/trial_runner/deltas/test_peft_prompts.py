"""Prompts and prefixes against `peft`, a library that nobody here wrote: same weights, same outputs, in float64.

`peft` counts the trained rows in the positions of the real tokens, this library mostly does not. What is done to its
copy of the backbone so that the two can be compared, and what cannot be compared, is in `NOT_ALIKE`; a test holds each
of these reasons.
"""

import math
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import AdaptionPromptConfig, PrefixTuningConfig, PromptEncoderConfig, PromptTuningConfig, get_peft_model
from support.built_forms import nudged
from support.rounding import rounding
from torch import Tensor

from search_space.configuration import Configuration
from search_space.dimensions import Heads, Port, Site, StackKind
from search_space.edit import Edit
from search_space.forms import EncodedPrompt, Prompt, PromptEncoder, SoftmaxMemory
from search_space.gates import ConvexGate, Prepend, TanhGate
from trial_runner.attachment.attach import Attachment
from trial_runner.attachment.attention import ATTENTION, register_attention
from trial_runner.backbones import load_backbone
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.deltas.port_delta import PortDelta
from trial_runner.deltas.prefix_stack import PrefixStack

# This release of peft asks transformers for a property by its old name.
pytestmark = pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")

TOLERANCE = 1e-12
UNLIKE = 1e-3
LENGTH, TOKENS = 5, 12

INPUT_IDS = torch.randint(5, 200, (3, TOKENS), generator=torch.Generator().manual_seed(0))
MASK = (torch.arange(TOKENS) < torch.tensor([[12], [9], [4]])).long()
DECODER_IDS = torch.randint(5, 200, (3, 7), generator=torch.Generator().manual_seed(1))

ENCODERS, ENCODER_DECODERS = ("roberta", "bert"), ("bart", "t5", "t5_gated")
DECODERS = ("gpt2", "llama", "qwen2", "qwen3")

NOT_ALIKE = {
    ("prompt", "roberta"): "peft gives prompts the first positions and a token type; compared with its tables moved",
    ("prompt", "bert"): "as on RoBERTa",
    ("prompt", "bart"): "peft gives prompts the first positions; compared with its table moved",
    ("prompt", "count on encoder-decoders"): "peft trains 2 l rows of which it uses l; compared with those",
    ("prefix", "position"): "peft's cache moves the real tokens by l; compared with position ids that move them back",
    ("prefix", "bart"): "the decoder takes no position ids; compared with its table of positions moved",
    ("prefix", "t5"): "a cached prefix gets the position bias of tokens before the text, ours none (as the mask of "
    "eq. 7 is 0 there); compared with the bias of the decoder at zero in both copies",
    ("prefix", "encoder and cross attention"): "peft's cache reaches the decoder's self-attention only; nothing to "
    "compare",
    (
        "prefix",
        "blocks of encoder-decoders",
    ): "peft deals its tables out twice: decoder block i of L gets that of block "
    "2i mod L, and those of odd blocks none; compared with ours dealt out alike",
    ("prefix with an MLP", "grouped queries"): "peft's embedding is d_kv wide, Li & Liang's and ours d; compared where "
    "the two are one",
    ("adaption prompt", "gpt2"): "peft adds the heads to the residual stream without W_o; no point of the space",
    ("adaption prompt", "gate"): "peft's gate is g, ours tanh(g); compared at equal gates",
    ("adaption prompt", "softmax"): "peft's is in float32 whatever the model is; compared within its rounding",
}


class Pair:
    """Two copies of a tiny backbone: one with our hooks, one for peft."""

    def __init__(self, family: str, folder: Path) -> None:
        register_attention()
        self.family, self._folder = family, folder
        self.ours = load_backbone(str(folder), precision="float64", attn_implementation=ATTENTION)
        self.shape = self.ours.shape
        self.attachment = Attachment(self.ours.model, self.ours.family, self.shape)

    @property
    def is_seq2seq(self) -> bool:
        return self.shape.kind is StackKind.ENCODER_DECODER

    def fresh(self) -> Any:
        """A copy of the backbone for peft: the language model of encoder-decoders, the base model of others."""
        if not self.is_seq2seq:
            # not "eager", which has a softmax in float32 in some families
            return load_backbone(str(self._folder), precision="float64", attn_implementation="sdpa").model
        from transformers import AutoModelForSeq2SeqLM

        from trial_runner.huggingface import quiet_transformers

        with quiet_transformers():
            model = AutoModelForSeq2SeqLM.from_pretrained(self._folder, attn_implementation="sdpa", dtype=torch.float64)
        return model.eval()

    @property
    def task(self) -> str:
        return "SEQ_2_SEQ_LM" if self.is_seq2seq else "FEATURE_EXTRACTION"

    def deltas(self, *edits: Edit) -> DeltaSet:
        """Our deltas, every parameter moved from its start."""
        return nudged(DeltaSet(Configuration(edits=edits), self.shape, seed=0, dtype=torch.float64), 0.3)

    def run(self, deltas: DeltaSet | None = None) -> Tensor:
        if deltas is None:
            return real_rows(self.ours.model(**self.inputs()))
        with torch.no_grad(), self.attachment.using(deltas):
            return self.run()

    def inputs(self) -> dict[str, Tensor]:
        inputs = {"input_ids": INPUT_IDS, "attention_mask": MASK}
        return inputs | ({"decoder_input_ids": DECODER_IDS} if self.is_seq2seq else {})

    def run_peft(self, theirs: Any, **more: Tensor) -> Tensor:
        asked = {"output_hidden_states": True} if self.is_seq2seq else {}
        with torch.no_grad():
            return real_rows(theirs(**self.inputs(), **asked, **more))


def real_rows(out: Any) -> Tensor:
    """``(N, D)``: last hidden states of all real tokens, without those of prompts; of both stacks if there are two."""
    if "encoder_last_hidden_state" not in out:
        return out.last_hidden_state[:, -TOKENS:][MASK.bool()]
    decoded = out.last_hidden_state if "last_hidden_state" in out else out.decoder_hidden_states[-1]
    return torch.cat([decoded.flatten(0, 1), out.encoder_last_hidden_state[:, -TOKENS:][MASK.bool()]])


@pytest.fixture(scope="module")
def pair(tiny_backbone: Callable[[str], Path]) -> Iterator[Callable[[str], Pair]]:
    """Makes the two copies of a family."""
    made: list[Pair] = []

    @cache
    def make(family: str) -> Pair:
        made.append(Pair(family, tiny_backbone(family)))
        return made[-1]

    yield make
    for each in made:
        each.attachment.detach()


def assert_same(ours: Tensor, theirs: Tensor, frozen: Tensor, *, within: float = TOLERANCE) -> None:
    torch.testing.assert_close(ours, theirs, rtol=0, atol=within)
    assert (ours - frozen).abs().max() > 0.01, "an edit that does nothing compares nothing"


def assert_not_same(ours: Tensor, theirs: Tensor, reason: str) -> None:
    assert (ours - theirs).abs().max() > UNLIKE, reason


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
    form = form or Prompt(width=LENGTH)
    return Edit(site=Site.EMBEDDING, write=Port.EMBEDDING, read=None, form=form, gate=Prepend())


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
    assert_same(both.run(deltas), both.run_peft(theirs), both.run())


@pytest.mark.parametrize("family", POSITIONS)
def test_a_prompt_of_peft_takes_the_first_positions(pair: Callable[[str], Pair], family: str) -> None:
    both = pair(family)
    deltas = both.deltas(prompt())
    config = PromptTuningConfig(task_type=both.task, num_virtual_tokens=LENGTH)
    theirs = get_peft_model(both.fresh(), config).double()
    theirs.prompt_encoder["default"].embedding.weight.data[:LENGTH] = rows_of(deltas)
    assert_not_same(both.run(deltas), both.run_peft(theirs), NOT_ALIKE["prompt", family])


def rows_of(deltas: DeltaSet) -> Tensor:
    assert deltas.prompt is not None
    return deltas.prompt.rows().detach()


def test_half_of_the_prompt_that_peft_trains_on_encoder_decoders_is_dead(pair: Callable[[str], Pair]) -> None:
    both = pair("t5")
    theirs = get_peft_model(both.fresh(), PromptTuningConfig(task_type=both.task, num_virtual_tokens=LENGTH)).double()
    weight = theirs.prompt_encoder["default"].embedding.weight
    theirs(**both.inputs()).logits.square().sum().backward()
    assert weight.shape == (2 * LENGTH, both.shape.width), NOT_ALIKE["prompt", "count on encoder-decoders"]
    assert weight.grad[:LENGTH].abs().min() > 0
    assert torch.equal(weight.grad[LENGTH:], torch.zeros(LENGTH, both.shape.width))
    assert both.deltas(prompt()).counts.trained == LENGTH * both.shape.width


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
    assert_same(both.run(deltas), both.run_peft(theirs), both.run())
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
    return Edit(site=site, write=Port.HEAD, read=Port.Q, form=form, gate=ConvexGate())


def flat_prefix(deltas: DeltaSet) -> Tensor:
    """``(l, L * 2 * d_kv)``, as peft stores a prefix: by layer, keys before values, head."""
    tables = [module.form.table() for module in deltas.modules() if isinstance(module, PortDelta)]
    columns = [part.transpose(0, 1).flatten(1) for table in tables for part in table]  # (l, d_kv) each
    return torch.cat(columns, dim=1).detach()


MOVED_BACK = torch.arange(TOKENS)[None] - LENGTH
"""Position ids to which peft adds the length of its prefix."""


def positions_for(family: str) -> Tensor:
    """What peft must be told so that the real tokens have their own positions."""
    return MOVED_BACK + (2 if family == "roberta" else 0)  # RoBERTa counts from its padding id, 1


@pytest.mark.parametrize("family", [*ENCODERS, *DECODERS])
def test_a_prefix_is_that_of_peft_at_the_positions_without_it(pair: Callable[[str], Pair], family: str) -> None:
    both = pair(family)
    deltas = both.deltas(prefix())
    theirs = get_peft_model(both.fresh(), PrefixTuningConfig(task_type=both.task, num_virtual_tokens=LENGTH)).double()
    theirs.prompt_encoder["default"].embedding.weight.data.copy_(flat_prefix(deltas))
    ours = both.run(deltas)
    assert_same(ours, both.run_peft(theirs, position_ids=positions_for(family)), both.run())
    assert_not_same(ours, both.run_peft(theirs), NOT_ALIKE["prefix", "position"])
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
    assert_same(both.run(deltas), both.run_peft(theirs, position_ids=positions_for(family)), both.run())
    trained = sum(parameter.numel() for parameter in theirs.parameters() if parameter.requires_grad)
    assert deltas.counts.trained == trained


def test_a_prefix_from_an_mlp_of_peft_starts_narrower_under_grouped_queries(pair: Callable[[str], Pair]) -> None:
    both = pair("llama")
    config = PrefixTuningConfig(
        task_type=both.task, num_virtual_tokens=LENGTH, prefix_projection=True, encoder_hidden_size=7
    )
    theirs = get_peft_model(both.fresh(), config).prompt_encoder["default"]
    (stack,) = (module for module in both.deltas(prefix(hidden=7)).modules() if isinstance(module, PrefixStack))
    assert theirs.embedding.weight.shape == (LENGTH, both.shape.key_value_width)
    assert stack.embedding.shape == (LENGTH, both.shape.width), NOT_ALIKE["prefix with an MLP", "grouped queries"]


@pytest.mark.parametrize("family", ENCODER_DECODERS)
def test_a_prefix_of_the_decoder_is_that_of_peft_without_positions(
    tiny_backbone: Callable[[str], Path], family: str
) -> None:
    both = Pair(family, tiny_backbone(family))  # its own copy, for T5's is changed
    deltas = both.deltas(prefix(Site.DECODER_SELF))
    deal_as_peft(deltas)
    reason = NOT_ALIKE["prefix", "bart" if family == "bart" else "t5"]
    assert_not_same(both.run(deltas), both.run_peft(peft_decoder_prefix(both, deltas, alike=False)), reason)
    if family != "bart":
        position_bias(both.ours.model).zero_()
    theirs = peft_decoder_prefix(both, deltas, alike=True)
    assert_same(both.run(deltas), both.run_peft(theirs), both.run())
    encoded = int(MASK.sum())  # the rows of the encoder come last
    torch.testing.assert_close(both.run_peft(theirs)[-encoded:], both.run()[-encoded:], rtol=0, atol=TOLERANCE)
    everywhere = both.deltas(prefix()).counts.stored
    assert everywhere == 3 * deltas.counts.stored, NOT_ALIKE["prefix", "encoder and cross attention"]
    both.attachment.detach()


def peft_decoder_prefix(both: Pair, deltas: DeltaSet, *, alike: bool) -> Any:
    """A prefix of peft with our numbers, on a copy whose positions do not tell; or do, if it is not to be alike."""
    model = both.fresh()
    if alike and both.family == "bart":
        move_positions(model, "model.decoder.embed_positions", 2)
    elif alike:
        position_bias(model).zero_()
    # the width is given, for peft takes the residual width, which the heads of T5 need not have
    width = both.shape.key_value_width
    config = PrefixTuningConfig(task_type=both.task, num_virtual_tokens=LENGTH, token_dim=width)
    theirs = get_peft_model(model, config).double()
    theirs.prompt_encoder["default"].embedding.weight.data.copy_(flat_prefix(deltas))
    return theirs


def position_bias(model: Any) -> Tensor:
    """The table of relative positions of T5's decoder."""
    return model.decoder.block[0].layer[0].SelfAttention.relative_attention_bias.weight.data


def deal_as_peft(deltas: DeltaSet) -> None:
    """Block i of L gets the table of block 2i mod L, see `NOT_ALIKE`."""
    forms = [module.form for module in deltas.modules() if isinstance(module, PortDelta)]
    for layer, form in enumerate(forms):
        form.load_state_dict(forms[2 * layer % len(forms)].state_dict())


def test_half_of_the_prefix_that_peft_trains_on_encoder_decoders_is_dead(pair: Callable[[str], Pair]) -> None:
    both = pair("bart")
    theirs = peft_decoder_prefix(both, both.deltas(prefix(Site.DECODER_SELF)), alike=True)
    weight = theirs.prompt_encoder["default"].embedding.weight
    theirs(**both.inputs()).logits.square().sum().backward()
    used, dead = weight.grad.chunk(2, dim=1)  # block 0, which both blocks get, and block 1
    assert used.abs().min() > 0
    assert torch.equal(dead, torch.zeros_like(dead)), NOT_ALIKE["prefix", "blocks of encoder-decoders"]


# --- adaption prompts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_a_memory_under_a_tanh_gate_is_the_adaption_prompt_of_peft(pair: Callable[[str], Pair], family: str) -> None:
    """LLaMA-Adapter: keys and values are frozen projections of its prompt, a memory has them as they are."""
    both = pair(family)
    form = SoftmaxMemory(width=LENGTH, heads=Heads.KEY_VALUE)
    of = Edit(site=Site.ATTENTION, write=Port.HEAD, read=Port.Q, form=form, gate=TanhGate())
    deltas = both.deltas(of)
    name = "attn" if family == "gpt2" else "self_attn"
    blocks = both.shape.decoder_layers
    theirs = get_peft_model(
        both.fresh(),
        AdaptionPromptConfig(task_type=both.task, adapter_len=LENGTH, adapter_layers=blocks, target_modules=name),
    ).double()
    found = [module for module in deltas.modules() if isinstance(module, PortDelta)]
    with torch.no_grad():
        for layer, delta in enumerate(found):
            block = (theirs.h if family == "gpt2" else theirs.layers)[layer]
            adapted = getattr(block, name)
            adapted.adaption_gate.fill_(0.6)
            delta.factor.g.fill_(math.atanh(0.6))  # see NOT_ALIKE["adaption prompt", "gate"]
            rows = adapted.adaption_prompt[0]
            if family == "gpt2":
                keys, values = adapted.model.c_attn(rows).chunk(3, dim=-1)[1:]
            else:
                keys, values = adapted.model.k_proj(rows), adapted.model.v_proj(rows)
            for mine, other in ((delta.form.keys, keys), (delta.form.values, values)):
                mine.copy_(other.unflatten(-1, (-1, both.shape.head_width)).transpose(0, 1))
    if family == "gpt2":
        assert_not_same(both.run(deltas), both.run_peft(theirs), NOT_ALIKE["adaption prompt", "gpt2"])
    else:
        within = rounding(both.run(), terms=blocks * (LENGTH + TOKENS))  # see NOT_ALIKE["adaption prompt", "softmax"]
        assert_same(both.run(deltas), both.run_peft(theirs), both.run(), within=within)
