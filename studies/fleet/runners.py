"""How a worker gets its pack runner. Torch is loaded in the worker, not where the runner is ordered."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trial_runner.backbones import BackboneSource
from trial_runner.requests import PackRunner
from trial_runner.tasks.task import Task
from trial_runner.uncollected import uncollected

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh

    from trial_runner.runner import TorchRunner


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchRunnerFactory:
    """Orders the real runner.

    Attributes:
        backbone: Which one, and how its weights are held; or its name alone.
        precision: ``auto``, ``fp32`` or ``bf16``.
        shards: Processes that share the backbone, on a GPU each; 1 for this one.
    """

    backbone: str | BackboneSource
    task: Task
    precision: str
    shards: int = 1

    def __call__(self, threads: int) -> PackRunner:
        """Load backbone and task, here or in the processes that share the backbone.

        Raises:
            RunnerError: If either cannot be had.
        """
        if self.shards == 1:
            return self.open(threads=threads)
        from trial_runner.sharding.messages import Shape
        from trial_runner.sharding.runner import ShardedRunner

        return ShardedRunner(self.open, Shape(ranks=self.shards, threads=max(1, threads // self.shards)))

    def open(self, *, threads: int, mesh: "DeviceMesh | None" = None) -> "TorchRunner":
        """Load backbone and task in this process; see `trial_runner.runner.open_runner`."""
        with uncollected():
            from trial_runner.runner import open_runner

            return open_runner(
                backbone=self.backbone, task=self.task, precision=self.precision, threads=threads, mesh=mesh
            )
