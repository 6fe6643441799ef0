"""Blocks that are computed again in backward passes: the same numbers, in less memory."""

import dataclasses
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from support.packing_cases import LONG_TASK, request_for, runner_of, sized
from support.packing_traces import deviation, train
from support.tiny_backbones import EVERY_FAMILY, has_short_windows, in_turn
from torch import nn

from search_space.published import published_method
from trial_runner.packs.memory import MemoryPlan
from trial_runner.requests import TrainingPlan, TrialRequest
from trial_runner.runner import TorchRunner

EXACT = 1e-12
STEPS = 4
METHODS = ("mam_adapter", "lora_qv", "houlsby_adapter", "inducer", "compacter", "prompt_tuning", "diff_pruning")
"""Prefixes, products at ports, adapters behind them and per head, prompts, and weights that are swapped for a pass."""


def requests_for(runner: TorchRunner, *, is_on: bool, names: tuple[str, ...] = METHODS) -> list[TrialRequest]:
    shape = runner.backbone.shape
    methods = [published_method(name) for name in names if name != "prompt_tuning" or not has_short_windows(runner)]
    structures = [sized(one.structure(shape), 0) for one in methods if one.invalid_reason(shape) is None]
    requests = [request_for(one, trial, steps=STEPS) for trial, one in enumerate(structures)]
    return [dataclasses.replace(one, plan=dataclasses.replace(one.plan, checkpointing=is_on)) for one in requests]


def calls_in(work: Callable[[], Any], block: nn.Module) -> tuple[Any, int]:
    """Return the result of a call, and the number of calls of the block's first layer."""
    calls: list[int] = []
    layer = next(one for one in block.modules() if not list(one.children()))
    handle = layer.register_forward_hook(lambda *_: calls.append(1))
    try:
        return work(), len(calls)
    finally:
        handle.remove()


@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("family", in_turn(*EVERY_FAMILY, at_once=("roberta", "bart", "qwen3")))
def test_training_is_the_same_whether_or_not_blocks_are_computed_again(family, dropout, tiny_backbone):
    runner = runner_of(tiny_backbone(family, dropout=dropout))
    block = runner.frozen.attachment.blocks()[-1]
    plain, computed = calls_in(lambda: train(runner.open_pack(8), requests_for(runner, is_on=False)), block)
    again, more = calls_in(lambda: train(runner.open_pack(8), requests_for(runner, is_on=True)), block)
    assert more > computed
    requests = requests_for(runner, is_on=True)
    for one, other, request in zip(again, plain, requests, strict=True):
        found = deviation(one, other)
        assert found.share <= EXACT, (found, request.configuration)
    runner.close()
    assert "forward" not in vars(block)


@pytest.fixture
def runner(tiny_backbone: Callable[..., Path]) -> Iterator[TorchRunner]:
    runner = runner_of(tiny_backbone("qwen3"), task=LONG_TASK)
    yield runner
    runner.close()


def planned(runner: TorchRunner, *, is_on: bool) -> MemoryPlan:
    return runner.open_pack(2).memory_of(*requests_for(runner, is_on=is_on, names=("lora_qv", "mam_adapter")))


def test_a_step_takes_less_memory(runner):
    plain, again = planned(runner, is_on=False), planned(runner, is_on=True)
    assert again.held_bytes == plain.held_bytes
    assert again.step_bytes < 0.8 * plain.step_bytes


@pytest.mark.slow
def test_auto_computes_again_where_a_trial_would_not_fit(runner, monkeypatch):
    from trial_runner import runner as runners

    monkeypatch.setattr(runners, "LARGEST_SHARE", math.inf)  # memory is always planned
    plan = TrainingPlan(steps=STEPS, batch_size=4, evaluate_at_steps=(STEPS,))
    needed = runner.open_pack(1).memory_of(*runner.probes(plan, 1)).of_training.slot_bytes
    for share, is_on in ((2.0, False), (0.95, True)):
        monkeypatch.setattr(runners, "available_bytes", lambda _, share=share: share * needed / runners.USABLE)
        runner.open_pack(2, fitting=plan)
        assert runner.frozen.recomputation.is_on == is_on


@pytest.mark.slow
def test_a_trial_that_runs_out_of_memory_alone_is_tried_again_with_less(runner, monkeypatch):
    (request,) = requests_for(runner, is_on=False, names=("lora_qv",))
    requests = {
        kind: dataclasses.replace(request, plan=dataclasses.replace(request.plan, checkpointing=kind))
        for kind in (False, "auto")
    }
    recomputation = runner.frozen.recomputation
    losses = runner.objective.losses

    def scarce(*given: Any) -> torch.Tensor:
        if torch.is_grad_enabled() and not recomputation.is_on:
            raise torch.OutOfMemoryError("tried to allocate more than there is")
        return losses(*given)

    monkeypatch.setattr(runner.objective, "losses", scarce)
    pack = runner.open_pack(1)
    pack.admit(requests[False])
    (failure,) = pack.advance(1)
    assert "has no memory" in failure.reason
    pack.admit(requests["auto"])
    assert pack.advance(STEPS)[-1].step == STEPS
