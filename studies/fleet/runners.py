"""How a worker gets its pack runner. Torch is loaded in the worker, not where the runner is ordered."""

from dataclasses import dataclass

from trial_runner.backbones import BackboneSource
from trial_runner.requests import PackRunner
from trial_runner.tasks.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchRunnerFactory:
    """Orders the real runner.

    Attributes:
        backbone: Which one, and how its weights are held; or its name alone.
        precision: ``auto``, ``fp32`` or ``bf16``.
    """

    backbone: str | BackboneSource
    task: Task
    precision: str

    def __call__(self, threads: int) -> PackRunner:
        """Load backbone and task.

        Raises:
            RunnerError: If either cannot be had.
        """
        from trial_runner.runner import open_runner

        return open_runner(backbone=self.backbone, task=self.task, precision=self.precision, threads=threads)
