"""Packs against single trials, in float64 and by default without dropout."""

import dataclasses
import math
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from support.halves_task import halves_task
from support.packing_cases import runner_of

from search_space.configuration import Configuration
from search_space.parameter_counts.budget import solve
from search_space.published import published_method
from trial_runner.attachment.attention import ATTENTION
from trial_runner.backbones import load_backbone
from trial_runner.errors import AttachError, SnapshotError, TrialRequestError
from trial_runner.packs.pack import TrialPack
from trial_runner.packs.slot import learning_rate_factor
from trial_runner.requests import Reading, TrainingPlan, TrialRequest
from trial_runner.runner import TorchRunner
from trial_runner.tasks.splits import some_rows
from trial_runner.training import Training

STEPS = 20
PLAN = TrainingPlan(steps=STEPS, batch_size=4, evaluate_at_steps=(5, 10, STEPS), weight_decay=0.01)
METHODS = ("mam_adapter", "lora_qv", "sequential_adapter_ffn")


TASK = halves_task()


@pytest.fixture
def runner(request: pytest.FixtureRequest, tiny_backbone: Callable[..., Path]) -> Iterator[TorchRunner]:
    """Yield a runner over a backbone with the test's dropout, by default none."""
    runner = runner_of(tiny_backbone("roberta", getattr(request, "param", 0.0)), task=TASK)
    yield runner
    runner.close()


def configuration(runner: TorchRunner, method: str) -> Configuration:
    shape = runner.backbone.shape
    published = published_method(method)
    structure = published.configuration(shape)
    return solve(structure, shape, attention_share=published.attention_share, parameters=1000)


def request(runner: TorchRunner, trial: int, **changes: object) -> TrialRequest:
    method = METHODS[trial % len(METHODS)]
    fields: dict[str, object] = {
        "trial": trial,
        "attempt": 1,
        "configuration": configuration(runner, method),
        "learning_rates": (0.01, 0.02, 0.05),
        "plan": PLAN,
        "seed": trial + 100,
    }
    return TrialRequest(**(fields | changes))  # type: ignore[arg-type]


def opened(runner: TorchRunner, trial_request: TrialRequest, slots: int = 1) -> TrialPack:
    """Return a pack with a trial in it."""
    pack = runner.open_pack(slots)
    pack.admit(trial_request)
    return pack


def losses_of(pack: TrialPack, trials: Sequence[int], steps: int) -> dict[int, list[float]]:
    """Return the training loss of every step, by trial."""
    losses: dict[int, list[float]] = {trial: [] for trial in trials}
    for _ in range(steps):
        before = {trial: pack.trial(trial).loss_sum for trial in trials}
        readings = [result for result in pack.advance(1) if isinstance(result, Reading)]
        for trial in trials:
            mean = next((reading.train_loss for reading in readings if reading.trial == trial), None)
            if mean is None:
                losses[trial].append(pack.trial(trial).loss_sum - before[trial])
            else:
                spacing = {5: 5, 10: 5, STEPS: 10}[pack.trial(trial).step]
                losses[trial].append(mean * spacing - before[trial])
    return losses


def parameters_of(pack: TrialPack, trial: int) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in pack.trial(trial).parameters])


