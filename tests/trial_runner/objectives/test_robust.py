"""Robust prefixes: projections in closed form, and what tuning at prediction time does and leaves alone."""

import copy
import dataclasses
import functools
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from support.edits import edit
from support.packing_cases import runner_of

from search_space.configuration import Configuration
from search_space.dimensions import Heads, Port
from search_space.forms import SoftmaxMemory
from search_space.gates import ConvexGate
from search_space.layers import AllLayers, LayerRange, Layers
from trial_runner.objectives.robust import (
    Manifold,
    RobustPredictor,
    has_robust_prefix,
)
from trial_runner.packs.lane import pass_of
from trial_runner.packs.pack import TrialPack
from trial_runner.requests import Reading, TrainingPlan, TrialRequest
from trial_runner.runner import TorchRunner
from trial_runner.tasks import Batch, PreparedTask, Split

STEPS = 30


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def near_a_plane(rows: int, width: int) -> torch.Tensor:
    """Draw points of a plane through a point far from the origin."""
    return random(rows, 2, seed=1) @ random(2, width, seed=2) + 5 * random(width, seed=3)


def test_manifold_distance_is_zero_on_it_and_mean_square_off_it():
    points = near_a_plane(40, 8)
    manifold = Manifold.through(points, share=0.99)
    assert manifold.basis.shape == (8, 2)
    assert float(manifold.distance(points)) == pytest.approx(0, abs=1e-24)
    between = points[:1] * 3 - points[1:2] * 2
    assert float(manifold.distance(between)) == pytest.approx(0, abs=1e-24)
    assert float(manifold.distance(between + 1)) > 0.01
    step = random(8, seed=5)
    step = step - manifold.basis @ (manifold.basis.T @ step)
    expected = float(step.square().sum()) / 8
    assert float(manifold.distance(points + step)) == pytest.approx(expected, rel=1e-9)


def make_split(seed: int, size: int, *, noise: float = 0.0) -> Split:
    """Build examples labelled by whether tokens are below the middle; with noise, some tokens are drawn again."""
    draw = np.random.default_rng(seed)
    lengths = draw.integers(4, 9, size)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    labels = draw.integers(0, 2, size)
    input_ids = draw.integers(5, 90, offsets[-1]) + 100 * (1 - np.repeat(labels, lengths))
    disturbed = draw.random(offsets[-1]) < noise
    input_ids[disturbed] = draw.integers(5, 200, int(disturbed.sum()))
    return Split(input_ids=input_ids.astype(np.int32), offsets=offsets, labels=labels.astype(np.int64))


TASK = PreparedTask(
    name="halves",
    labels=("high", "low"),
    metric="accuracy",
    splits={"train": make_split(0, 60), "validation": make_split(1, 40, noise=0.4), "test": make_split(2, 10)},
    notes=(),
    fingerprint="0",
)


@pytest.fixture(scope="module")
def runner(tiny_backbone: Callable[..., Path]) -> Iterator[TorchRunner]:
    runner = runner_of(tiny_backbone("roberta"), task=TASK)
    yield runner
    runner.close()


def request(
    *, robust: bool = True, reparameterization: int | None = None, layers: Layers | None = None
) -> TrialRequest:
    form = SoftmaxMemory(width=3, heads=Heads.KEY_VALUE, reparameterization=reparameterization, robust=robust)
    prefix = edit(Port.HEAD, Port.Q, form, ConvexGate(), layers=layers or AllLayers())
    return TrialRequest(
        trial=0,
        attempt=1,
        configuration=Configuration(edits=(prefix,)),
        learning_rates=(0.05, 0.0, 0.05),
        plan=TrainingPlan(steps=STEPS, batch_size=8, evaluate_at_steps=(10, STEPS)),
        seed=5,
    )


def trained(runner: TorchRunner, request: TrialRequest) -> tuple[TrialPack, list[Reading]]:
    pack = runner.open_pack(1)
    pack.admit(request)
    return pack, [result for result in pack.advance(STEPS) if isinstance(result, Reading)]


@pytest.fixture(scope="module")
def pack(runner: TorchRunner) -> TrialPack:
    """Return a trained trial with a robust prefix, for tests that only read."""
    return trained(runner, request())[0]


def predictor_of(runner: TorchRunner, pack: TrialPack, **tuning: float) -> RobustPredictor:
    """Return a predictor before learning."""
    slot = pack.trial(0)
    return RobustPredictor(
        model=runner.backbone.model,
        shape=runner.backbone.shape,
        deltas=slot.deltas,
        predict=lambda batch: runner.objective.logits(pass_of(runner.frozen, [slot]), batch)[0],
        **tuning,  # type: ignore[arg-type]
    )


def learned(runner: TorchRunner, pack: TrialPack, *, least: int = 20, **tuning: float) -> RobustPredictor:
    predictor = predictor_of(runner, pack, **tuning)
    assert predictor.learn(TASK.splits["train"], 1, seed=0) > least
    return predictor


def batch_of(rows: int = 40) -> Batch:
    return TASK.splits["validation"].batch(range(rows), 1)


@pytest.mark.parametrize("reparameterization", [None, 6])
def test_perturbed_inputs_are_projected_towards_manifolds(runner, reparameterization):
    pack, _ = trained(runner, request(reparameterization=reparameterization))
    predictor = learned(runner, pack, share=0.5, learning_rate=0.02)
    with torch.no_grad():
        plain, robust = predictor.predict(batch_of()), predictor.logits(batch_of())
    first, *_, last = predictor.losses
    assert (len(predictor.losses), last < 0.98 * first) == (10, True)
    assert float((robust - plain).abs().max()) > 1e-4
    assert not robust.requires_grad


