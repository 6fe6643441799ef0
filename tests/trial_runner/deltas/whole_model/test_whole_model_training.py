"""Trials that change the whole model, in float64: alone, in packs, stopped and continued, with dropout."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from support.edits import edit
from support.halves_task import halves_task
from support.packing_cases import runner_of

from search_space.configuration import Configuration
from search_space.dimensions import Port
from search_space.forms import EncodedPrompt, Form, Full, Intrinsic, Prompt, PromptEncoder, Sparse
from search_space.gates import Prepend
from trial_runner.deltas.whole_model.sparse import SparseDelta
from trial_runner.packs.pack import TrialPack
from trial_runner.packs.slot import learning_rate_factor
from trial_runner.requests import Reading, TrainingPlan, TrialRequest
from trial_runner.runner import TorchRunner
from trial_runner.seeds import derived_seed
from trial_runner.training import Training

STEPS = 7
HALF = 4
PLAN = TrainingPlan(steps=STEPS, batch_size=4, evaluate_at_steps=(2, STEPS), weight_decay=0.01)
RATES = (0.0, 1e-4, 0.05)
KEPT = 40
SPARSE = Sparse(width=KEPT)
FORMS: tuple[Form, ...] = (Full(), SPARSE, Intrinsic(width=80), Intrinsic(width=300, per_tensor=True))
PROMPTS = tuple(EncodedPrompt(width=3, encoder=encoder, hidden=5) for encoder in PromptEncoder)


TASK = halves_task()


@pytest.fixture
def runner(request: pytest.FixtureRequest, tiny_backbone: Callable[..., Path]) -> Iterator[TorchRunner]:
    """Yield a runner over a backbone with the test's dropout, by default none."""
    runner = runner_of(tiny_backbone("roberta", getattr(request, "param", 0.0)), task=TASK)
    yield runner
    runner.close()


def request_of(form: Form, trial: int = 0, plan: TrainingPlan = PLAN) -> TrialRequest:
    is_prompt = isinstance(form, Prompt | EncodedPrompt)
    of = edit(Port.EMBEDDING, None, form, Prepend()) if is_prompt else edit(Port.WEIGHTS, None, form)
    configuration = Configuration(edits=(of,))
    return TrialRequest(
        trial=trial, attempt=1, configuration=configuration, learning_rates=RATES, plan=plan, seed=trial + 100
    )


def trained(runner: TorchRunner, form: Form, steps: int = STEPS) -> TrialPack:
    pack = runner.open_pack(1)
    pack.admit(request_of(form))
    pack.advance(steps)
    return pack


def state_of(pack: TrialPack, trial: int = 0) -> dict[str, torch.Tensor]:
    return pack.trial(trial).tensors()