def reference_losses(runner: TorchRunner, trial_request: TrialRequest) -> list[float]:
    """Train the trial with `torch.optim.AdamW`, a `LambdaLR` and plain indexing, sharing only the modules."""
    pack = runner.open_pack(1)
    pack.admit(trial_request)
    slot = pack.trial(trial_request.trial)
    attention, ffn, head = trial_request.learning_rates
    groups = [
        {"params": list(slot.deltas.attention.parameters()), "lr": attention},
        {"params": list(slot.deltas.ffn.parameters()), "lr": ffn},
        {"params": list(slot.head.parameters()), "lr": head},
    ]
    optimizer = torch.optim.AdamW(groups, weight_decay=trial_request.plan.weight_decay)
    warmup = math.ceil(trial_request.plan.warmup_fraction * STEPS)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: (step + 1) / (warmup + 1) if step < warmup else (STEPS - step) / (STEPS - warmup),
    )
    train, losses = TASK.splits["train"], []
    for step in range(STEPS):
        batch = train.batch(slot.order.examples(step), runner.backbone.pad_token_id)
        mask = torch.from_numpy(batch.attention_mask)
        with runner.frozen.attachment.using(slot.deltas):
            hidden = runner.backbone.model(
                input_ids=torch.from_numpy(batch.input_ids), attention_mask=mask
            ).last_hidden_state
        pooled = torch.stack([row[keep].mean(dim=0) for row, keep in zip(hidden, mask, strict=True)])
        loss = torch.nn.functional.cross_entropy(
            pooled @ slot.head.weight.T + slot.head.bias, torch.from_numpy(batch.labels)
        )
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(slot.parameters, trial_request.plan.clip_norm or math.inf)
        optimizer.step()
        schedule.step()
        losses.append(float(loss.detach()))
    return losses


def test_training_equals_an_independent_loop(runner):
    trial_request = request(runner, 0)
    pack = opened(runner, trial_request)
    assert losses_of(pack, [0], STEPS)[0] == pytest.approx(reference_losses(runner, trial_request), rel=1e-9)


@pytest.mark.parametrize("schedule", ["linear", "cosine", "constant"])
def test_schedules_without_warm_up_equal_those_of_transformers(schedule):
    """Test schedules without a warm-up; theirs begins at a rate of 0, a step without learning, and ours does not."""
    from transformers import get_scheduler

    training = Training(steps=12, warmup_fraction=0.0, schedule=schedule)
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    theirs = get_scheduler(schedule, optimizer, num_warmup_steps=0, num_training_steps=12)
    for step in range(12):
        assert learning_rate_factor(step, training) == pytest.approx(theirs.get_last_lr()[0], abs=1e-12)
        optimizer.step()
        theirs.step()


@pytest.mark.parametrize(("schedule", "last"), [("cosine", (1 - math.cos(math.pi / 8)) / 2), ("constant", 1.0)])
def test_other_schedules_have_the_same_warm_up(schedule, last):
    training = Training(steps=10, warmup_fraction=0.2, schedule=schedule)
    factors = [learning_rate_factor(step, training) for step in range(10)]
    assert factors[:3] == pytest.approx([1 / 3, 2 / 3, 1])
    assert factors[-1] == pytest.approx(last)
    assert factors[2:] == sorted(factors[2:], reverse=True)


def test_the_schedule_of_a_plan_is_the_one_its_slots_follow(runner):
    changed: dict[str, list[float]] = {}
    for schedule in ("linear", "constant"):
        trial_request = request(runner, 0)
        plan = dataclasses.replace(trial_request.plan, schedule=schedule)
        pack = opened(runner, dataclasses.replace(trial_request, plan=plan))
        (reading,) = [one for one in pack.advance(STEPS) if isinstance(one, Reading)][-1:]
        changed[schedule] = [reading.train_loss, reading.metrics["validation_loss"]]
    assert changed["linear"] != changed["constant"]


def test_readings_fall_at_the_steps_of_the_plan(runner):
    pack = opened(runner, request(runner, 0), slots=2)
    results = [result for _ in range(8) for result in pack.advance(3)]
    assert [result.step for result in results] == [5, 10, STEPS]
    assert pack.trial(0).step == STEPS
    assert pack.advance(4) == []
    assert pack.free_slots == 1
    for reading in results:
        assert isinstance(reading, Reading)
        assert reading.score == reading.metrics["accuracy"]
        assert {"accuracy", "f1", "matthews", "validation_loss", "same_prediction"} == set(reading.metrics)


