"""Ranks over tiny backbones in float64: a factory that travels to their processes, and what they may meet there."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from support.text_cases import text_runner

from trial_runner.attachment.attach import stacks_of
from trial_runner.runner import TorchRunner

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh

PATIENCE_SECONDS = 120.0
"""Of tests, in which nothing may hang for long."""

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
        runner = text_runner(self.backbone, self.task, mesh=mesh)
        backbone = runner.backbone
        stacks = stacks_of(backbone.model, backbone.family.ports(backbone.shape), backbone.shape)
        *_, last = (one for one in stacks[-1][0].modules() if hasattr(one, "weight"))
        last.register_forward_hook(self._meet)
        return runner

    def _meet(self, module: torch.nn.Module, given: Any, returned: torch.Tensor) -> None:
        if self._is_due(DEATH):
            os.kill(os.getpid(), signal.SIGKILL)
        if self._is_due(FORTH):
            raise torch.OutOfMemoryError("no memory for this test")
        if torch.is_grad_enabled() and returned.requires_grad:
            returned.register_hook(self._meet_back)  # type: ignore[no-untyped-call]

    def _meet_back(self, gradient: torch.Tensor) -> None:
        if self._is_due(BACK):
            raise torch.OutOfMemoryError("no memory for this test")

    def _is_due(self, name: str) -> bool:
        try:
            (self.trouble / name).unlink()
        except FileNotFoundError:
            return False
        return True
