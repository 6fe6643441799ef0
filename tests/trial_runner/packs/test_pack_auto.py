"""How many trials fit: what a step keeps is counted, and a pack is as large as memory allows."""

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from support.allocator import peak_of
from support.packing_cases import LONG_TASK, request_for, runner_of, sized

from search_space.published import published_method
from trial_runner import runner as runners
from trial_runner.attachment.frozen_model import CACHED_BYTES
from trial_runner.packs.graphs import Recorder
from trial_runner.packs.memory import LongestExamples, MemoryPlan, fit
from trial_runner.packs.pack import TrialPack
from trial_runner.requests import TrainingPlan, TrialRequest
from trial_runner.runner import TorchRunner

PLAN = TrainingPlan(steps=4, batch_size=4, evaluate_at_steps=(4,))


def request_of(runner: TorchRunner, batch_size: int = 4) -> TrialRequest:
    structure = published_method("lora_qv").structure(runner.backbone.shape)
    request = request_for(sized(structure, 0), 0, steps=4)
    return dataclasses.replace(request, plan=dataclasses.replace(PLAN, batch_size=batch_size))


MIXES = {
    "alone": ("lora_qv",),
    "alike": ("lora_qv", "lora_qv"),
    "mixed": ("mam_adapter", "lora_qv", "ia3"),
    "prompts": ("prompt_tuning", "prefix_tuning"),
    "whole": ("diff_pruning",),
}


@pytest.mark.slow
@pytest.mark.parametrize("names", MIXES.values(), ids=MIXES)
@pytest.mark.parametrize("dropout", [pytest.param(0.0, marks=pytest.mark.slow), 0.1])
def test_the_planned_peak_is_the_allocator_s_and_never_below_it(
    dropout: float, names: tuple[str, ...], tiny_backbone: Callable[..., Path]
) -> None:
    runner = runner_of(tiny_backbone("roberta", dropout), precision="fp32", task=LONG_TASK)
    assert_planned(runner, [published(runner, name, trial) for trial, name in enumerate(names)])
    runner.close()


@pytest.mark.slow
@pytest.mark.parametrize("family", [pytest.param("bart", marks=pytest.mark.slow), "llama"])
def test_the_planned_peak_of_trials_that_write_is_the_allocator_s(
    family: str, new_text_runner: Callable[..., TorchRunner]
) -> None:
    runner = new_text_runner(family, dropout=0.1, precision="fp32")
    assert_planned(runner, [published(runner, name, trial) for trial, name in enumerate(("lora_qv", "mam_adapter"))])


def published(runner: TorchRunner, name: str, trial: int) -> TrialRequest:
    request = request_for(published_method(name).configuration(runner.backbone.shape), trial, steps=4)
    return dataclasses.replace(request, plan=dataclasses.replace(PLAN, batch_size=24))


def assert_planned(runner: TorchRunner, requests: list[TrialRequest]) -> None:
    """Compare the plan with steps on the longest examples and a measurement, after which no other memory is kept."""
    pack = runner.open_pack(len(requests))
    plan = pack.memory_of(*requests)
    for weight in runner.backbone.model.parameters():
        assert weight.untyped_storage().data_ptr() != 0, "the backbone is there again"
    longest = LongestExamples(runner.objective.lengths("train"), requests[0].plan.batch_size)

    def work() -> None:
        for request in requests:
            pack.admit(request)
            pack.trial(request.trial).order = longest
        pack.advance(4)

    peak = peak_of(work)
    assert peak <= plan.peak_bytes <= 1.15 * peak, (peak / plan.peak_bytes, plan)


def test_recorded_steps_have_memory_of_their_own_and_copies_of_all(runner: TorchRunner) -> None:
    requests = [request_of(runner)]
    plain = runner.open_pack(1).memory_of(*requests)
    recorded = TrialPack(runner.frozen, runner.objective, slots=1, recorder=Watcherless()).memory_of(*requests)
    assert recorded.is_recorded
    assert recorded.held_bytes > plain.held_bytes
    assert recorded.slot_bytes > plain.slot_bytes + 0.9 * plain.step_bytes