def test_reading_equals_a_plain_pass_over_the_validation_split(runner):
    pack = opened(runner, request(runner, 0))
    (reading,) = [result for result in pack.advance(5) if isinstance(result, Reading)]
    slot, split = pack.trial(0), TASK.splits["validation"]
    hits, total = 0, 0.0
    for row in range(len(split)):
        batch = split.batch([row], runner.backbone.pad_token_id)
        with torch.no_grad(), runner.frozen.attachment.using(slot.deltas):
            hidden = runner.backbone.model(input_ids=torch.from_numpy(batch.input_ids)).last_hidden_state
        logits = hidden.mean(dim=1) @ slot.head.weight.T + slot.head.bias
        hits += int(logits.argmax()) == int(batch.labels[0])
        total += float(torch.nn.functional.cross_entropy(logits, torch.from_numpy(batch.labels)).detach())
    assert reading.score == pytest.approx(hits / len(split))
    assert reading.metrics["validation_loss"] == pytest.approx(total / len(split), rel=1e-6)


def test_rungs_use_the_same_examples_and_the_end_uses_all(runner):
    few, split = 10, TASK.splits["validation"]
    pack, whole = runner.open_pack(2), runner.open_pack(2)
    for number in range(2):
        pack.admit(request(runner, number, plan=dataclasses.replace(PLAN, rung_examples=few)))
        whole.admit(request(runner, number))
    chosen = some_rows(len(split), few)
    assert len(set(chosen)) == few < len(split)
    for one, other in zip(pack.advance(STEPS), whole.advance(STEPS), strict=True):
        assert isinstance(one, Reading)
        assert isinstance(other, Reading)
        assert one.examples is not None
        assert other.examples is not None
        if one.step == STEPS:
            assert one.metrics == other.metrics
            assert one.examples == other.examples
            continue
        np.testing.assert_allclose(one.examples.scores, other.examples.scores[chosen], rtol=0, atol=0)
        losses, those = one.examples.negated_losses, other.examples.negated_losses[chosen]
        np.testing.assert_allclose(losses, those, rtol=2**-10)  # half floats, rounded either way
        assert one.score == pytest.approx(one.examples.scores.mean(), rel=1e-12)


def test_fewer_measured_examples_are_among_more_of_them():
    assert set(some_rows(100, 10)) < set(some_rows(100, 40)) < set(range(100))
    np.testing.assert_array_equal(some_rows(100, 100), np.arange(100))
    # a data set sorted by its labels is measured on all of them
    assert 5 <= sum(some_rows(1000, 20) < 500) <= 15


