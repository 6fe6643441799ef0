"""Plan of a study: all that a keeper needs before its first lease."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from search_space.space.space import SearchSpace
from studies.objectives import SizeGoal
from studies.pruning.rungs import RungPlan
from studies.search.initial_design import InitialDesign
from trial_runner.requests import TrainingPlan

_MARGIN_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPlan:
    """Study in a storage with the settings of its search; sent between processes.

    Attributes:
        study: Name of the study.
        storage_url: URL of its ledger.
        target_trials: Number of trials of the study.
        space: Search space.
        sampler: Sampler as in the study file.
        initial_design: First trials.
        seed: Seed of everything random.
        training: Training of every trial.
        head_parameters: Number of parameters of the task head.
        rungs: Rungs and the pruning rule.
        artefacts: Folder of the study's files.
        repeats_early: Whether early trials are repeated, soon after the initial design.
        replicates: Number of trials, the last ones, that replicate the best of the others.
        goal: Size to be minimized beside the score; None for the score alone.
        constant_score: Score of a constant prediction; None where it has no meaning.
        lease_seconds: Seconds of silence after which a worker has lost its trials.
        launch: Name of the launch that runs the study, for others; empty if none needs it.
        stuck_seconds: Seconds without progress after which a worker sends no heartbeats; enough for loading or
            measuring.
    """

    study: str
    storage_url: str
    target_trials: int
    space: SearchSpace
    sampler: str | Mapping[str, Any]
    initial_design: InitialDesign
    seed: int
    training: TrainingPlan
    head_parameters: int
    rungs: RungPlan
    artefacts: Path
    repeats_early: bool = False
    replicates: int = 0
    goal: SizeGoal | None = None
    constant_score: float | None = None
    lease_seconds: float = 60.0
    launch: str = ""
    stuck_seconds: float = 3600.0

    @property
    def patience_seconds(self) -> float:
        """Seconds to wait for a locked or unreachable database: a lease, and until a server drops a dead connection."""
        return self.lease_seconds + _MARGIN_SECONDS
