"""TensorBoard tracker: a folder per trial in ``runs/STUDY``, or below ``$TENSORBOARD_LOGDIR``."""

import json
import os
from pathlib import Path
from typing import Any

from studies.records import Reading, StudyRecord, TrialRecord
from studies.trackers.facts import facts_of, measured, needed, run_name


class TensorBoard:
    """Tracker with one run per trial, by tensorboardX."""

    def __init__(self) -> None:
        """Import the package."""
        self._package = needed("tensorboard")
        self._folder = Path(os.environ.get("TENSORBOARD_LOGDIR", "runs"))
        self._writers: dict[int, Any] = {}

    def trial_began(self, study: StudyRecord, trial: TrialRecord) -> None:
        """Open a folder and write the facts of the trial."""
        writer = self._package.SummaryWriter(str(self._folder / study.name / run_name(trial)))
        writer.add_text("trial", f"`{json.dumps(facts_of(study, trial))}`")
        self._writers[trial.number] = writer

    def reading(self, study: StudyRecord, trial: TrialRecord, reading: Reading) -> None:
        """Write a point of every curve."""
        for name, value in measured(reading).items():
            self._writers[trial.number].add_scalar(name, value, reading.step)
        self._writers[trial.number].flush()

    def trial_ended(self, study: StudyRecord, trial: TrialRecord) -> None:
        """Write the end of the trial."""
        writer = self._writers.pop(trial.number)
        writer.add_text("end", f"{trial.state.value}: {trial.reason or trial.score}")
        if trial.score is not None:
            writer.add_scalar("final_score", trial.score, trial.steps)
        writer.close()

    def launch_ended(self, study: StudyRecord) -> None:
        """Close all writers; the next launch opens them again."""
        for writer in self._writers.values():
            writer.close()
        self._writers = {}