def test_chosen_examples_are_those_of_the_split():
    split = dataclasses.replace(TASK.splits["validation"], groups=tuple("ab" * (len(TASK.splits["validation"]) // 2)))
    rows = np.array([7, 0, 3])
    taken, batch = split.take(rows).batch([0, 1, 2], 1), split.batch(rows, 1)
    for name in ("input_ids", "attention_mask", "labels"):
        np.testing.assert_array_equal(getattr(taken, name), getattr(batch, name))
    assert split.take(rows).groups == ("b", "a", "b")
    assert split.some(None) is split.some(len(split)) is split


@pytest.mark.parametrize("runner", [0.0, 0.1], indirect=True)
def test_a_restored_trial_goes_on_as_if_it_had_not_stopped(tmp_path, runner):
    straight, first = (opened(runner, request(runner, 0)) for _ in range(2))
    straight.advance(STEPS)
    first.advance(7)
    path = runner.save(first.snapshot(0), tmp_path)
    second = runner.open_pack(3)
    second.admit(request(runner, 1))
    second.restore(request(runner, 0, attempt=2), runner.load(path))
    assert second.trial(0).step == 7
    second.advance(STEPS - 7)
    torch.testing.assert_close(parameters_of(second, 0), parameters_of(straight, 0), rtol=1e-9, atol=1e-12)


def test_a_snapshot_of_another_trial_or_backbone_is_refused(runner):
    snapshot = opened(runner, request(runner, 0)).snapshot(0)
    pack = runner.open_pack(1)
    for change in ({"seed": 5}, {"configuration": configuration(runner, "lora_qv")}):
        with pytest.raises(SnapshotError, match=r"must have its own (seed|configuration)"):
            pack.restore(request(runner, 0, **change), snapshot)
    other = dataclasses.replace(snapshot, facts={**snapshot.facts, "backbone_sha256": "0"})
    with pytest.raises(SnapshotError, match="must have its own backbone_sha256"):
        pack.restore(request(runner, 0), other)
    tensors = dict(snapshot.tensors)
    del tensors["head.weight"]
    with pytest.raises(SnapshotError, match="must be whole"):
        pack.restore(request(runner, 0), dataclasses.replace(snapshot, tensors=tensors))
    assert pack.free_slots == 1


def test_a_damaged_snapshot_is_refused(runner, tmp_path):
    pack = opened(runner, request(runner, 0))
    path = runner.save(pack.snapshot(0), tmp_path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(SnapshotError, match="whole safetensors file"):
        runner.load(path)
    with pytest.raises(SnapshotError, match="whole safetensors file"):
        runner.load(tmp_path / "missing.safetensors")
    assert [file.name for file in tmp_path.iterdir()] == [path.name], "no temporary file may stay"


def test_a_snapshot_that_a_disk_does_not_hold_as_it_was_written_is_none(runner, tmp_path, monkeypatch):
    pack = opened(runner, request(runner, 0))
    monkeypatch.setattr("os.fsync", lambda handle: os.ftruncate(handle, 100))
    with pytest.raises(OSError, match="does not hold what was written"):
        runner.save(pack.snapshot(0), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_configuration_that_the_backbone_cannot_hold_is_refused_alone(runner):
    pack = runner.open_pack(2)
    wide = published_method("lora_qv").configuration(runner.backbone.shape, {"r": 17})
    with pytest.raises(AttachError, match=r"trial 4 cannot be built: .*\[V15\]"):
        pack.admit(request(runner, 4, configuration=wide))
    assert pack.free_slots == 2


def test_a_pack_holds_a_trial_once_and_knows_no_other(runner):
    pack = opened(runner, request(runner, 3), slots=2)
    with pytest.raises(TrialRequestError, match="must hold a trial once; it has trial 3"):
        pack.admit(request(runner, 3, attempt=2))
    for call in (pack.evict, pack.snapshot):
        with pytest.raises(TrialRequestError, match=r"trial 4 must be in the pack; it holds \[3\]"):
            call(4)
    assert pack.free_slots == 1


def test_pack_has_the_number_of_steps_to_the_next_reading(runner):
    pack = runner.open_pack(2)
    assert pack.steps_to_reading == 0
    for trial, at in enumerate(((6, 8), (4,))):
        pack.admit(request(runner, trial, plan=dataclasses.replace(PLAN, steps=at[-1], evaluate_at_steps=at)))
    found = [(pack.steps_to_reading, len(pack.advance(1))) for _ in range(8)]
    assert found == [(4, 0), (3, 0), (2, 0), (1, 1), (2, 0), (1, 1), (2, 0), (1, 1)]
    assert pack.steps_to_reading == 0


def test_training_learns_and_leaves_the_backbone_as_it_was(runner):
    weights = {name: tensor.clone() for name, tensor in runner.backbone.model.state_dict().items()}
    plan = TrainingPlan(steps=60, batch_size=8, evaluate_at_steps=(1, 60))
    pack = opened(runner, request(runner, 0, plan=plan))
    first, last = (result for result in pack.advance(60) if isinstance(result, Reading))
    assert last.train_loss < 0.8 * first.train_loss
    for name, tensor in runner.backbone.model.state_dict().items():
        assert torch.equal(tensor, weights[name])
    assert not any(parameter.grad is not None for parameter in runner.backbone.model.parameters())


def test_bf16_products_equal_autocast_over_float32_weights(tiny_backbone):
    """Test that linear layers are stored once as autocast would round them at every step."""
    folder = tiny_backbone("roberta")
    runner = runner_of(folder, precision="bf16", task=TASK)
    plain = load_backbone(str(folder), precision="float32", attn_implementation=ATTENTION)
    batch = TASK.splits["train"].batch(range(6), 1)
    inputs = {"input_ids": torch.from_numpy(batch.input_ids), "attention_mask": torch.from_numpy(batch.attention_mask)}
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        rounded, autocast = (model(**inputs).last_hidden_state for model in (runner.backbone.model, plain.model))
    runner.close()
    assert torch.equal(rounded, autocast)
