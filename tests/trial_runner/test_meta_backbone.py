"""Packs over backbones that are not there plan the memory of those that are."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from support.allocator import peak_of
from support.packing_cases import request_for, sized
from support.whole_blocks import in_whole_blocks

from search_space.published import published_method
from trial_runner.attachment.attention import ATTENTION
from trial_runner.backbones import Backbone, BackboneSource, load_backbone, load_language_model
from trial_runner.linear_layers import held_bytes, products_of
from trial_runner.meta_backbone import MetaPack
from trial_runner.packs.pack import TrialPack
from trial_runner.requests import TrialRequest
from trial_runner.runner import TorchRunner
from trial_runner.tasks import Task

STEPS, WITHIN = 2, 0.15
CLASSES = Task(kind="classification", folder="data", text=("text",), label="label", max_tokens=48)
TEXTS = Task(
    kind="summarisation",
    folder="data",
    source="source",
    target="target",
    max_tokens=40,
    max_target_tokens=8,
    metric="loss",
    metrics=("loss",),
)


def requests_for(pack: TrialPack) -> list[TrialRequest]:
    shape = pack.frozen.shape
    structures = [published_method(name).structure(shape) for name in ("mam_adapter", "lora_qv")]
    return [request_for(sized(one, 0), trial, steps=STEPS) for trial, one in enumerate(structures)]


INT4 = {"quantization": "int4"}
HELD: tuple[dict[str, Any], ...] = ({"quantization": "nf4"}, {"quantization": "int8"}, {"dtype": "bf16"})


@pytest.mark.parametrize(
    ("family", "held"),
    [
        *((family, held) for family in ("roberta", "gpt2", "t5") for held in HELD),
        *(("wide", held) for held in (INT4, {**INT4, "dtype": "bf16"})),
    ],
    ids=str,
)
def test_weights_are_reckoned_in_their_true_size(family, held, tiny_backbone, tmp_path):
    folder = in_whole_blocks(tiny_backbone("qwen3"), tmp_path) if family == "wide" else tiny_backbone(family)
    source = BackboneSource(name=str(folder), **held)
    real = load_backbone(source).model
    for layer in products_of(real):
        layer.to(torch.bfloat16)  # as a GPU has it
    assert MetaPack(source, CLASSES, slots=1).weights_bytes == held_bytes(real)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "task"),
    [("roberta", CLASSES), ("qwen3", TEXTS), ("qwen3_moe", TEXTS)],
    ids=["roberta", "qwen3", "qwen3_moe"],
)
def test_memory_planned_from_the_config_equals_the_allocators(family, task, tiny_backbone, tmp_path):
    folder = tiny_backbone(family)
    (tmp_path / "config.json").write_text((folder / "config.json").read_text())
    imagined = MetaPack(str(tmp_path), task, slots=2, as_gpu=False)
    planned = imagined.memory_of(*requests_for(imagined))
    load: Callable[..., Backbone] = load_backbone if task is CLASSES else load_language_model
    prepared: Any = imagined.objective.task  # type: ignore[attr-defined]
    runner = TorchRunner(load(str(folder), attn_implementation=ATTENTION), prepared, precision="fp32")
    runner.frozen.evaluation.examples = 16
    assert imagined.weights_bytes == sum(one.numel() * one.element_size() for one in runner.backbone.whole.parameters())
    pack = runner.open_pack(2)
    real = pack.memory_of(*requests_for(pack))
    assert (planned.held_bytes, planned.step_bytes, planned.evaluation_bytes) == (
        real.held_bytes,
        real.step_bytes,
        real.evaluation_bytes,
    )

    def train() -> None:
        for request in requests_for(pack):
            pack.admit(request)
        pack.advance(STEPS)

    assert 1 <= planned.peak_bytes / peak_of(train) <= 1 + WITHIN
    runner.close()


@pytest.mark.slow
def test_meta_gpu_keeps_half_precision_products_only(tiny_backbone, tmp_path):
    config = json.loads((tiny_backbone("qwen3") / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 4096}))
    task = Task(**{**vars_of(TEXTS), "max_tokens": 500})
    on_cpu, on_gpu = (MetaPack(str(tmp_path), task, slots=1, as_gpu=way) for way in (False, True))
    assert on_gpu.weights_bytes < on_cpu.weights_bytes
    steps = [pack.memory_of(requests_for(pack)[1]).step_bytes for pack in (on_gpu, on_cpu)]
    assert steps[0] < steps[1] / 4  # 4 heads of 508 x 508 tokens are most of what a CPU keeps


def vars_of(task: Task) -> dict[str, Any]:
    return {name: getattr(task, name) for name in ("kind", "folder", "source", "target", "max_target_tokens")}


def test_only_a_gpu_is_given_batches_of_texts_in_few_shapes(tiny_backbone):
    folder = str(tiny_backbone("qwen3"))
    on_cpu, on_gpu = (MetaPack(folder, TEXTS, slots=1, as_gpu=way).objective for way in (False, True))
    rows = np.arange(4)
    plain, padded = on_cpu.batch("train", rows), on_gpu.batch("train", rows)
    assert (plain.has_fixed_shapes, padded.has_fixed_shapes) == (False, True)
    assert len(plain.tensors["places"]) == 4 * TEXTS.max_target_tokens
    assert len(padded.tensors["places"]) == 256
