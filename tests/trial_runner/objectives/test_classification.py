"""The objective of classification: what an encoder is called with, and the head on its outputs."""

import os
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from support.packing_cases import EVEN_TASK, TASK, request_for, runner_of
from support.processes import printed_by

from search_space.published import published_method
from trial_runner.objectives import ClassificationHead
from trial_runner.requests import Reading


def test_the_head_is_linear_in_the_mean_of_the_real_tokens():
    hidden = torch.arange(24, dtype=torch.float64).view(2, 3, 4)
    mask = torch.tensor([[True, True, True], [True, False, False]])
    head = ClassificationHead(4, 5, seed=0, dtype=torch.float64)
    means = torch.stack([hidden[0].mean(dim=0), hidden[1, 0]])
    torch.testing.assert_close(head(hidden, mask), means @ head.weight.T, rtol=1e-12, atol=0)


def test_no_mask_equals_a_full_mask_bit_for_bit():
    hidden = torch.randn(3, 7, 16, generator=torch.Generator().manual_seed(0))
    head = ClassificationHead(16, 5, seed=0, dtype=torch.float32)
    assert torch.equal(head(hidden, None), head(hidden, torch.ones(3, 7, dtype=torch.bool)))


@pytest.mark.parametrize(
    ("family", "task", "has_mask"),
    [("roberta", TASK, True), ("roberta", EVEN_TASK, False), ("gpt2", TASK, False), ("bart", EVEN_TASK, True)],
    ids=["padded", "even", "decoder", "encoder_decoder"],
)
def test_models_get_no_full_mask(family, task, has_mask, tiny_backbone):
    runner = runner_of(tiny_backbone(family), task=task)
    tensors = runner.objective.batch("train", np.arange(8)).tensors
    runner.close()
    assert ("attention_mask" in tensors) == has_mask
    assert {"input_ids", "labels"} <= set(tensors)


def test_encoder_decoder_accepts_a_batch_of_no_examples(tiny_backbone):
    runner = runner_of(tiny_backbone("bart"))
    batch = runner.objective.batch("train", np.zeros(0, dtype=np.int64))
    runner.close()
    assert batch.has_fixed_shapes
    assert all(len(tensor) == 0 for tensor in batch.tensors.values())


@pytest.mark.slow
def test_classification_imports_no_metrics_library(tiny_backbone):
    script = f"""
import sys
from support.halves_task import halves_task
from support.packing_cases import request_for, runner_of
from search_space.published import published_method

runner = runner_of({str(tiny_backbone("roberta"))!r}, task=halves_task())
pack = runner.open_pack(1)
pack.admit(request_for(published_method("lora_qv").structure(runner.backbone.shape), 0, steps=2))
assert {{"accuracy", "f1", "matthews"}} <= set(list(pack.advance(2))[-1].metrics)
sys.exit(", ".join({{"sklearn", "sacrebleu", "rouge_score", "nltk"}} & set(sys.modules)) or None)
"""
    printed_by("-c", script, PYTHONPATH=os.pathsep.join(sys.path))


def test_examples_average_to_the_metrics_that_are_measured(tiny_backbone):
    runner = runner_of(tiny_backbone("roberta"))
    pack = runner.open_pack(2)
    lora, mam = (published_method(name).structure(runner.backbone.shape) for name in ("lora_qv", "mam_adapter"))
    for number, structure in enumerate((lora, mam)):
        pack.admit(request_for(structure, number, steps=2))
    readings = [one for one in pack.advance(2) if isinstance(one, Reading)]
    runner.close()
    assert readings
    for reading in readings:
        assert reading.examples is not None
        right, losses = reading.examples, replace(reading.examples, correct=None)
        assert right.scores.mean() == pytest.approx(reading.metrics["accuracy"], rel=1e-12)
        # each is rounded to a half float, by at most 2^-11 of it
        assert -losses.scores.mean() == pytest.approx(reading.metrics["validation_loss"], rel=2.0**-11)
