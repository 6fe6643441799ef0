"""What a keeper must know of a study before its first lease."""

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
    """A study that is in the storage already, and how it is to be searched. Travels between processes.

    Attributes:
        study: Its name.
        storage_url: Where its ledger is.
        target_trials: How many trials it has in all.
        space: What may be proposed.
        sampler: Who proposes, as a study file says it.
        initial_design: What comes first.
        seed: Everything random derives from it.
        training: How every trial is trained.
        head_parameters: Parameters of the task head.
        rungs: Where trials are compared.
        artefacts: The study's own folder.
        replicates: How many of the trials, the last ones, train the best of the others again.
        goal: What is to be small, beside a high score; None for nothing.
        constant_score: Score of a constant prediction; None where that means nothing.
        lease_seconds: A worker that is silent for so long has lost its trials.
        launch: Who runs the study, for others to see; empty where nobody needs to know.
        stuck_seconds: A worker that gets no further for so long falls silent; enough to load a backbone, or to measure.
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
    replicates: int = 0
    goal: SizeGoal | None = None
    constant_score: float | None = None
    lease_seconds: float = 60.0
    launch: str = ""
    stuck_seconds: float = 3600.0

    @property
    def patience_seconds(self) -> float:
        """How long a database that is locked or away is waited for: a lease, and until a server drops who hangs."""
        return self.lease_seconds + _MARGIN_SECONDS