class Watcherless(Recorder):
    """Records nothing."""

    def record(self, function: Callable[[], Any]) -> Any:
        raise RuntimeError


def test_a_step_in_parts_is_planned_as_two_of_them(runner: TorchRunner) -> None:
    def step_bytes(batch_size: int) -> int:
        request = request_of(runner, batch_size)
        request = dataclasses.replace(request, plan=dataclasses.replace(request.plan, micro_batch=4))
        return runner.open_pack(1).memory_of(request).step_bytes

    # gradients of the first part are there while the second is computed; a third adds nothing
    assert step_bytes(4) < step_bytes(8) == step_bytes(16)


def test_activations_grow_with_the_batch_and_the_rest_does_not(runner: TorchRunner) -> None:
    pack = runner.open_pack(1)
    small, large = pack.memory_of(request_of(runner, 4)), pack.memory_of(request_of(runner, 8))
    assert large.step_bytes == pytest.approx(2 * small.step_bytes, rel=0.1)
    # but for which tokens of the last batch are real, a byte each
    longest = int(runner.objective.lengths("train").max())
    assert large.held_bytes - small.held_bytes == (8 - 4) * longest
    pack.admit(request_of(runner))
    (slot,) = pack.taken
    assert small.held_bytes >= 4 * 8 * sum(parameter.numel() for parameter in slot.parameters)


def test_cpu_evaluation_batches_fit_its_cache(runner: TorchRunner) -> None:
    frozen = runner.frozen
    of_one = frozen.widest_bytes(1, 100)
    assert of_one == 100 * frozen.shape.ffn_width * 8
    for slots, tokens in ((1, 1_000), (4, 700), (3, 900)):
        rows = frozen.evaluated_together(slots, tokens)
        assert 8 < rows < 128
        assert (
            frozen.widest_bytes(slots * rows, tokens) <= CACHED_BYTES < frozen.widest_bytes(slots * (rows + 1), tokens)
        )
    assert frozen.evaluated_together(1, 1) == 128
    assert frozen.evaluated_together(16, 1) == 64
    assert frozen.evaluated_together(64, 10_000) == 8
    rounded = dataclasses.replace(frozen.device, autocast=lambda: torch.autocast("cpu", dtype=torch.bfloat16))
    assert dataclasses.replace(frozen, device=rounded).widest_bytes(1, 100) == of_one // 4, "products are in bf16"
    on_meta = dataclasses.replace(frozen, device=dataclasses.replace(frozen.device, device=torch.device("meta")))
    assert on_meta.evaluated_together(4, 700) == 128


