"""What all trials of a table share: the task, the backbone, the budget, the training, the space."""

import hashlib
import json
import subprocess
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from search_space.backbones import shape_of
from search_space.space.space import SearchSpace
from studies.specification import Specification, read_specification
from studies.specification.reading import study_file
from trial_runner.backbones import config_of
from trial_runner.requests import TrainingPlan

TASKS = ("docstrings", "sst2", "banking77")
CODE = 1
"""Raised whenever training changes so that the same trial comes out otherwise; a trial of other code is another row."""

EIGHTHS = (1, 2, 4, 6, 8)
"""A trial is measured after so many eighths of its steps."""

RANGES = {
    "softmax_memory": (3e-3, 5e-2),
    "bottleneck": (1e-3, 1e-2),
    "lowrank": (1e-3, 2e-2),
    "diag": (3e-3, 5e-2),
    "const": (1e-3, 1e-2),
}
"""Peak learning rates of the draws by form. They stand here because a table outlives the defaults of a release."""

_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A task as it is trained for the table.

    Attributes:
        task: One of `TASKS`.
        specification: The study file that its portions have.
        backbone_sha256: Of the backbone's weights.
        rates_of: What learning rates are of; see `SpaceOptions.learning_rates_of`.
    """

    task: str
    specification: Specification
    backbone_sha256: str
    rates_of: Literal["output", "weights"] = "weights"

    @cached_property
    def space(self) -> SearchSpace:
        shape = shape_of(config_of(self.specification.backbone.name))
        budget = self.specification.parameter_budget().parameters(shape)
        options = replace(self.specification.space_options, learning_rates_of=self.rates_of)
        return SearchSpace(shape=shape, budget=budget, options=options)

    @property
    def training(self) -> TrainingPlan:
        own = self.specification.training
        at = sorted({max(1, own.steps * eighth // 8) for eighth in EIGHTHS})
        return TrainingPlan(**asdict(own), evaluate_at_steps=tuple(at))

    def key(self, fingerprint: str, rates: tuple[float | None, float | None], seed: int) -> str:
        """What two machines call the same trial.

        Args:
            fingerprint: Of the configuration with its rounded learning rates.
            rates: At attention and at the FFN.
            seed: Of the training.
        """
        task, training = self.specification.task, self.specification.training
        facts = [
            self.task,
            task.max_tokens,
            task.train_examples,
            task.validation_examples,
            self.backbone_sha256,
            self.space.budget,
            training.batch_size,
            training.head_learning_rate,
            training.steps,
            fingerprint,
            [None if rate is None else f"{rate:.6g}" for rate in rates],
            seed,
            CODE,
        ]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:24]


def setting_of(
    task: str,
    folder: Path,
    *,
    backbone_sha256: str,
    data: Path | None = None,
    pack: str = "1",
    **training: object,
) -> Setting:
    """A task of `TASKS` on the embedded backbone at half a percent, measured on all validation examples.

    Args:
        task: Its study file ships with the package.
        folder: Of the table; what is unfinished lies below it.
        backbone_sha256: Of the embedded backbone's weights.
        data: Folder of the task's files, for tasks that are not embedded.
        pack: Trials in a pass.
        training: Keys of the study file's training that differ from the task's.
    """
    overrides: dict[str, object] = {
        "backbone": "embedded",
        "budget": "0.5%",
        "task.validation_examples": None,
        **{f"training.{key}": value for key, value in training.items()},
        **({} if data is None else {"task.folder": str(data)}),
        "pruning.first_rung_steps": None,
        "search.published": "none",
        "space.learning_rates": {form: list(pair) for form, pair in RANGES.items()},
        "search.sampler": "random",
        "fleet.backend": "inline",
        "fleet.workers": 1,
        "fleet.pack": pack,
        "fleet.artefacts": str(work_folder(folder) / "artefacts"),
    }
    specification = read_specification(study_file(task), overrides)
    return Setting(task=task, specification=specification, backbone_sha256=backbone_sha256)


def work_folder(folder: Path) -> Path:
    """Where a table keeps its ledger and what is unfinished; none of it is shipped."""
    return folder.absolute() / "work"


def commit() -> str | None:
    """The commit of the code, with a plus if files differ from it; None outside a checkout."""
    words = ["git", "-C", str(_ROOT), "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*"]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    return found.stdout.strip() or None if found.returncode == 0 else None
