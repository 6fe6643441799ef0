"""Ranks over tiny backbones in float64: a factory that travels to their processes, and what they may meet there."""

import os
import signal
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from support.text_cases import text_runner

from studies.backends.backend import TorchRunnerFactory
from trial_runner.attachment.attach import stacks_of
from trial_runner.runner import TorchRunner

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh

PATIENCE_SECONDS = 120.0
"""Of tests, in which nothing may hang for long."""

FIRST_PASSES = 12
"""In which no rank dies, so that there is something to lose."""

FORTH, BACK, DEATH = "no memory forth", "no memory back", "death"


@dataclass(frozen=True, kw_only=True)
class OfTexts:
    """Ranks that learn to write.

    Attributes:
        backbone: Its folder.
        task: Folder of what they write.
        trouble: A folder; the first rank that finds a file of such a name meets it within a pass, and removes the file.
    """

    backbone: Path
    task: Path
    trouble: Path

    def __call__(self, *, threads: int = 1, mesh: "DeviceMesh | None" = None) -> TorchRunner:
        return troubled(text_runner(self.backbone, self.task, mesh=mesh), self.trouble)


@dataclass(frozen=True, kw_only=True)
class Mortal(TorchRunnerFactory):
    """Ranks of a study, as a launch orders them, one of which dies within a pass if there is a file for that.

    Attributes:
        trouble: The folder of the file.
    """

    trouble: Path

    def open(self, *, threads: int, mesh: "DeviceMesh | None" = None) -> TorchRunner:
        return troubled(super().open(threads=threads, mesh=mesh), self.trouble)


def troubled(runner: TorchRunner, folder: Path) -> TorchRunner:
    """Make the runner's passes look for planted trouble in a folder."""
    backbone = runner.backbone
    stacks = stacks_of(backbone.model, backbone.family.ports(backbone.shape), backbone.shape)
    *_, last = (one for one in stacks[-1][0].modules() if hasattr(one, "weight"))
    passes = count(1)

    def is_due(name: str) -> bool:
        try:
            (folder / name).unlink()
        except FileNotFoundError:
            return False
        return True

    def meet(module: torch.nn.Module, given: Any, returned: torch.Tensor) -> None:
        if next(passes) > FIRST_PASSES and is_due(DEATH):
            os.kill(os.getpid(), signal.SIGKILL)
        if is_due(FORTH):
            raise torch.OutOfMemoryError("no memory for this test")
        if torch.is_grad_enabled() and returned.requires_grad:
            returned.register_hook(meet_back)  # type: ignore[no-untyped-call]

    def meet_back(gradient: torch.Tensor) -> None:
        if is_due(BACK):
            raise torch.OutOfMemoryError("no memory for this test")

    last.register_forward_hook(meet)
    return runner