def test_cpu_stacks_large_slots_of_similar_width(runner: TorchRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    shape, lora = runner.backbone.shape, published_method("lora_qv")
    widths = (8, 9, 2, 11)  # the head and other methods aside, parameters are in proportion
    requests = [
        request_for(lora.configuration(shape, {"r": width}), trial, steps=2) for trial, width in enumerate(widths)
    ]
    requests.append(request_for(published_method("ia3").configuration(shape), len(widths), steps=2))
    together = {}
    for bound in (0, 1 << 40):
        monkeypatch.setattr("trial_runner.packs.lane.WIDE_BYTES", bound)
        assert runner.shares_passes(requests[0].plan) is (bound > 0)
        pack = runner.open_pack(len(requests))
        for request in requests:
            pack.admit(request)
        pack.advance(1)
        together[bound] = sorted(sorted(slot.request.trial for slot in lane.slots) for lane in pack.lanes)
    assert together == {0: [[0, 1, 3], [2], [4]], 1 << 40: [[0, 1, 2, 3, 4]]}


def test_as_many_slots_fit_as_free_memory_holds() -> None:
    one = MemoryPlan(held_bytes=30, step_bytes=100, evaluation_bytes=60)
    two = MemoryPlan(held_bytes=60, step_bytes=200, evaluation_bytes=120)
    assert (one.slot_bytes, two.slot_bytes) == (135, 270)
    assert fit(135 * 7 + 100, 99, one, two) == (7, 0)
    assert fit(3, 99, one, two) == (1, 0)
    recorded = dataclasses.replace(one, is_recorded=True)
    assert (recorded.peak_bytes, recorded.slot_bytes) == (135, 240)
    evaluating = dataclasses.replace(one, evaluation_bytes=400)
    assert evaluating.peak_bytes == 30 + 420


@pytest.mark.slow
@pytest.mark.parametrize(("share", "slots"), [(0.5, 1), (2.5, 2), (1e6, 3)])
def test_a_pack_left_to_memory_has_as_many_slots_as_fit(
    runner: TorchRunner, monkeypatch: pytest.MonkeyPatch, share: float, slots: int
) -> None:
    pack = runner.open_pack(2)
    one, two = (pack.memory_of(*runner.probes(PLAN, size)).slot_bytes for size in (1, 2))
    free = share * one if share < 1 else one + (share - 1) * (two - one)
    monkeypatch.setattr(runners, "available_bytes", lambda _: int(free / 0.8) + 1)
    monkeypatch.setattr(runners, "LARGEST_SHARE", 1e6)
    monkeypatch.setattr(runners, "MOST_ON_CPU", 3)
    assert runner.open_pack(3, fitting=PLAN).free_slots == slots
    assert runner.open_pack(3).free_slots == 3


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the numbers of trials for which memory is planned."""
    own, found = TrialPack.memory_of, list[int]()

    def memory_of(pack: TrialPack, *requests: TrialRequest) -> MemoryPlan:
        found.append(len(requests))
        return own(pack, *requests)

    monkeypatch.setattr(TrialPack, "memory_of", memory_of)
    return found


def test_memory_is_planned_once(runner: TorchRunner, monkeypatch: pytest.MonkeyPatch, planned: list[int]) -> None:
    monkeypatch.setattr(runners, "LARGEST_SHARE", 1e15)
    monkeypatch.setattr(runners, "MOST_ON_CPU", 2)
    runner.open_pack(3, fitting=PLAN)
    assert runner.trial_bytes(PLAN) > 0
    assert planned == [1, 2]


def test_evaluations_are_made_small_before_a_pack_takes_fewer_trials() -> None:
    one, two = (MemoryPlan(held_bytes=10 * k, step_bytes=100 * k, evaluation_bytes=1600 * k) for k in (1, 2))
    assert fit(5000, 2, one, two) == (2, 0)
    assert fit(230, 2, one, two) == (2, 4)
    assert fit(150, 2, one, two) == (1, 4)
    endless = dataclasses.replace(two, evaluation_bytes=10**12)
    assert fit(230, 2, one, endless)[1] == 16


@pytest.mark.slow
def test_a_pack_evaluates_as_it_fits(runner: TorchRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runners, "available_bytes", lambda _: 1)
    monkeypatch.setattr(runners, "fit", lambda *_: (1, 2))
    assert runner.open_pack(2, fitting=PLAN).free_slots == 1
    measured = len(runner.objective.lengths("validation"))
    assert runner.frozen.evaluation.examples == min(128, measured) // 4 < 32, "halved twice"


def test_a_cpu_with_memory_beyond_doubt_is_not_planned_for(
    runner: TorchRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runners, "available_bytes", lambda _: 1 << 40)
    monkeypatch.setattr(TrialPack, "memory_of", None)
    assert runner.open_pack(3, fitting=PLAN).free_slots == 1, "so that proposals learn from more trials"


def test_memory_of_one_trial_is_planned_on_a_cpu(
    runner: TorchRunner, monkeypatch: pytest.MonkeyPatch, planned: list[int]
) -> None:
    monkeypatch.setattr(runners, "LARGEST_SHARE", math.inf)  # memory is always planned
    assert runner.open_pack(3, fitting=PLAN).free_slots == 1
    assert planned == [1], "a second one is not planned for"
