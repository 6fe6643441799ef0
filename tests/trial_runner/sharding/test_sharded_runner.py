"""One backbone over two processes: every trial is what it is alone, whatever the others do, and each holds a half."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from support import rotation
from support.packing_cases import request_for
from support.sharded import BACK, FORTH, PATIENCE_SECONDS, OfTexts
from support.text_cases import write_task

from search_space.configuration import Configuration
from search_space.layers import LayerRange
from search_space.published import published_method
from trial_runner.attachment.attach import stacks_of
from trial_runner.backbones import BackboneSource
from trial_runner.errors import AttachError, BackboneError
from trial_runner.requests import Pack, Reading, Snapshot, TrialRequest
from trial_runner.runner import TorchRunner
from trial_runner.sharding.runner import Shape, ShardedRunner, rank_environment

RANKS = 2
Trained = dict[int, tuple[list[Reading], Snapshot]]
"""Readings and the last state of trials, by their numbers."""

SAME = 1e-12
"""What the same pack computes on the same machine, but for how gathered weights lie in memory."""
EXACT = 1e-9
"""What is packed with others, alone; AdamW makes more of what rounding leaves."""


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def factory(tiny_backbone: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> OfTexts:
    folder = tmp_path_factory.mktemp("sharded")
    (family,) = rotation.parts(("bart", "qwen3"))[:1]
    return OfTexts(backbone=tiny_backbone(family, 0.1), task=write_task(folder / "texts"), trouble=folder)


@pytest.fixture(scope="module")
def whole(factory: OfTexts) -> Iterator[TorchRunner]:
    runner = factory()
    yield runner
    runner.close()


@pytest.fixture(scope="module")
def sharded(factory: OfTexts) -> Iterator[ShardedRunner]:
    runner = ShardedRunner(factory, Shape(ranks=RANKS, patience_seconds=PATIENCE_SECONDS))
    yield runner
    runner.close()


def requests_on(runner: TorchRunner) -> list[TrialRequest]:
    """Five trials of other structures and lengths; one without gradients in the lower block, one in parts."""
    shape = runner.backbone.shape
    names = ("mam_adapter", "lora_qv", "houlsby_adapter", "lora_qv", "prefix_tuning")
    found = [published_method(name).structure(shape) for name in names]
    found[3] = Configuration(edits=tuple(replace(edit, layers=LayerRange(first=1, last=1)) for edit in found[3].edits))
    trials = [request_for(one, trial, steps=(4, 6, 8)[trial % 3]) for trial, one in enumerate(found)]
    split = replace(trials[2].plan, micro_batch=2, checkpointing=True)
    return [replace(one, plan=split) if number == 2 else one for number, one in enumerate(trials)]


@pytest.fixture(scope="module")
def alone(whole: TorchRunner) -> Trained:
    """Train each of the trials in a pack of its own, in one process."""
    found: Trained = {}
    for request in requests_on(whole):
        found |= trained(whole.open_pack(1), [request])
    return found


def trained(pack: Pack, requests: Sequence[TrialRequest]) -> Trained:
    """Return readings and last states of trials by number; an ended one leaves at once."""
    for request in requests:
        pack.admit(request)
    readings: dict[int, list[Reading]] = {request.trial: [] for request in requests}
    found: Trained = {}
    while len(found) < len(requests):
        for result in pack.advance(3):
            assert isinstance(result, Reading), result
            readings[result.trial].append(result)
        for request in requests:
            trial = request.trial
            if trial not in found and len(readings[trial]) == len(request.plan.evaluate_at_steps):
                found[trial] = (readings[trial], pack.snapshot(trial))
                pack.evict(trial)
    return found


def difference(one: tuple[list[Reading], Snapshot], other: tuple[list[Reading], Snapshot]) -> float:
    """Compute the largest difference of two trials' metrics and tensors, relative to the largest number of each."""
    metrics = [(dict(a.metrics), dict(b.metrics)) for a, b in zip(one[0], other[0], strict=True)]
    assert [a.keys() for a, _ in metrics] == [b.keys() for _, b in metrics]
    pairs = [(torch.tensor(a[name]), torch.tensor(b[name])) for a, b in metrics for name in a]
    states = [{name: torch.as_tensor(value) for name, value in each[1].tensors.items()} for each in (one, other)]
    assert states[0].keys() == states[1].keys()
    pairs += [(tensor, states[1][name]) for name, tensor in states[0].items() if tensor.numel()]
    return max(float((a - b).abs().max()) / max(1e-3, float(b.abs().max())) for a, b in pairs)


