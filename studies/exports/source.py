"""Trained trial as the source of an export."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from search_space.backbones import BackboneFamily
from search_space.backbones.shape import BackboneShape
from studies.records import NewStudy, StudyKind, TrialRecord
from studies.study_file.sections import task_from_json
from trial_runner.tasks import Task

if TYPE_CHECKING:
    from trial_runner.requests import Reading, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSource:
    """Trained trial of a ledger, or of a single run.

    Attributes:
        readings: Readings by step.
        snapshot: Snapshot of the last step.
        competitors: Number of measured trials of the study.
        confirmation: Lines on its confirmations; empty without any.
        is_alone: Whether it was trained by itself, so that no storage has its study.
    """

    study: NewStudy
    trial: TrialRecord
    readings: Sequence["Reading"]
    snapshot: "Snapshot"
    family: BackboneFamily
    shape: BackboneShape
    competitors: int
    confirmation: tuple[str, ...]
    is_alone: bool = False

    @property
    def split(self) -> str:
        """Split that the study measures."""
        return "test" if self.study.kind is StudyKind.CONFIRMATION else "validation"

    @property
    def task(self) -> Task:
        """Task of the study."""
        return task_from_json(self.study.specification["task"])

    @property
    def task_name(self) -> str:
        """Name of the task, or of its folder or hub repository."""
        task = self.task
        if task.folder:
            return Path(task.folder).name
        return task.name or (task.hub.name if task.hub else "")

    @property
    def title(self) -> str:
        """Title of the export."""
        if self.is_alone:
            return f"{self.trial.method or 'A configuration'} trained on {self.task_name}"
        return f"Trial {self.trial.number} of {self.study.name}"