@pytest.mark.slow
@pytest.mark.parametrize("family", ["bart", "t5", "gpt2", "qwen3"])
def test_every_kind_of_backbone_can_be_pulled_back(tiny_backbone, family):
    runner = runner_of(tiny_backbone(family), task=TASK)
    pack, _ = trained(runner, request())
    predictor = learned(runner, pack, least=10, share=0.5, learning_rate=0.01)
    with torch.no_grad():
        predictor.logits(batch_of())
    runner.close()
    assert len(predictor.manifolds) == 2
    assert predictor.losses[-1] < predictor.losses[0]


def test_predictor_does_not_change_the_trial(runner, pack):
    slot = pack.trial(0)
    model = runner.backbone.model
    before, backbone = copy.deepcopy(slot.tensors()), copy.deepcopy(model.state_dict())
    slot.optimizer.zero_grad(set_to_none=True)
    hooks = [len(module._forward_hooks) for module in model.modules()]
    predictor = learned(runner, pack)
    with torch.no_grad():
        predictor.logits(batch_of())
    torch.testing.assert_close(slot.tensors(), before, rtol=0, atol=0)
    torch.testing.assert_close(model.state_dict(), backbone, rtol=0, atol=0)
    assert all(parameter.grad is None for parameter in slot.parameters), "gradients belong to the second table alone"
    assert [len(module._forward_hooks) for module in model.modules()] == hooks
    prefixes = [module for module in slot.deltas.modules() if hasattr(module, "offset")]
    assert len(prefixes) == 2
    assert all(prefix.offset is None for prefix in prefixes)


def test_a_failing_pass_drops_the_second_table(runner, pack):
    predictor = learned(runner, pack)

    def fail(batch: Batch) -> torch.Tensor:
        raise ArithmeticError

    predictor.predict = fail
    with pytest.raises(ArithmeticError):
        predictor.logits(batch_of())
    assert all(prefix.offset is None for prefix in pack.trial(0).deltas.modules() if hasattr(prefix, "offset"))


def test_the_first_step_is_adam_s_on_the_gradient_of_the_distance(runner, pack):
    """Test the first step of Adam, the learning rate times the gradient's sign, by finite differences."""
    predictor = learned(runner, pack, steps=1, learning_rate=1e-6, share=0.5)
    form = next(module for module in pack.trial(0).deltas.modules() if hasattr(module, "offset"))
    offsets: list[torch.Tensor] = []
    plain = predictor.predict

    def look(batch: Batch) -> torch.Tensor:
        offsets.append(form.offset[1].detach().clone())
        return plain(batch)

    predictor.predict = look
    with torch.no_grad():
        predictor.logits(batch_of(8))
        predictor.predict = plain
        slope = torch.zeros_like(offsets[-1])
        for place in np.ndindex(*slope.shape):
            sides = []
            for step in (1e-5, -1e-5):
                shift = torch.zeros_like(slope)
                shift[place] = step
                form.offset = (torch.zeros_like(form.keys), shift)
                activations, _ = predictor.forward(batch_of(8))
                sides.append(sum(m.distance(a) for m, a in zip(predictor.manifolds, activations, strict=True)))
            slope[place] = (sides[0] - sides[1]) / 2e-5
    form.offset = None
    assert float(offsets[0].abs().max()) == 0
    # Adam divides by the gradient's size and its own epsilon
    expected = -1e-6 * slope / (slope.abs() + 1e-8)
    torch.testing.assert_close(offsets[-1], expected, rtol=0, atol=1e-8)


def test_blocks_count_from_the_first_with_a_robust_prefix(runner, pack):
    late, _ = trained(runner, request(layers=LayerRange(first=1, last=1)))
    layers = runner.backbone.model.encoder.layer
    assert predictor_of(runner, late).manifold_blocks() == [layers[1]]
    assert predictor_of(runner, pack).manifold_blocks() == [layers[0], layers[1]]
    assert predictor_of(runner, pack, blocks=1).manifold_blocks() == [layers[0]]


def test_only_correctly_predicted_training_examples_span_the_manifolds(runner, pack):
    train = TASK.splits["train"]
    wrong = dataclasses.replace(train, labels=1 - train.labels)
    kept = predictor_of(runner, pack).learn(train, 1, seed=0)
    assert kept + predictor_of(runner, pack).learn(wrong, 1, seed=0) == len(train)
    assert predictor_of(runner, pack, examples=7).learn(train, 1, seed=0) == 7


def test_the_last_reading_is_robust_and_the_earlier_ones_are_not(runner, monkeypatch):
    # with 60 examples of width 16, all but 1% of the singular values is nearly the whole space
    coarse = functools.partial(RobustPredictor, share=0.5)
    monkeypatch.setattr("trial_runner.objectives.classification.RobustPredictor", coarse)
    pack, (early, last) = trained(runner, request())
    plain, (plain_early, plain_last) = trained(runner, request(robust=False))
    assert early.metrics == plain_early.metrics
    assert "plain_accuracy" not in early.metrics
    assert last.metrics["plain_accuracy"] == plain_last.score
    assert last.metrics["validation_loss"] != plain_last.metrics["validation_loss"]
    assert last.score == last.metrics["accuracy"]
    assert has_robust_prefix(pack.trial(0).deltas)
    assert not has_robust_prefix(plain.trial(0).deltas)
    for name, parameter in pack.trial(0).deltas.named_parameters():
        assert torch.equal(parameter, plain.trial(0).deltas.get_parameter(name))
