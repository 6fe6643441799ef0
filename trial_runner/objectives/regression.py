"""Regression: one output of a linear head on the mean of the outputs, trained on squared errors."""

from typing import Any

from numpy.typing import NDArray
from torch import Tensor, nn

from trial_runner.attachment.frozen_model import FrozenModel
from trial_runner.backbones import load_backbone
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.example_losses import ExampleLosses
from trial_runner.objectives.classification import ClassificationObjective
from trial_runner.objectives.objective import ObjectiveFactory, ObjectiveMeasurement
from trial_runner.objectives.robust import refuse_robust_prefix
from trial_runner.tasks import TASK_KINDS, Split, compute, same_prediction
from trial_runner.tasks.regression.kind import PreparedRegression

_ROUNDING_DECIMALS = 3
"""Number of decimals, in standard deviations of the task, to which predictions are rounded before they are compared."""


class RegressionObjective(ClassificationObjective):
    """Objective of a regression; see `trial_runner.objectives.objective.Objective`.

    The head's bias starts at the mean of the training labels. The first loss is then that of a constant guess, at any
    scale of the labels.
    """

    def __init__(self, task: PreparedRegression, frozen: FrozenModel) -> None:
        """Store the task and the frozen backbone."""
        super().__init__(task, frozen)
        self._mean, self._deviation = task.mean, task.guessing_loss**0.5

    def check(self, deltas: DeltaSet) -> None:
        """Implement `Objective`."""
        refuse_robust_prefix(deltas, "regression")
        super().check(deltas)

    def head(self, *, seed: int) -> nn.Module:
        """Implement `Objective`."""
        head = super().head(seed=seed)
        nn.init.constant_(head.get_parameter("bias"), self._mean)
        return head

    def each_loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the squared errors ``(N,)`` of outputs ``(N, 1)``."""
        return (outputs.squeeze(-1) - labels.to(outputs.dtype)) ** 2

    def answers(self, outputs: Tensor) -> Tensor:
        """Return the predicted numbers ``(..., N)`` of outputs ``(..., N, 1)``."""
        return outputs.squeeze(-1)

    def measured(
        self, predicted: NDArray[Any], losses: NDArray[Any], mean_loss: float, split: Split
    ) -> ObjectiveMeasurement:
        """Implement `ClassificationObjective.measured`."""
        names = TASK_KINDS["regression"].metrics
        metrics = compute(names, predicted, split.labels, classes=None, groups=split.groups)
        rounded = ((predicted - self._mean) / self._deviation).round(_ROUNDING_DECIMALS).tolist()
        metrics |= {"validation_loss": mean_loss, **same_prediction(rounded)}
        return ObjectiveMeasurement(metrics=metrics, examples=ExampleLosses.of(losses))


REGRESSION_OBJECTIVE = ObjectiveFactory(load=load_backbone, make=RegressionObjective)
