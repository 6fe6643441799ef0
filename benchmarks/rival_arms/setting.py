"""What all arms have in common: the cell of the benchmark, its trials, and what came of a search."""

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

# keys of the section `task` by the name of a task's folder
TASKS: dict[str, dict[str, object]] = {
    "banking77": {"text": "text", "label": "label", "max_tokens": 32},
    "snli": {"text": ["premise", "hypothesis"], "label": "label", "max_tokens": 48},
    "sst2": {"text": "sentence", "label": "label", "max_tokens": 32},
    "sick": {"kind": "regression", "metric": "pearson", "text": ["premise", "hypothesis"], "label": "relatedness"},
}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One task, budget and seed of the study.

    Attributes:
        data: Folder of the task's splits.
        trials: Of every arm.
        steps: Of a trial.
        batch: Examples of a step.
        validation: Examples that a trial is scored on.
        folder: Of the databases and of the readings of all trials.
        until: When no trial is begun any more, on the monotonic clock.
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
        """Also of its studies."""
        return f"{self.task}-{self.budget.rstrip('%')}-s{self.seed}"

    @property
    def task_keys(self) -> dict[str, object]:
        """The section ``task`` of the study file."""
        folder = str(self.data.absolute())
        return {**TASKS[self.task], "folder": folder, "examples": {"validation": self.validation}}

    @cached_property
    def specification(self) -> Specification:
        """The study of our own arms."""
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
        """Trains the trials of all arms."""
        task = self.specification.task
        return CachedRunner(backbone=self.backbone, task=task, folder=self.folder / "trials", until=self.until)

    @cached_property
    def shape(self) -> BackboneShape:
        """Of the backbone."""
        return shape_of(config_of(self.backbone))

    @cached_property
    def parameters(self) -> int:
        """The budget."""
        return budget_parameters(read_budget(self.budget), self.shape.parameters)

    def request(
        self, number: int, configuration: Configuration, attention: float | None, ffn: float | None
    ) -> TrialRequest:
        """A trial of an arm; the seed is that of a study's trial with this number."""
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
class Tried:
    """A trial of an arm.

    Attributes:
        score: On the validation examples; None where it was stopped.
        steps: How far it was trained.
        method: The published method that it is.
    """

    request: TrialRequest
    score: float | None
    steps: int
    method: str | None = None

    def words(self, shape: BackboneShape) -> str:
        """What it is."""
        return self.method or phrase(self.request.configuration, shape)

    def stored(self, shape: BackboneShape) -> int:
        """Its parameters."""
        return count(self.request.configuration, shape).stored


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What came of an arm in a cell.

    Attributes:
        recommended: Chosen by validation examples alone.
        expected: What the arm itself expects it to score, with the half-width of its 95% interval; None where it
            expects nothing but the score.
    """

    trials: Sequence[Tried]
    recommended: Tried
    expected: tuple[float, float] | None = None

    def reached(self, score: float) -> int | None:
        """How many trials it took to a score on the validation examples; None where none has it."""
        scores = enumerate((one.score for one in self.trials), 1)
        return next((number for number, one in scores if one is not None and one >= score), None)

    @property
    def best_score(self) -> float:
        """The highest on the validation examples."""
        return max(one.score for one in self.trials if one.score is not None)
