"""Classification: a linear head on the mean of the outputs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from trial_runner.attachment.frozen_model import FrozenModel, Pass
from trial_runner.attachment.inputs import REAL_TOKENS, on_device
from trial_runner.backbones import load_backbone
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.example_losses import ExampleLosses
from trial_runner.objectives.objective import Objective, ObjectiveFactory, ObjectiveMeasurement, TrainingBatch
from trial_runner.objectives.robust import RobustPredictor
from trial_runner.packed.stacks import by_slots
from trial_runner.tasks import TASK_KINDS, Batch, PreparedTask, Split, compute, same_prediction
from trial_runner.tasks.metrics.classes import ACCURACY
from trial_runner.tasks.token_rows import by_length

_GPU_TOKENS = 8
_LABELS, _MASK = "labels", "attention_mask"


class ClassificationHead(nn.Module):
    """Task head: the mean of the real tokens' outputs, then one linear layer. It is trained, and counted apart."""

    def __init__(self, width: int, labels: int, *, seed: int, dtype: torch.dtype) -> None:
        """Draw the weight from N(0, 0.02^2); the bias starts at zero."""
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        weight = torch.randn(labels, width, generator=generator, dtype=torch.float64) * 0.02
        self.weight = nn.Parameter(weight.to(dtype))
        self.bias = nn.Parameter(torch.zeros(labels, dtype=dtype))

    def forward(self, hidden: Tensor, attention_mask: Tensor | None) -> Tensor:
        """Return logits ``(B, labels)``.

        Args:
            hidden: Outputs of the backbone, ``(B, T, D)``.
            attention_mask: Mask of the real tokens, ``(B, T)``; None where all tokens are real.
        """
        wide = hidden.to(self.weight.dtype)
        real = wide.new_ones(wide.shape[:2]) if attention_mask is None else attention_mask.to(wide.dtype)
        mask = real.unsqueeze(-1)  # (B, T, 1)
        pooled = (wide * mask).sum(dim=1) / mask.sum(dim=1)  # (B, D)
        return torch.nn.functional.linear(pooled, self.weight, self.bias)


