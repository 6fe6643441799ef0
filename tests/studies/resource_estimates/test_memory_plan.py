"""GPU memory of a study, estimated from the backbone's config alone."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import rotation
from torch import nn

from dashboards.terminal.plans import PlanView
from studies.errors import SpecificationError
from studies.resource_estimates import memory_plan as planning
from studies.resource_estimates.memory_plan import GPUS, gpus_of, plan
from studies.study_file import Specification, specification_from_mapping
from trial_runner.packs import memory

SMALL = replace(GPUS[0], memory_bytes=620_000_000)


def study_of(
    folder: Path, config: dict[str, Any], *, fleet: dict[str, int] | None = None, **training: Any
) -> Specification:
    (folder / "config.json").write_text(json.dumps(config))
    return specification_from_mapping(
        {
            "name": "planned",
            "backbone": str(folder),
            "task": {"kind": "summarisation", "folder": str(folder), "source": "a", "target": "b", "max_tokens": 64},
            "budget": "2%",
            "trials": 16,
            "training": {"steps": 10, "batch_size": 4, **training},
            "fleet": fleet or {},
        }
    )


@pytest.fixture
def config(tiny_backbone: Callable[[str], Path]) -> dict[str, Any]:
    entries: dict[str, Any] = json.loads((tiny_backbone("qwen3") / "config.json").read_text())
    return {**entries, "num_hidden_layers": 9, "layer_types": ["full_attention"] * 9, "max_position_embeddings": 4096}


@pytest.mark.slow
@pytest.mark.parametrize("checkpointing", rotation.parts([False, True]))
def test_a_deep_decoder_is_planned_by_its_first_blocks(checkpointing, config, tmp_path, monkeypatch):
    study = study_of(tmp_path, config)
    counts = []

    def only(blocks: nn.ModuleList, config: Any, count: int) -> AbstractContextManager[None]:
        counts.append(count)
        return memory.only_first(blocks, config, count)

    monkeypatch.setattr("trial_runner.packs.pack.only_first", only)
    _, few = planning.measured_plans(study, (checkpointing, None))
    monkeypatch.setattr(memory, "DEEP", 10)
    _, whole = planning.measured_plans(study, (checkpointing, None))
    assert counts == [2, 4, 2, 4], "of one trial and of two; the whole plan cuts nothing"
    for name in ("held_bytes", "step_bytes", "evaluation_bytes"):
        assert getattr(few, name) == pytest.approx(getattr(whole, name), rel=0.05), name


@pytest.mark.slow
def test_memory_advice_begins_with_checkpointing(config, tmp_path):
    config = {**config, "num_hidden_layers": 2, "layer_types": ["full_attention"] * 2}
    study = study_of(tmp_path, config, batch_size=600, micro_batch=600)
    found = plan(study, (SMALL, GPUS[-1]))
    small, large = found.devices
    assert (small.fits, large.fits) == (False, True)
    assert (small.checkpointing, large.checkpointing) == (True, False)
    assert 0 < small.batch_size < 600
    advice = " ".join(small.advice)
    assert f"training.batch_size: {small.batch_size} fits" in advice
    assert "it fits H200" in advice
    assert large.advice == ()
    assert large.used_bytes < large.gpu.memory_bytes
    fitting = study_of(tmp_path, config, batch_size=small.batch_size)
    assert plan(fitting, (SMALL,), pack=1).devices[0].fits
    tokens = 600 * found.tokens
    wide = study_of(tmp_path, config, batch_size=10_000, batch_tokens=tokens, micro_batch=10_000)
    bound = plan(wide, (SMALL,))
    (same,) = bound.devices
    assert same.batch_size == small.batch_size, "of the examples that a step has, not of as many as it might"
    advice = " ".join(same.advice)
    assert f"training.batch_tokens: {small.batch_size * found.tokens:,} fits" in advice
    assert "training.batch_size" not in advice


@pytest.mark.slow
def test_sharded_memory_plan_splits_blocks_and_trains_packs(config, tmp_path):
    config = {**config, "num_hidden_layers": 2, "layer_types": ["full_attention"] * 2}
    whole = plan(study_of(tmp_path, config), (GPUS[-1],), pack=2)
    shared = plan(study_of(tmp_path, config, fleet={"worker": {"shards": 4}, "pack": 2}), (GPUS[-1],), pack=2)
    blocks, every = sum(whole.weights.blocks_bytes), whole.weights.all_bytes
    assert whole.weights.held_bytes == every
    assert 0 < blocks < every
    assert shared.weights.held_bytes == every - blocks + blocks // 4 + 2 * (blocks // 2)
    assert shared.weights.gathered_bytes == 2 * blocks * 3 // 4
    (alone,), (each,) = whole.devices, shared.devices
    assert each.used_bytes - alone.used_bytes == shared.weights.held_bytes - every
    assert "4 x 2" in str(PlanView(shared))
    assert "Each of 4 GPUs has" in str(PlanView(shared))


@pytest.mark.slow
def test_steps_are_split_where_a_trial_would_not_fit_checkpointed(config, tmp_path):
    config = {**config, "num_hidden_layers": 2, "layer_types": ["full_attention"] * 2}
    (found,) = plan(study_of(tmp_path, config, batch_size=600), (SMALL,)).devices
    assert (found.fits, found.checkpointing) == (True, True)
    assert found.micro_batch < 600
    assert found.used_bytes < SMALL.memory_bytes


def test_a_gpu_is_named_by_its_kind_or_its_size():
    assert gpus_of("H100")[0].memory_bytes == 80 * 10**9
    assert gpus_of("80GB")[0].name == "H100 80GB"
    assert gpus_of("48 gb")[0].memory_bytes == 48 * 10**9
    for wrong in ("", "huge", "-3GB", "0GB", "nanGB"):
        with pytest.raises(SpecificationError, match="a GPU must be a size"):
            gpus_of(wrong)
