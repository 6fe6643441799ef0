"""What every arm shares."""

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
    """How all arms train.

    Attributes:
        device: ``cpu`` or ``cuda``.
        backbone: Folder of the backbone.
        embedded_task: Whether the task is the embedded one; else it is made of random tokens.
        tokens: Length of the longest text; of random texts, of all.
        batch_size: Examples of a trial's step.
        steps: Of a trial.
        threads: Of a process.
        precision: Of products, ``fp32`` or ``bf16``.
        dropout: Share that the backbone drops.
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
        """Of every trial: measured once, at its end."""
        return TrainingPlan(steps=self.steps, batch_size=self.batch_size, evaluate_at_steps=(self.steps,))

    def shape(self) -> BackboneShape:
        """Sizes of the backbone."""
        return shape_of(json.loads((Path(self.backbone) / "config.json").read_text()))

    def environment(self) -> dict[str, str]:
        """Environment of a process of an arm."""
        chosen = dict(os.environ)
        chosen["PYTHONPATH"] = os.pathsep.join([str(_BENCHMARKS), chosen.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        chosen |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(self.threads))
        chosen |= {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_DISABLE_TELEMETRY": "1", "PYTHONWARNINGS": "ignore"}
        if self.device == "cpu":
            chosen |= {"CUDA_VISIBLE_DEVICES": "", "ACCELERATE_USE_CPU": "true"}
        return chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a process of arms (b) and (c) does with its backbone.

    Attributes:
        setting: How it trains.
        packs: Numbers of the trials of each pack, one pack after the other.
        has_equal: Whether a few steps of equal adapters are timed, too, as many as the first pack has trials.
        turns: Parts in which the packs are trained; between them the process waits.
    """

    setting: Setting
    packs: tuple[tuple[int, ...], ...]
    has_equal: bool = False
    turns: int = 1

    def to_json(self) -> str:
        """As it travels to the process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Job":
        """As it arrives."""
        fields: Mapping[str, Any] = json.loads(text)
        packs = tuple(tuple(pack) for pack in fields["packs"])
        return cls(**{**fields, "setting": Setting(**fields["setting"]), "packs": packs})
