"""Steps that are computed in parts: the same numbers as in one, dropout included, in less memory."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from support import text_cases
from support.packing_cases import LONG_TASK, request_for, runner_of, sized
from support.packing_traces import train, worst
from support.tiny_backbones import has_short_windows

from search_space.published import published_method
from trial_runner.attachment.frozen_model import MicroBatch
from trial_runner.requests import TrainingPlan, TrialRequest
from trial_runner.runner import TorchRunner

EXACT = 1e-9
"""Parts are summed in another order, and a tensor whose gradients are a ten-thousandth of the largest ones, as those of
LoRA's A after a step, keeps four digits less of float64, twice that in their squares. What is wrong is above 1e-4.
"""
STEPS = 4
METHODS = ("mam_adapter", "lora_qv", "houlsby_adapter", "prompt_tuning", "diff_pruning")

NewRunner = Callable[..., TorchRunner]


def of_size(requests: list[TrialRequest], size: Any, **options: Any) -> list[TrialRequest]:
    return [replace(one, plan=replace(one.plan, micro_batch=size, **options)) for one in requests]


def requests_for(runner: TorchRunner, names: tuple[str, ...] = METHODS) -> list[TrialRequest]:
    shape = runner.backbone.shape
    methods = [published_method(name) for name in names if name != "prompt_tuning" or not has_short_windows(runner)]
    structures = [sized(one.structure(shape), 0) for one in methods if one.invalid_reason(shape) is None]
    return [request_for(one, trial, steps=STEPS) for trial, one in enumerate(structures)]


def parts_of(
    runner: TorchRunner, requests: list[TrialRequest], monkeypatch: pytest.MonkeyPatch
) -> tuple[Any, set[int]]:
    """Return the traces of trials, and the numbers of rows of the passes that trained them."""
    losses, rows = runner.objective.losses, set()

    def watched(together: Any, batch: Any) -> Any:
        if torch.is_grad_enabled():
            rows.add(len(batch.tensors["input_ids"]) // together.slots)
        return losses(together, batch)

    with monkeypatch.context() as patch:
        patch.setattr(runner.objective, "losses", watched)
        return train(runner.open_pack(len(requests)), requests), rows


@pytest.mark.parametrize("family", ["roberta", "qwen3", pytest.param("bart", marks=pytest.mark.slow)])
def test_a_step_in_parts_is_the_step(tiny_backbone, monkeypatch, family):
    runner = runner_of(tiny_backbone(family, dropout=0.1))
    requests = of_size(requests_for(runner), 4, lora_dropout=0.2)
    whole, rows = parts_of(runner, requests, monkeypatch)
    assert rows == {4}
    for size, sizes in ((1, {1}), (3, {3, 1})):
        split, rows = parts_of(runner, of_size(requests, size), monkeypatch)
        assert rows == sizes
        found = worst(split, whole, requests)
        assert found.share <= EXACT, found
    again, _ = parts_of(runner, of_size(requests, 2, checkpointing=True), monkeypatch)
    assert worst(again, whole, requests).share <= EXACT
    runner.close()


@pytest.mark.parametrize("family", ["gpt2", pytest.param("t5_gated", marks=pytest.mark.slow)])
def test_the_mean_is_over_the_labelled_tokens_of_all_parts(new_text_runner, monkeypatch, family):
    runner = new_text_runner(family, dropout=0.1, label_smoothing=0.1)
    requests = text_cases.requests(runner, ("mam_adapter", "lora_qv", "houlsby_adapter"))
    whole, _ = parts_of(runner, of_size(requests, 1000), monkeypatch)
    split, rows = parts_of(runner, of_size(requests, 1), monkeypatch)
    assert rows == {1}
    assert worst(split, whole, requests).share <= EXACT
    losses = runner.objective.losses

    def mean_of_means(together: Any, batch: Any) -> Any:
        return losses(together, replace(batch, totals=None)) / 4

    monkeypatch.setattr(runner.objective, "losses", mean_of_means)
    wrong, _ = parts_of(runner, of_size(requests, 1), monkeypatch)
    assert worst(wrong, whole, requests).share > 1e-4, "targets are not equally long"


def test_masks_of_an_example_do_not_depend_on_where_its_part_begins(tiny_backbone, monkeypatch):
    from trial_runner.packs import lane

    runner = runner_of(tiny_backbone("roberta", dropout=0.1))
    requests = requests_for(runner, ("lora_qv",))
    whole, _ = parts_of(runner, of_size(requests, 4), monkeypatch)
    drops = lane.SlotDropout
    monkeypatch.setattr(lane, "SlotDropout", lambda *given, examples_before, **others: drops(*given, **others))
    wrong, _ = parts_of(runner, of_size(requests, 1), monkeypatch)
    assert worst(wrong, whole, requests).share > 1e-4, "every part would drop what the first one does"
    runner.close()


def test_parts_are_halved_down_to_one_example():
    micro = MicroBatch()
    assert list(micro.starts(5)) == [0]
    found = []
    while micro.halve(5):
        found.append(micro.examples)
    assert found == [3, 2, 1]
    assert list(micro.starts(5)) == [0, 1, 2, 3, 4]


@pytest.fixture
def long_runner(tiny_backbone: Callable[..., Path]) -> TorchRunner:
    return runner_of(tiny_backbone("qwen3"), task=LONG_TASK)


@pytest.mark.slow
def test_auto_splits_a_step_where_a_trial_would_not_fit_checkpointed(long_runner, monkeypatch):
    from trial_runner import runner as runners

    monkeypatch.setattr(runners, "LARGEST_SHARE", math.inf)  # memory is always planned
    plan = TrainingPlan(steps=STEPS, batch_size=4, evaluate_at_steps=(STEPS,))
    checkpointed = replace(plan, checkpointing=True)
    needed = long_runner.open_pack(1).memory_of(*long_runner.probes(checkpointed, 1)).of_training.slot_bytes
    for share, size in ((1.02, None), (0.9, 2)):
        monkeypatch.setattr(runners, "available_bytes", lambda _, share=share: share * needed / runners.USABLE)
        long_runner.open_pack(2, fitting=plan)
        assert long_runner.frozen.recomputation.is_on
        assert long_runner.frozen.micro_batch.examples == size
    long_runner.close()


@pytest.mark.slow
def test_a_trial_that_runs_out_of_memory_alone_is_computed_in_parts(long_runner, monkeypatch):
    (request,) = requests_for(long_runner, ("lora_qv",))
    losses = long_runner.objective.losses

    def scarce(together: Any, batch: Any) -> Any:
        if torch.is_grad_enabled() and len(batch.tensors["input_ids"]) > 1:
            raise torch.OutOfMemoryError("tried to allocate more than there is")
        return losses(together, batch)

    monkeypatch.setattr(long_runner.objective, "losses", scarce)
    pack = long_runner.open_pack(1)
    pack.admit(replace(request, plan=replace(request.plan, micro_batch="auto")))
    assert pack.advance(STEPS)[-1].step == STEPS
    assert long_runner.frozen.micro_batch.examples == 1
    long_runner.close()
