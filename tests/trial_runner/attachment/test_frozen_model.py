"""Masks of decoders: none for padding on the right, with equal numbers at every real token."""

import gc
from typing import Any
from weakref import ref

import numpy as np
import pytest
import torch
from support.packing_cases import request_for, runner_of, sized
from support.packing_traces import train, worst
from support.tiny_backbones import EVERY_FAMILY, rig_of

from search_space.dimensions import StackKind
from search_space.published import published_method
from trial_runner.attachment.frozen_model import FrozenModel
from trial_runner.attachment.inputs import REAL_TOKENS, is_padded_right
from trial_runner.tasks import Batch


@pytest.mark.parametrize("family", EVERY_FAMILY)
def test_real_tokens_of_a_decoder_see_no_padding_on_their_right(tiny_backbone, family):
    rig = rig_of(tiny_backbone(family))
    rig.attachment.detach()
    if not rig.is_decoder:
        assert rig.backbone.shape.kind is not StackKind.DECODER
        return

    def largest_gap(inputs: dict[str, torch.Tensor]) -> float:
        bare = {name: one for name, one in inputs.items() if name != "attention_mask"}
        with torch.no_grad():
            gaps = rig.hidden(None, inputs) - rig.hidden(None, bare)
        return float(gaps[inputs["attention_mask"].bool()].abs().max())

    assert largest_gap(rig.inputs) <= 1e-13
    left = {name: one for name, one in rig.padded_left().items() if name != "position_ids"}
    assert largest_gap(left) > 1e-6, "padding on the left is seen without a mask"


def test_padding_is_on_the_right_where_all_tokens_come_before_it():
    rows = {(1, 1, 1): True, (1, 1, 0): True, (1, 0, 0): True, (0, 1, 1): False, (1, 0, 1): False, (0, 0, 0): False}
    for row, wanted in rows.items():
        assert is_padded_right(np.array([row, (1, 1, 1)], dtype=bool)) is wanted


def batch_of(mask: list[list[int]]) -> Batch:
    real = np.array(mask, dtype=bool)
    ids = np.full(real.shape, 7, dtype=np.int64)
    return Batch(input_ids=ids, attention_mask=real, token_type_ids=None, labels=np.zeros(len(ids), dtype=np.int64))


@pytest.mark.slow
@pytest.mark.parametrize("family", ["roberta", "qwen3", "bart"])
def test_model_without_detaching_is_freed(tiny_backbone, family):
    runner = runner_of(tiny_backbone(family))
    model = ref(runner.backbone.model)
    del runner
    gc.collect()
    assert model() is None


@pytest.mark.parametrize("family", ["roberta", "qwen3", "bart"])
def test_redundant_mask_is_omitted(tiny_backbone, family):
    runner = runner_of(tiny_backbone(family))
    frozen, kind = runner.frozen, runner.backbone.shape.kind
    whole, right, left = ([[1, 1, 1], row] for row in ([1, 1, 1], [1, 1, 0], [0, 1, 1]))
    found = [frozen.inputs(batch_of(mask), copies=2) for mask in (whole, right, left)]
    wanted = {
        StackKind.ENCODER: [False, True, True],
        StackKind.DECODER: [False, False, True],
        StackKind.ENCODER_DECODER: [True, True, True],
    }
    assert ["attention_mask" in one for one in found] == wanted[kind]
    assert (REAL_TOKENS in found[1]) is (kind is StackKind.DECODER)
    if kind is StackKind.DECODER:
        assert found[1][REAL_TOKENS].tolist() == [[True, True, True], [True, True, False]] * 2
    runner.close()


@pytest.mark.parametrize("family", ["gpt2", "qwen3"])
def test_packs_without_masks_are_packs_with_them(tiny_backbone, monkeypatch, family):
    runner = runner_of(tiny_backbone(family))
    shape = runner.backbone.shape
    structures = [published_method(name).structure(shape) for name in ("mam_adapter", "lora_qv", "houlsby_adapter")]
    requests = [request_for(sized(one, number), number, steps=4) for number, one in enumerate(structures)]
    unmasked = train(runner.open_pack(3), requests)
    masked: list[bool] = []

    def needs(frozen: FrozenModel, mask: Any) -> bool:
        masked.append(True)
        return True

    monkeypatch.setattr(FrozenModel, "needs_mask", needs)
    masked = train(runner.open_pack(3), requests)
    assert masked
    assert worst(unmasked, masked, requests).share <= 1e-12
    runner.close()