def test_sharded_trial_equals_itself_alone(whole, sharded, alone):
    requests = requests_on(whole)
    found = trained(sharded.open_pack(6), requests)
    for rank in range(RANKS):
        packed = trained(whole.open_pack(3), requests[rank::RANKS])
        assert {trial: difference(found[trial], one) <= SAME for trial, one in packed.items()} == dict.fromkeys(
            packed, True
        )
    assert {trial: difference(found[trial], one) <= EXACT for trial, one in alone.items()} == dict.fromkeys(alone, True)
    assert len({reading.metrics["validation_loss"] for readings, _ in found.values() for reading in readings}) == 10


def test_a_rank_holds_its_share_of_the_blocks_between_passes(whole, sharded):
    backbone = whole.backbone
    stacks = stacks_of(backbone.model, backbone.family.ports(backbone.shape), backbone.shape)
    every = sum(one.nbytes for stack in stacks for block in stack for one in block.parameters())

    def held_bytes() -> list[int]:
        return [answer.value for answer in sharded.ranks.ask("held_bytes")]

    before = held_bytes()
    pack = sharded.open_pack(2)
    requests = requests_on(whole)[:2]
    for request in requests:
        pack.admit(request)
    pack.advance(1)
    assert held_bytes() == before == [every // RANKS] * RANKS
    for request in requests:
        pack.evict(request.trial)


def test_rank_out_of_memory_mid_pass_continues_with_others(factory, whole, sharded, alone):
    flags = [factory.trouble / FORTH, factory.trouble / BACK]
    for flag in flags:
        flag.touch()
    found = trained(sharded.open_pack(4), requests_on(whole)[:4])
    assert [flag.exists() for flag in flags] == [False, False]
    assert {trial: difference(one, alone[trial]) <= EXACT for trial, one in found.items()} == dict.fromkeys(
        range(4), True
    )


def test_sharded_runner_refuses_forms_of_whole_weights(whole, sharded, alone):
    (request, *_) = requests_on(whole)
    of_all = replace(request, configuration=published_method("full_finetuning").structure(whole.backbone.shape))
    pack = sharded.open_pack(2)
    with pytest.raises(AttachError, match="need whole ones, which shards do not have; trial 0 has full"):
        pack.admit(of_all)
    assert pack.free_slots == 2
    found = trained(pack, [request])
    assert difference(found[0], alone[0]) <= EXACT


def test_quantised_blocks_are_not_sharded(whole):
    quantised = replace(whole.backbone, source=BackboneSource(name="somebody/model", quantization="nf4"))
    nobody: Any = "nobody is met before"
    with pytest.raises(BackboneError, match=r"somebody/model \(nf4\) cannot be sharded: codes are none of what"):
        TorchRunner(quantised, whole.task, precision="fp64", mesh=nobody)


def test_shards_get_no_variables_of_a_surrounding_job(monkeypatch):
    names = ["RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "ROLE_NAME", "MASTER_ADDR"]
    names += ["MASTER_PORT", "TORCHELASTIC_RUN_ID", "ACCELERATE_USE_FSDP", "FSDP_CPU_RAM_EFFICIENT_LOADING"]
    for name in (*names, "SLURM_PROCID", "NCCL_DEBUG"):
        monkeypatch.setenv(name, "1")
    made = rank_environment(0, Shape(ranks=2))
    assert not made.keys() & set(names)
    assert made["SLURM_PROCID"] == made["NCCL_DEBUG"] == "1"
