"""Common settings of the arms."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from search_space.backbones import shape_of
from search_space.backbones.shape import BackboneShape
from trial_runner.requests import TrainingPlan

HEAD_RATE = 5.0e-3
_BENCHMARKS = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Settings of the training, equal for all arms.

    Attributes:
        device: ``cpu`` or ``cuda``.
        backbone: Folder of the backbone.
        embedded_task: Whether the task is the embedded one; else it has random tokens.
        tokens: Length of the longest text; all random texts have it.
        batch_size: Number of examples of a trial's step.
        steps: Number of steps of a trial.
        threads: Number of threads of a process.
        precision: Precision of products, ``fp32`` or ``bf16``.
        dropout: Dropout rate of the backbone.
    """

    device: str
    backbone: str
    embedded_task: bool
    tokens: int
    batch_size: int
    steps: int
    threads: int
    precision: str = "fp32"
    dropout: float = 0.0

    @property
    def plan(self) -> TrainingPlan:
        """Plan of every trial, which is measured once, at its end."""
        return TrainingPlan(steps=self.steps, batch_size=self.batch_size, evaluate_at_steps=(self.steps,))

    def shape(self) -> BackboneShape:
        """Return the shape of the backbone."""
        return shape_of(json.loads((Path(self.backbone) / "config.json").read_text()))

    def environment(self) -> dict[str, str]:
        """Return the environment of a process of an arm."""
        environment = dict(os.environ)
        folders = [str(_BENCHMARKS), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(folders).rstrip(os.pathsep)
        environment |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(self.threads))
        environment |= {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_DISABLE_TELEMETRY": "1", "PYTHONWARNINGS": "ignore"}
        if self.device == "cpu":
            environment |= {"CUDA_VISIBLE_DEVICES": "", "ACCELERATE_USE_CPU": "true"}
        return environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Work of a process of arms (b) and (c).

    Attributes:
        packs: Numbers of the trials of each pack, in the order of the packs.
        has_equal: Whether a few steps of a pack of equal adapters, of the size of the first pack, are timed as well.
        turns: Number of parts in which the packs are trained; between them the process waits.
    """

    setting: Setting
    packs: tuple[tuple[int, ...], ...]
    has_equal: bool = False
    turns: int = 1

    def to_json(self) -> str:
        """Return the job as JSON text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Job":
        """Read a job from JSON text."""
        fields: Mapping[str, Any] = json.loads(text)
        packs = tuple(tuple(pack) for pack in fields["packs"])
        return cls(**{**fields, "setting": Setting(**fields["setting"]), "packs": packs})
