"""Tiny backbones of every family with hooks on their ports, and what they are called with.

Shapes: `B` examples, `T` tokens, `D` width.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from _pytest.mark import ParameterSet
from support import rotation
from torch import Tensor

from search_space.backbones import FAMILIES
from search_space.dimensions import Site, StackKind
from trial_runner.attachment.attach import Attachment
from trial_runner.attachment.attention import ATTENTION, register_attention
from trial_runner.backbones import Backbone, BackboneSource, load_backbone
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.runner import TorchRunner

_THROUGH_EVERYTHING = ("modernbert", "phi3", "deberta-v2")
"""Families of which a run takes one through everything: fused modules of an encoder, unequal slices, positions that
projections read."""

_IN_TURN = (
    "mistral",
    "ministral3",
    "granite",
    "olmo",
    "smollm3",
    "seed_oss",
    "helium",
    "ernie4_5",
    "stablelm",
    "gemma",
    "gemma2",
    "gemma3",
    "olmo2",
    "qwen3_moe",
    "mixtral",
    "olmoe",
    "eurobert",
)
"""Families that are built of what the others are built of: a run takes one of them through the contract of edits."""

_OF_EXPERTS = ("qwen3_moe", "mixtral", "olmoe")

BACKBONES: Mapping[str, tuple[str, ...]] = {family: (family,) for family in FAMILIES} | {"t5": ("t5", "t5_gated")}
"""Family to the tiny backbones that stand for it."""

EVERY_BACKBONE = (
    *(name for names in BACKBONES.values() for name in names if name not in (*_THROUGH_EVERYTHING, *_IN_TURN)),
    *rotation.parts(_THROUGH_EVERYTHING),
)
EVERY_FAMILY = (*EVERY_BACKBONE, *rotation.parts(_IN_TURN))
EVERY_DENSE_FAMILY = (*EVERY_BACKBONE, *rotation.parts([name for name in _IN_TURN if name not in _OF_EXPERTS]))
"""Those whose FFN can be reached inside."""
FEW_BACKBONES = ("roberta", "bart", "qwen3")
DECODERS = ("gpt2", "llama", "qwen2", "qwen3", *({"phi3"} & {*EVERY_BACKBONE}))
ENCODER_DECODERS = ("bart", "mbart", "marian", "t5", "t5_gated")

_LIKE_ANOTHER = ("bert", "electra", "mbart", "marian", "t5", "llama", "qwen2", *_THROUGH_EVERYTHING, *_IN_TURN)
SOME_BACKBONES = (
    *(name for name in EVERY_BACKBONE if name not in _LIKE_ANOTHER),
    *rotation.third([name for name in EVERY_BACKBONE if name in _LIKE_ANOTHER]),
)
"""Those whose modules no other family has, and a third of the others."""

_BATCH, _TOKENS, _ANSWER = 2, 5, 4
_LENGTHS = (5, 3)
_FIRST_WORD, _VOCABULARY = 6, 60

Inputs = dict[str, Tensor]


def has_short_windows(runner: TorchRunner) -> bool:
    """Whether the windows of a decoder are too short for a prompt and a text."""
    window = getattr(runner.backbone.model.config, "sliding_window", None)
    return runner.backbone.shape.kind is StackKind.DECODER and window is not None and window < 30


def exact_attention(family: str) -> str:
    """The implementation that computes attention of a plain model in float64.

    Not "eager", which has a softmax in float32 in some families; of Gemma 2 there is no "sdpa", and what ours computes
    under soft-capping is compared with eager attention in `test_families_against_models`. DeBERTa has one alone.
    """
    return {"gemma2": ATTENTION, "deberta-v2": "eager"}.get(family, "sdpa")


def parameters(*names: str, at_once: tuple[str, ...] = ()) -> list[ParameterSet]:
    """Backbones to run a test on, some of them as slow tests only.

    Args:
        names: The backbones.
        at_once: Those that are not slow; without any, the ones whose modules no other family has.
    """
    quick = at_once or tuple(name for name in names if name not in _LIKE_ANOTHER)
    return [pytest.param(name, marks=() if name in quick else pytest.mark.slow) for name in names]


@dataclass(frozen=True, kw_only=True)
class Rig:
    """A frozen backbone in float64 with hooks on it, and what it computes without deltas.

    Attributes:
        backbone: The backbone.
        attachment: The hooks.
        inputs: Two rows, the second one padded on the right; encoder-decoders have two rows for the decoder as well.
        plain: What the backbone makes of ``inputs`` before there are hooks on it, as `outputs` has it.
        frozen: The same with the hooks, without deltas; where attention calls no function, as in DeBERTa, it is
            computed in another order.
    """

    backbone: Backbone
    attachment: Attachment
    inputs: Inputs
    plain: Tensor
    frozen: Tensor

    @property
    def has_windows(self) -> bool:
        """Whether its attention looks no further than some tokens back."""
        return getattr(self.backbone.model.config, "sliding_window", None) is not None

    @property
    def is_decoder(self) -> bool:
        """Whether there is a decoder alone."""
        return self.backbone.shape.kind is StackKind.DECODER

    def weights(self) -> dict[str, Tensor]:
        """The parameters that a change of the whole model starts from."""
        return dict(self.backbone.model.named_parameters())

    def outputs(self, deltas: DeltaSet | None = None, inputs: Inputs | None = None) -> Tensor:
        """The last hidden states of the real tokens, ``(tokens, D)``, row after row."""
        given = self.inputs if inputs is None else inputs
        return self.outputs_of(self.hidden(deltas, given), given)

    @staticmethod
    def outputs_of(hidden: Tensor, inputs: Inputs) -> Tensor:
        """The real tokens of the last hidden states ``(B, T, D)``."""
        return hidden.flatten(0, 1) if "decoder_input_ids" in inputs else hidden[inputs["attention_mask"].bool()]

    def hidden(self, deltas: DeltaSet | None, inputs: Inputs) -> Tensor:
        """The last hidden states ``(B, T, D)``."""
        if deltas is None:
            return _hidden(self.backbone.model, inputs)
        with self.attachment.using(deltas):
            return _hidden(self.backbone.model, inputs)

    def second_row(self) -> Inputs:
        """The padded row without its padding."""
        real = self.inputs["attention_mask"][1].bool()
        alone = {name: self.inputs[name][1:, real] for name in ("input_ids", "attention_mask")}
        if "decoder_input_ids" in self.inputs:
            alone["decoder_input_ids"] = self.inputs["decoder_input_ids"][1:]
        return alone

    def padded_left(self) -> Inputs:
        """The rows of a decoder with the padding on the left, as batches are generated from."""
        shifts = [_TOKENS - length for length in _LENGTHS]
        turned = {
            name: torch.stack([row.roll(shift) for row, shift in zip(self.inputs[name], shifts, strict=True)])
            for name in ("input_ids", "attention_mask")
        }
        return turned | {"position_ids": (turned["attention_mask"].cumsum(dim=-1) - 1).clamp(min=0)}

    def with_another_end(self) -> Inputs:
        """The inputs with another token at the end of what a decoder reads."""
        name = "decoder_input_ids" if "decoder_input_ids" in self.inputs else "input_ids"
        other = self.inputs[name].clone()
        other[0, -1] += 1
        return self.inputs | {name: other}


def _hidden(model: torch.nn.Module, inputs: Inputs) -> Tensor:
    hidden: Tensor = model(**inputs).last_hidden_state
    return hidden


def rig_of(folder: Path | BackboneSource, **options: Any) -> Rig:
    """A tiny backbone with hooks on it.

    Args:
        folder: The backbone, or how its weights are held as well.
        options: Of `load_backbone`, in the place of float64.
    """
    register_attention()
    source = folder if isinstance(folder, BackboneSource) else str(folder)
    backbone = load_backbone(source, attn_implementation=ATTENTION, **({"precision": "float64"} | options))
    backbone.model.config.use_cache = False  # it costs time, and the tests of generation are about it
    inputs = _inputs(backbone)
    with torch.no_grad():
        plain = Rig.outputs_of(_hidden(backbone.model, inputs), inputs)
        attachment = Attachment(backbone.model, backbone.family, backbone.shape)
        frozen = Rig.outputs_of(_hidden(backbone.model, inputs), inputs)
    return Rig(backbone=backbone, attachment=attachment, inputs=inputs, plain=plain, frozen=frozen)


def _inputs(backbone: Backbone) -> Inputs:
    generator = torch.Generator().manual_seed(0)
    words = torch.randint(_FIRST_WORD, _VOCABULARY, (_BATCH, _TOKENS), generator=generator)
    real = torch.arange(_TOKENS) < torch.tensor(_LENGTHS)[:, None]
    inputs = {"input_ids": words.masked_fill(~real, backbone.pad_token_id), "attention_mask": real.long()}
    if backbone.shape.kind is StackKind.ENCODER_DECODER:
        inputs["decoder_input_ids"] = torch.randint(_FIRST_WORD, _VOCABULARY, (_BATCH, _ANSWER), generator=generator)
    return inputs


def sites_of(backbone: Backbone) -> tuple[Site, ...]:
    """Every site at which a backbone can be edited."""
    inside = (Site.ENCODER_SELF, Site.DECODER_SELF, Site.CROSS, Site.FFN)
    found = [site for site in inside if backbone.shape.sublayers(site)]
    if backbone.shape.stack_norms:
        found.append(Site.STACK)
    return (*found, Site.EMBEDDING, Site.GLOBAL)