def assert_equal(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert sorted(one) == sorted(other)
    for name, tensor in one.items():
        assert torch.equal(tensor, other[name]), name


def sparse_of(pack: TrialPack, trial: int = 0) -> SparseDelta:
    whole = pack.trial(trial).deltas.whole
    assert isinstance(whole, SparseDelta)
    return whole


@pytest.mark.parametrize(("form", "runner"), [*((form, 0.0) for form in FORMS), (SPARSE, 0.1)], indirect=["runner"])
def test_a_trial_in_a_pack_equals_the_trial_alone_and_leaves_the_backbone(form, runner):
    before = {name: tensor.clone() for name, tensor in runner.backbone.model.state_dict().items()}
    pack = runner.open_pack(3)
    pack.admit(request_of(SPARSE, trial=1))
    pack.admit(request_of(form))
    pack.admit(request_of(Full(), trial=2))
    for _ in range(STEPS):
        pack.advance(1)
    assert_equal(state_of(pack), state_of(trained(runner, form)))
    assert_equal(runner.backbone.model.state_dict(), before)


@pytest.mark.parametrize(
    ("form", "stop", "runner"),
    [*((form, 3, 0.0) for form in (*FORMS, *PROMPTS)), (SPARSE, HALF, 0.1), (SPARSE, HALF + 1, 0.1)],
    indirect=["runner"],
)
def test_a_stopped_trial_goes_on_as_if_it_had_not_stopped(form, stop, tmp_path, runner):
    straight = trained(runner, form)
    first = trained(runner, form, stop)
    path = runner.save(first.snapshot(0), tmp_path)
    second = runner.open_pack(1)
    second.restore(request_of(form), runner.load(path))
    assert_equal(state_of(second), state_of(first))
    second.advance(STEPS - stop)
    assert_equal(state_of(second), state_of(straight))


def test_a_trial_of_diff_pruning_ends_with_as_many_changes_as_it_may_keep(runner):
    pack = trained(runner, SPARSE, 0)
    frozen = dict(runner.backbone.model.named_parameters())
    total = sum(tensor.numel() for tensor in frozen.values())
    for step in range(1, STEPS + 1):
        pack.advance(1)
        sparse = sparse_of(pack)
        changed = sum(int((tensor != frozen[name]).sum()) for name, tensor in sparse.weights().items())
        kept = len(sparse.kept()[0])
        assert kept == (total if step < HALF else KEPT)
        assert changed > KEPT if step < HALF else changed == KEPT
        gate_moments = [gate in pack.trial(0).optimizer.state for gate in sparse.gates]
        assert gate_moments == ([True, True] if step < HALF else [False, False])


def test_the_stored_changes_are_those_of_the_last_reading(runner):
    """Put into the frozen weights by hand, they give the same validation loss."""
    pack = trained(runner, SPARSE, 0)
    results = [result for result in pack.advance(STEPS) if isinstance(result, Reading)]
    slot, split = pack.trial(0), TASK.splits["validation"]
    places, values = sparse_of(pack).kept()
    backbone = runner.backbone
    flat = torch.cat([parameter.flatten() for parameter in backbone.model.parameters()])
    flat[places] += values
    model = type(backbone.model)(backbone.model.config, add_pooling_layer=False).double().eval()  # type: ignore[call-arg]
    torch.nn.utils.vector_to_parameters(flat, model.parameters())
    total = 0.0
    for row in range(len(split)):
        batch = split.batch([row], backbone.pad_token_id)
        with torch.no_grad():
            hidden = model(input_ids=torch.from_numpy(batch.input_ids)).last_hidden_state
            logits = hidden.mean(dim=1) @ slot.head.weight.T + slot.head.bias
            total += float(torch.nn.functional.cross_entropy(logits, torch.from_numpy(batch.labels)))
    # the metric is computed in float32
    assert results[-1].metrics["validation_loss"] == pytest.approx(total / len(split), rel=1e-6)


def reference(runner: TorchRunner, steps: int) -> tuple[list[float], dict[str, torch.Tensor]]:
    """Repeat the first stage in a plain loop: own optimisers, own schedules, the gates by their formula."""
    pack = runner.open_pack(1)
    pack.admit(request_of(SPARSE))
    slot = pack.trial(0)
    model, frozen = runner.backbone.model, dict(runner.backbone.model.named_parameters())
    sizes = [tensor.numel() for tensor in frozen.values()]
    owner = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    change = torch.zeros(sum(sizes), dtype=torch.float64, requires_grad=True)
    alpha = torch.full((sum(sizes),), 5.0, dtype=torch.float64, requires_grad=True)
    tensor_alpha = torch.full((len(sizes),), 5.0, dtype=torch.float64, requires_grad=True)
    head = [parameter.detach().clone().requires_grad_() for parameter in slot.head.parameters()]
    plain = torch.optim.AdamW(
        [{"params": [change], "peak": 1e-4}, {"params": head, "peak": 0.05}], lr=0.0, weight_decay=0.01
    )
    gates = torch.optim.AdamW([{"params": [alpha, tensor_alpha], "peak": 1.0}], lr=0.0, weight_decay=0.0)
    losses = []
    for step in range(steps):
        generator = torch.Generator().manual_seed(derived_seed(100, "gates", step))
        noise = torch.rand(sum(sizes), generator=generator).clamp(1e-4, 1 - 1e-4).double()
        tensor_noise = torch.rand(len(sizes), generator=generator).clamp(1e-4, 1 - 1e-4).double()
        own = (3 * torch.sigmoid(noise.log() - (1 - noise).log() + alpha) - 1.5).clamp(0, 1)
        shared = (3 * torch.sigmoid(tensor_noise.log() - (1 - tensor_noise).log() + tensor_alpha) - 1.5).clamp(0, 1)
        parts = (change * own * shared[owner]).split(sizes)
        weights = {name: frozen[name] + part.view_as(frozen[name]) for name, part in zip(frozen, parts, strict=True)}
        batch = TASK.splits["train"].batch(slot.order.examples(slot.step), runner.backbone.pad_token_id)
        slot.step += 1
        mask = torch.from_numpy(batch.attention_mask)
        inputs = {"input_ids": torch.from_numpy(batch.input_ids), "attention_mask": mask}
        hidden = torch.func.functional_call(model, weights, kwargs=inputs).last_hidden_state
        pooled = torch.stack([row[keep].mean(dim=0) for row, keep in zip(hidden, mask.bool(), strict=True)])
        loss = torch.nn.functional.cross_entropy(pooled @ head[0].T + head[1], torch.from_numpy(batch.labels))
        penalty = 1.25e-7 * (torch.sigmoid(alpha) * torch.sigmoid(tensor_alpha)[owner]).sum()
        for optimizer in (plain, gates):
            optimizer.zero_grad()
        (loss + penalty).backward()
        torch.nn.utils.clip_grad_norm_([change, alpha, tensor_alpha, *head], 1.0)
        for optimizer in (plain, gates):
            for group in optimizer.param_groups:
                group["lr"] = group["peak"] * learning_rate_factor(step, Training(steps=STEPS, warmup_fraction=0.06))
            optimizer.step()
        losses.append(float(loss.detach()))
    return losses, {"change": change, "alpha": alpha, "tensor_alpha": tensor_alpha}


def test_diff_pruning_equals_an_independent_loop(runner):
    pack = trained(runner, SPARSE, 0)
    steps = HALF - 1
    sums = []
    for _ in range(steps):
        readings = [result for result in pack.advance(1) if isinstance(result, Reading)]
        sums.append(readings[0].train_loss * 2 if readings else pack.trial(0).loss_sum)
    losses, parameters = reference(runner, steps)
    assert sums == pytest.approx([losses[0], losses[0] + losses[1], losses[2]], rel=1e-9), "without the penalty"
    for name, parameter in sparse_of(pack).named_parameters():
        torch.testing.assert_close(parameter, parameters[name], rtol=1e-7, atol=1e-12)
    alpha = parameters["alpha"].detach()
    assert float(alpha.min()) < 4.9, "the gates have moved"


def test_a_rate_of_zero_trains_neither_changes_nor_gates(runner):
    pack = runner.open_pack(1)
    pack.admit(replace(request_of(SPARSE), learning_rates=(0.0, 0.0, 0.05)))
    pack.advance(3)
    assert not bool(sparse_of(pack).change.any())
    assert bool((sparse_of(pack).alpha == 5).all())


def test_one_step_trial_is_pruned_too(runner):
    pack = runner.open_pack(1)
    pack.admit(request_of(SPARSE, plan=TrainingPlan(steps=1, batch_size=4, evaluate_at_steps=(1,))))
    (reading,) = pack.advance(1)
    assert isinstance(reading, Reading)
    assert math.isfinite(reading.metrics["validation_loss"])
    assert len(sparse_of(pack).kept()[0]) == KEPT