class ClassificationObjective(Objective):
    """Objective of a classification; see `trial_runner.objectives.objective.Objective`.

    Attributes:
        task: Prepared task.
    """

    def __init__(self, task: PreparedTask, frozen: FrozenModel) -> None:
        """Store the task and the frozen backbone."""
        self.metric, self.labels = task.metric, task.labels
        self.task = task
        self._frozen = frozen
        # few different widths: compiled graphs and GPU caches are then reused
        self._multiple_of = _GPU_TOKENS if frozen.device.is_gpu else 1

    def check(self, deltas: DeltaSet) -> None:
        """Implement `Objective`."""
        splits = self.task.splits.values()
        self._frozen.check_prompt(deltas, max(int(split.lengths.max(initial=0)) for split in splits))

    def head(self, *, seed: int) -> nn.Module:
        """Implement `Objective`."""
        device = self._frozen.device
        width, labels = self._frozen.shape.width, len(self.labels)
        return ClassificationHead(width, labels, seed=seed, dtype=device.dtype).to(device.device)

    def lengths(self, split: str) -> NDArray[Any]:
        """Implement `Objective`."""
        return self.task.splits[split].lengths

    def batch(self, split: str, indices: NDArray[Any]) -> TrainingBatch:
        """Implement `Objective`."""
        batch = self._batch(self.task.splits[split], indices)
        labels = on_device(batch.labels, self._frozen.device.device)
        tensors = {**self._frozen.inputs(batch), _LABELS: labels}
        return TrainingBatch(tensors=tensors, has_fixed_shapes=True, units=np.ones(len(indices)))

    def losses(self, together: Pass, batch: TrainingBatch) -> Tensor:
        """Implement `Objective`."""
        inputs = {name: tensor for name, tensor in batch.tensors.items() if name != _LABELS}
        logits = self._predicted(together, inputs)
        each = self.each_loss(logits.flatten(0, 1), batch.tensors[_LABELS])
        each = by_slots(each, together.slots)
        return each.mean(dim=1) if batch.totals is None else each.sum(dim=1) / batch.totals

    def each_loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss ``(N,)`` of each row of logits ``(N, labels)``."""
        return torch.nn.functional.cross_entropy(logits, labels, reduction="none")

    def answers(self, logits: Tensor) -> Tensor:
        """Return the predictions ``(..., N)`` of logits ``(..., N, labels)``."""
        return logits.argmax(dim=-1)

    def measured(
        self, predicted: NDArray[Any], losses: NDArray[Any], mean_loss: float, split: Split
    ) -> ObjectiveMeasurement:
        """Compute the measurement of a split from predictions and losses, both ``(examples,)``."""
        names, classes = TASK_KINDS["classification"].metrics, len(self.labels)
        metrics = compute(names, predicted, split.labels, classes=classes, groups=split.groups)
        metrics |= {"validation_loss": mean_loss, **same_prediction(predicted.tolist())}
        correct = predicted == split.labels if self.metric == ACCURACY.name else None
        return ObjectiveMeasurement(metrics=metrics, examples=ExampleLosses.of(losses, correct))

    def logits(self, together: Pass, batch: Batch, *, is_shared: bool = False) -> Tensor:
        """Compute logits ``(K, B, labels)``.

        Args:
            batch: ``K B`` examples, slot by slot; or B examples for all slots.
            is_shared: Whether all slots get the same examples.
        """
        return self._predicted(together, self._frozen.inputs(batch, copies=together.slots if is_shared else 1))

    def _predicted(self, together: Pass, inputs: Mapping[str, Tensor]) -> Tensor:
        with together.applied():
            hidden = self._frozen.hidden(inputs)  # (K B, T, D)
        real = inputs.get(_MASK, inputs.get(REAL_TOKENS))
        mask = None if real is None else by_slots(real, together.slots)
        logits: Tensor = together.heads.call(ClassificationHead.forward, by_slots(hidden, together.slots), mask)
        return logits

    def score(self, metrics: Mapping[str, float]) -> float:
        """Implement `Objective`."""
        return metrics[self.metric]

    def measure(
        self, together: Pass, split: str, *, is_final: bool, most: int | None = None
    ) -> Sequence[ObjectiveMeasurement]:
        """Implement `Objective`."""
        examples = self.task.splits[split].some(most)
        return self.evaluate(examples, lambda batch: self.logits(together, batch, is_shared=True), together.slots)

    def measure_robust(self, alone: Pass, deltas: DeltaSet, split: str, *, seed: int) -> ObjectiveMeasurement:
        """Implement `Objective`."""
        predictor = RobustPredictor(
            model=self._frozen.model,
            shape=self._frozen.shape,
            deltas=deltas,
            predict=lambda batch: self.logits(alone, batch)[0],
        )
        predictor.learn(self.task.splits["train"], self._frozen.pad_token_id, seed=seed)
        return self.evaluate(self.task.splits[split], lambda batch: predictor.logits(batch).unsqueeze(0))[0]

    @torch.no_grad()
    def evaluate(self, split: Split, predict: Callable[[Batch], Tensor], slots: int = 1) -> list[ObjectiveMeasurement]:
        """Compute every metric of each slot, the mean loss as ``validation_loss``, and the loss of each example.

        Args:
            predict: Function that returns the logits ``(K, B, labels)`` of a batch.
            slots: Number K of slots.
        """
        predictions = np.empty((slots, len(split)), dtype=split.labels.dtype)
        totals, losses = np.zeros(slots), np.empty((slots, len(split)))
        size = self._frozen.evaluated_together(slots, int(split.lengths.max(initial=1)))
        for rows in by_length(split.lengths, size):
            batch = self._batch(split, rows)
            logits = predict(batch).float()  # (K, B, labels)
            labels = torch.from_numpy(batch.labels).to(logits.device).expand(slots, -1)
            each = by_slots(self.each_loss(logits.flatten(0, 1), labels.flatten()), slots)  # (K, B)
            totals += each.double().sum(dim=1).cpu().numpy()
            losses[:, rows] = each.cpu().numpy()
            predictions[:, rows] = self.answers(logits).cpu().numpy()
        means = (float(total / len(split)) for total in totals)
        return [self.measured(*each, split) for each in zip(predictions, losses, means, strict=True)]

    def _batch(self, split: Split, indices: NDArray[Any]) -> Batch:
        return split.batch(indices, self._frozen.pad_token_id, multiple_of=self._multiple_of)


CLASSIFICATION_OBJECTIVE = ObjectiveFactory(load=load_backbone, make=ClassificationObjective)
