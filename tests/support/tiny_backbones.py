"""Tiny backbones of every family with hooks on their ports: which of them a run takes."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from _pytest.mark import ParameterSet
from support import rotation

from search_space.backbones import FAMILIES
from search_space.configuration import Configuration
from search_space.dimensions import StackKind
from trial_runner.attachment.attention import ATTENTION, register_attention
from trial_runner.backbones import BackboneSource, load_backbone
from trial_runner.port_discovery.edit_properties import check_everything
from trial_runner.port_discovery.rig import Rig, rig_on
from trial_runner.runner import TorchRunner

_THROUGH_EVERYTHING = ("modernbert", "phi3", "deberta-v2", "mpnet")
"""Families of which a run takes one through everything: fused modules of an encoder, unequal slices, positions that
projections read, and positions that are learned and relative."""

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
SOME_FAMILIES = (*SOME_BACKBONES, *EVERY_FAMILY[len(EVERY_BACKBONE) :])
"""These, and one of those that are built of what the others are built of."""


def has_short_windows(runner: TorchRunner) -> bool:
    """Return whether the windows of a decoder are too short for a prompt and a text."""
    window = getattr(runner.backbone.model.config, "sliding_window", None)
    return runner.backbone.shape.kind is StackKind.DECODER and window is not None and window < 30


def exact_attention(family: str) -> str:
    """Return the implementation that computes attention of a plain model in float64.

    Not "eager", which has a softmax in float32 in some families. Gemma 2 has no "sdpa"; `test_families_against_models`
    compares our soft-capping with eager attention. DeBERTa and MPNet have only one.
    """
    return {"gemma2": ATTENTION, "deberta-v2": "eager", "mpnet": "eager"}.get(family, "sdpa")


def parameters(*names: str, at_once: tuple[str, ...] = ()) -> list[ParameterSet]:
    """Return backbones to run a test on, some of them as slow tests only.

    Args:
        names: The backbones.
        at_once: Those that are not slow; without any, the ones whose modules no other family has.
    """
    quick = at_once or tuple(name for name in names if name not in _LIKE_ANOTHER)
    return [pytest.param(name, marks=() if name in quick else pytest.mark.slow) for name in names]


def in_turn(*names: str, at_once: tuple[str, ...] = ()) -> list[ParameterSet]:
    """Return the same parameters, of which a run takes a third of the slow ones."""
    every = parameters(*names, at_once=at_once)
    slow = rotation.third([one for one in every if one.marks])
    return [one for one in every if not one.marks or one in slow]


def rig_of(folder: Path | BackboneSource, **options: Any) -> Rig:
    """Return a tiny backbone with hooks on it.

    Args:
        folder: Folder of the backbone, or its source with a weight format.
        options: Options of `load_backbone`; float64 without any.
    """
    register_attention()
    source = folder if isinstance(folder, BackboneSource) else str(folder)
    backbone = load_backbone(source, attn_implementation=ATTENTION, **({"precision": "float64"} | options))
    backbone.model.config.use_cache = False  # it costs time, and the tests of generation are about it
    return rig_on(backbone)


def rigs_of(folder: Path, **options: Any) -> Iterator[Rig]:
    """Yield a tiny backbone with hooks on one thread, and remove the hooks in the end."""
    torch.set_num_threads(1)
    rig = rig_of(folder, **options)
    yield rig
    rig.attachment.detach()


def checked(rig: Rig, configuration: Configuration) -> None:
    """Check the contract of edits; add the configuration to an error."""
    try:
        check_everything(rig, configuration)
    except Exception as error:
        error.add_note(str(configuration))
        raise
