"""How many trials fit: what a step keeps is counted, and a pack is as large as memory allows."""

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from support.packing_cases import request_for, runner_of, sized

from search_space.published import published_method
from trial_runner import runner as runners
from trial_runner.attachment.frozen_model import CACHED_BYTES
from trial_runner.packs.memory import MemoryModel, saved_bytes
from trial_runner.requests import TrainingPlan, TrialRequest
from trial_runner.runner import TorchRunner

PLAN = TrainingPlan(steps=4, batch_size=4, evaluate_at_steps=(4,))


@pytest.fixture
def runner(tiny_backbone: Callable[..., Path]) -> Iterator[TorchRunner]:
    runner = runner_of(tiny_backbone("roberta"))
    yield runner
    runner.close()


def asked(runner: TorchRunner, batch_size: int = 4) -> TrialRequest:
    structure = published_method("lora_qv").structure(runner.backbone.shape)
    request = request_for(sized(structure, 0), 0, steps=4)
    return dataclasses.replace(request, plan=dataclasses.replace(PLAN, batch_size=batch_size))


def test_what_a_step_keeps_is_counted_once_whoever_keeps_it() -> None:
    weight = torch.ones(8, 8, requires_grad=True)
    x = torch.ones(4, 8, requires_grad=True)
    with saved_bytes([weight]) as saved:
        hidden = x @ weight  # keeps x, and the weight that is there anyway
        _ = hidden * hidden.exp()  # keeps both factors; exp keeps its result
    assert sorted(saved.values()) == [4 * 8 * 4] * 3


def test_activations_grow_with_the_batch_and_the_rest_does_not(runner: TorchRunner) -> None:
    pack = runner.open_pack(1)
    small, large = pack.memory_of(asked(runner, 4)), pack.memory_of(asked(runner, 8))
    assert large.activation_bytes == pytest.approx(2 * small.activation_bytes, rel=0.02)
    assert large.state_bytes == small.state_bytes
    slot = pack.trial(pack.admit(asked(runner)))
    assert small.state_bytes == 4 * 8 * sum(parameter.numel() for parameter in slot.parameters)


def test_what_a_cpu_evaluates_together_stays_in_its_cache(runner: TorchRunner) -> None:
    frozen = runner._frozen
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
    elsewhere = dataclasses.replace(frozen, device=dataclasses.replace(frozen.device, device=torch.device("meta")))
    assert elsewhere.evaluated_together(4, 700) == 128


def test_a_cpu_computes_large_slots_together_where_they_are_alike_and_about_as_wide(
    runner: TorchRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape, lora = runner.backbone.shape, published_method("lora_qv")
    widths = (8, 9, 2, 11)  # the head and other methods aside, parameters are in proportion
    requests = [
        request_for(lora.configuration(shape, {"r": width}), trial, steps=2) for trial, width in enumerate(widths)
    ]
    requests.append(request_for(published_method("ia3").configuration(shape), len(widths), steps=2))
    together = {}
    for bound in (0, 1 << 40):
        monkeypatch.setattr("trial_runner.packs.pack._WIDE_BYTES", bound)
        pack = runner.open_pack(len(requests))
        for request in requests:
            pack.admit(request)
        pack.advance(1)
        together[bound] = sorted(sorted(lane.slots) for lane in pack._lanes)
    assert together == {0: [[0, 1, 3], [2], [4]], 1 << 40: [[0, 1, 2, 3, 4]]}


def test_as_many_slots_fit_as_free_memory_holds() -> None:
    model = MemoryModel(state_bytes=30, activation_bytes=100)
    assert model.slot_bytes == 160
    assert model.slots_within(160 * 7 + 100) == 7
    assert model.slots_within(3) == 1


@pytest.mark.parametrize(("times", "slots"), [(0.5, 1), (2.5, 2), (100, 3)])
def test_a_pack_left_to_memory_has_as_many_slots_as_fit(
    runner: TorchRunner, monkeypatch: pytest.MonkeyPatch, times: float, slots: int
) -> None:
    each = runner.open_pack(1).memory_of(runner._probe(PLAN))
    needed = each.slot_bytes
    monkeypatch.setattr(runners, "available_bytes", lambda _: int(needed * times / 0.8) + 1)
    assert runner.open_pack(3, fitting=PLAN).free_slots == slots
    assert runner.open_pack(3).free_slots == 3
