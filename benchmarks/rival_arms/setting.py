"""Cells of the benchmark, trials of an arm, and the result of a search."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rival_arms.training import CachedRunner
from search_space.backbones import shape_of
from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.parameter_counts.budget import budget_parameters, read_budget
from search_space.parameter_counts.counts import count
from search_space.words.describe import phrase
from studies.seeds import hashed_seed
from studies.study_file import Specification, specification_of
from trial_runner.backbones import config_of
from trial_runner.requests import TrialRequest

# keys of the section `task` by the name of the task's folder, or of an embedded task
TASKS: dict[str, dict[str, object]] = {
    "docstrings": {"name": "docstrings", "max_tokens": 24},
    "banking77": {"text": "text", "label": "label", "max_tokens": 32},
    "snli": {"text": ["premise", "hypothesis"], "label": "label", "max_tokens": 48},
    "sst2": {"text": "sentence", "label": "label", "max_tokens": 32},
    "sick": {"kind": "regression", "metric": "pearson", "text": ["premise", "hypothesis"], "label": "relatedness"},
}

# the same of tasks of a backbone that generates
TEXT_TASKS: dict[str, dict[str, object]] = {
    "e2e_nlg": {
        "kind": "data_to_text",
        "metric": "loss",
        "metrics": ["loss"],
        "source": "meaning_representation",
        "target": "human_reference",
        "references": "references",
    },
    "gsm8k_chat": {
        "kind": "instruction",
        "metric": "loss",
        "metrics": ["loss"],
        "messages": "messages",
        "max_tokens": 512,
    },
}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One task, budget and seed of the study.

    Attributes:
        data: Folder of the task's splits.
        trials: Number of trials of each arm.
        steps: Number of steps of a full trial.
        batch: Number of examples of a step.
        validation: Number of validation examples.
        folder: Folder of the databases and of the readings of all trials.
        until: Time on the monotonic clock after which no trial begins.
    """

    task: str
    budget: str
    seed: int
    backbone: str
    data: Path
    trials: int
    steps: int
    batch: int
    validation: int
    folder: Path
    until: float

    @property
    def name(self) -> str:
        """Name of the cell and prefix of the names of its studies."""
        return f"{self.task}-{self.budget.rstrip('%')}-s{self.seed}"

    @property
    def task_keys(self) -> dict[str, object]:
        """Section ``task`` of the study file."""
        keys = {**(TASKS | TEXT_TASKS)[self.task], "examples": {"validation": self.validation}}
        return keys if "name" in keys else {**keys, "folder": str(self.data.absolute())}

    @cached_property
    def specification(self) -> Specification:
        """Study of the arms of this library."""
        return specification_of(
            {
                "name": self.name,
                "backbone": self.backbone,
                "task": self.task_keys,
                "budget": self.budget,
                "trials": self.trials,
                "seed": self.seed,
                "training": {"steps": self.steps, "batch_size": self.batch, "head_learning_rate": 5e-3},
                "fleet": {"backend": "inline", "pack": 1, "artefacts": str(self.folder.absolute() / "artefacts")},
            }
        )

    @cached_property
    def runner(self) -> CachedRunner:
        """Runner of the trials of all arms."""
        task = self.specification.task
        return CachedRunner(backbone=self.backbone, task=task, folder=self.folder / "trials", until=self.until)

    @cached_property
    def shape(self) -> BackboneShape:
        """Shape of the backbone."""
        return shape_of(config_of(self.backbone))

    @cached_property
    def parameters(self) -> int:
        """Budget in parameters."""
        return budget_parameters(read_budget(self.budget), self.shape.parameters)

    def request(
        self, number: int, configuration: Configuration, attention: float | None, ffn: float | None
    ) -> TrialRequest:
        """Build the request of a trial; its seed is that of a study's trial with the same number."""
        plan = self.specification.training_plan()
        return TrialRequest(
            trial=number,
            attempt=1,
            configuration=configuration,
            learning_rates=(
                (attention or 0.0) if configuration.attention else 0.0,
                (ffn or 0.0) if configuration.ffn else 0.0,
                plan.head_learning_rate,
            ),
            plan=plan,
            seed=hashed_seed("trial", self.seed, number, bits=31),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmTrial:
    """Trial of an arm.

    Attributes:
        score: Score on the validation examples; None if the trial was pruned.
        steps: Number of steps done.
        method: Name of the published method, if it is one.
    """

    request: TrialRequest
    score: float | None
    steps: int
    method: str | None = None

    def description(self, shape: BackboneShape) -> str:
        """Return the name of the published method or the configuration in words."""
        return self.method or phrase(self.request.configuration, shape)

    def stored(self, shape: BackboneShape) -> int:
        """Return the number of stored parameters."""
        return count(self.request.configuration, shape).stored


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """Trials of an arm in a cell and its recommendation.

    Attributes:
        recommended: Recommended trial, chosen by validation examples alone.
        expected: Score that the arm expects of it, with the half-width of the 95% interval; None without an estimate.
    """

    trials: Sequence[ArmTrial]
    recommended: ArmTrial
    expected: tuple[float, float] | None = None

    def trials_to(self, score: float) -> int | None:
        """Return the number of trials until one reached a validation score; None if none did."""
        counted = enumerate((trial.score for trial in self.trials), 1)
        return next((count for count, reached in counted if reached is not None and reached >= score), None)

    @property
    def best_score(self) -> float:
        """Highest validation score."""
        return max(one.score for one in self.trials if one.score is not None)
