"""The objective of regression against closed forms in float64, and packs of it against trials alone."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from support.packing_cases import TASK, request_for, runner_of

from search_space.published import published_method
from trial_runner.errors import AttachError
from trial_runner.requests import Reading
from trial_runner.runner import TorchRunner
from trial_runner.tasks.regression.kind import PreparedRegression

METHODS = ("lora_qv", "mam_adapter", "head_only", "robust_prefix_tuning")


def regression() -> PreparedRegression:
    """Build a task whose number is the position of the second token in the vocabulary, around 100."""
    splits = {
        name: replace(split, labels=100 + split.input_ids[split.offsets[:-1] + 1] / 200)
        for name, split in TASK.splits.items()
    }
    return PreparedRegression(
        name="numbers", labels=("place",), metric="pearson", splits=splits, notes=(), fingerprint="numbers"
    )


@pytest.fixture(scope="module")
def runner(tiny_backbone: Callable[[str], Path]) -> Iterator[TorchRunner]:
    runner = runner_of(tiny_backbone("roberta"), task=regression())
    yield runner
    runner.close()


def run(runner: TorchRunner, *methods: str, steps: int = 6) -> list[list[Reading]]:
    pack = runner.open_pack(len(methods))
    for method in methods:
        structure = published_method(method).structure(runner.backbone.shape)
        pack.admit(request_for(structure, METHODS.index(method), steps=steps))
    found: dict[int, list[Reading]] = {}
    for reading in pack.advance(steps):
        found.setdefault(reading.trial, []).append(reading)
    return [found[trial] for trial in sorted(found)]


def test_regression_head_starts_at_the_mean(runner):
    task = regression()
    objective = runner.objective
    head = objective.head(seed=0)
    assert head.bias.item() == pytest.approx(task.mean, abs=1e-12)
    assert head.weight.shape == (1, 16)
    outputs, labels = torch.tensor([[101.0], [99.0]], dtype=torch.float64), torch.tensor([100.5, 99.0])
    assert objective.each_loss(outputs, labels).tolist() == [0.25, 0.0]
    ((*_, last),) = run(runner, "head_only")
    # a weight of 0.02 N(0, 1) moves the head's first outputs little from the mean of train
    assert last.train_loss == pytest.approx(task.guessing_loss, rel=0.5)


def test_regression_metrics_detect_constant_predictions(runner):
    task = regression()
    split = task.splits["validation"]
    measured = runner.objective.measured(split.labels * 2 - 3, np.ones(len(split)), 1.0, split)
    assert measured.metrics["pearson"] == pytest.approx(1.0, abs=1e-12)
    assert measured.metrics["spearman"] == pytest.approx(1.0, abs=1e-12)
    assert measured.metrics["mse"] == pytest.approx(((split.labels - 3) ** 2).mean())
    assert measured.metrics["same_prediction"] < 1
    constant = np.full(len(split), task.mean) + np.linspace(0, 1e-9, len(split))
    assert runner.objective.measured(constant, np.ones(len(split)), 1.0, split).metrics["same_prediction"] == 1


def test_pack_learns_the_same_as_its_trials_alone(runner):
    together = run(runner, *METHODS[:3])
    alone = [run(runner, method)[0] for method in METHODS[:3]]
    for packed, single in zip(together, alone, strict=True):
        for one, other in zip(packed, single, strict=True):
            assert one.train_loss == pytest.approx(other.train_loss, rel=1e-9)
            assert one.metrics["mse"] == pytest.approx(other.metrics["mse"], rel=1e-9)
            assert one.score == pytest.approx(other.score, abs=1e-7)


def test_robust_prefixes_are_refused_for_they_need_classes(runner):
    with pytest.raises(AttachError, match=r"must be a classification, .* got a regression task"):
        run(runner, "robust_prefix_tuning")
